"""The parts of ``make audit`` that need no network: what it looks for is found, and the tree has none of it."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment import audit

TODAY = datetime.date(2026, 1, 1)

PLANTED = {
    "-----BEGIN " + "PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49": "a private key",
    "-----BEGIN EC " + "PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49": "a private key",
    "aws = '" + "AKIA" + "ABCDEFGHIJKLMNOP'": "a key of a cloud",
    "token: " + "ghp_" + "a" * 36: "a token of a forge or a chat",
    "uri = 'postgres://" + "me:hunter22" + "@db.example.org/x'": "a password in an address",
}


@pytest.mark.rule("X63")
@pytest.mark.parametrize("text", PLANTED)
def test_planted_secrets_are_found(text: str, tmp_path: Path) -> None:
    path = tmp_path / "planted"
    path.write_text("first line\n" + text + "\n")
    assert audit.look_for_secrets([path], TODAY) == [f"{path}:2: {PLANTED[text]}"]


@pytest.mark.rule("X63")
def test_the_tree_has_no_secret_and_excuses_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert audit.look_for_secrets(audit.tree(), datetime.datetime.now(datetime.UTC).date()) == []
    monkeypatch.setitem(audit.EXCUSED, "x: y", ("a reason", TODAY))
    assert audit.excused("x: y", TODAY - datetime.timedelta(days=1))
    assert not audit.excused("x: y", TODAY)
    assert not audit.excused("x: z", TODAY - datetime.timedelta(days=1))


@pytest.mark.rule("X63")
def test_the_linters_rules_of_security_hold_but_for_those_with_a_reason() -> None:
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--select",
        "S",
        "--ignore",
        ",".join(audit.NOT_ASKED),
    ]
    ended = subprocess.run([*command, *audit.LINTED], cwd=audit.ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.rule("X63")
def test_the_tools_have_fixed_versions() -> None:
    assert all("==" in version for version in audit.VERSIONS)
