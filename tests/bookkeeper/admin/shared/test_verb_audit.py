"""Verbs that change the cluster leave a line; others do not, and none is done that could not be noted."""

from __future__ import annotations

import fcntl
import json
import stat
import threading
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from bookkeeper.admin.shared import verb_audit
from bookkeeper.admin.shared.options import finish
from bookkeeper.errors import BookKeeperError, LedgerFencedError

DONE: list[str] = []


@click.group("bk")
def bk() -> None:
    pass


async def _work(name: str, fails: bool) -> None:
    DONE.append(name)
    if fails:
        raise LedgerFencedError("somebody else recovers it")


@bk.command()
@click.argument("name")
@click.argument("others", nargs=-1)
@click.option("--password", default="")
@click.option("--fails", is_flag=True)
@click.option("--looks", is_flag=True)
def delete(name: str, others: tuple[str, ...], password: str, fails: bool, looks: bool) -> None:
    try:
        finish(_work(name, fails), changes=not looks)
    except BookKeeperError as error:
        raise click.ClickException(str(error)) from error


def run(*words: str) -> Any:
    DONE.clear()
    return CliRunner().invoke(bk, ["delete", *words])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(verb_audit.FILE, str(tmp_path / "audit"))
    return tmp_path / "audit"


@pytest.mark.rule("X16")
def test_what_changes_is_noted_with_its_arguments_and_without_its_options(audit: Path) -> None:
    """Cause: verbs that write the metadata by themselves were seen by no server, and noted by nobody."""
    assert run("stream-1", "stream-2", "--password", "hush").exit_code == 0
    assert run("stream-3", "--fails").exit_code == 1
    assert run("stream-4", "--looks").exit_code == 0
    found = lines(audit)
    assert [each["on"] for each in found] == ["bk delete stream-1 stream-2", "bk delete stream-3"]
    assert [each["reason"] for each in found] == ["", "LedgerFencedError: somebody else recovers it"]
    assert all(each["what"] == "delete" and each["claimed"] and " on " in each["who"] for each in found)
    assert b"hush" not in audit.read_bytes() and stat.S_IMODE(audit.stat().st_mode) == 0o600


@pytest.mark.rule("X16")
def test_nothing_is_done_that_could_not_be_noted(audit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit.mkdir()
    failed = run("stream-1")
    assert failed.exit_code == 1 and "it is a directory, and not a file" in failed.output
    assert DONE == []
    monkeypatch.setenv(verb_audit.FILE, "here")
    failed = run("stream-1")
    assert "must be an absolute path of a file" in failed.output and DONE == []
    monkeypatch.delenv(verb_audit.FILE)
    assert run("stream-1").exit_code == 0 and DONE == ["stream-1"]


@pytest.mark.rule("X16")
def test_verbs_that_run_at_the_same_time_take_turns(audit: Path) -> None:
    lock = audit.with_name("audit.lock")
    with lock.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ended: list[int] = []
        other = threading.Thread(target=lambda: ended.append(run("stream-1").exit_code))
        other.start()
        assert not audit.exists() and DONE == []
        fcntl.flock(held, fcntl.LOCK_UN)
        other.join()
    assert ended == [0] and len(lines(audit)) == 1


def test_what_was_done_and_cannot_be_noted_is_told(audit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exchanged() -> str:
        audit.unlink(missing_ok=True)
        audit.mkdir()
        return "somebody"

    monkeypatch.setattr("getpass.getuser", exchanged)
    done = run("stream-1")
    assert done.exit_code == 0 and "this was done, and is not in the audit log" in done.output
