from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.token_commands import new_signing_key, revoke_token, token, tokens
from bookkeeper.gateways.tokens import TokenBook
from bookkeeper.real import SystemClock


def run(command: object, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, arguments)  # type: ignore[arg-type]
    return done.exit_code, done.output


def book(path: Path) -> TokenBook:
    return TokenBook.parse(path.read_text(), str(path))


@pytest.mark.rule("X9", "X15", "X48")
def test_tokens_are_made_listed_and_revoked(tmp_path: Path) -> None:
    real = tmp_path / "kept" / "tokens"
    real.parent.mkdir()
    path = tmp_path / "link"
    path.symlink_to(real)
    made: list[str] = []
    for words in (["etl", "--root", "/etl"], ["viewer", "--root", "streams:s", "--read-only", "--days", "2"], ["etl"]):
        code, text = run(token, *words, "--token-file", str(real if not made else path))
        assert code == 0, text
        made.append(text.strip())
    now_ms = SystemClock().wall_ms()
    assert [book(path).owner(each, now_ms) for each in made] == [
        Caller("etl", ("/etl",)),
        Caller("viewer", (), ("streams:s",)),
        Caller("etl"),
    ]
    assert book(path).owner(made[1], now_ms + 2 * 24 * 3_600_000) is None
    code, text = run(tokens, "--token-file", str(path))
    first, viewer, last, key = text.splitlines()
    assert code == 0 and not any(each in text for each in made)
    assert first.endswith("etl  never ends  /etl") and last.endswith("etl  never ends  everything")
    assert "viewer  ends 20" in viewer and viewer.endswith("streams:s (read only)")
    assert key == f"signing key {book(path).keys[0]}"

    code, text = run(revoke_token, viewer.split()[0], "nobody", "--token-file", str(path))
    assert code == 1 and "has no token nobody: nothing was revoked" in text
    assert len(book(path)) == 3
    code, text = run(revoke_token, viewer.split()[0], "--token-file", str(path))
    assert (code, text) == (0, f"revoked {viewer.split()[0]}  viewer\n")
    assert run(revoke_token, "etl", "--token-file", str(path))[0] == 0
    assert [each.id for each in book(path)] == []
    assert path.is_symlink(), "a link is followed, not exchanged"
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert os.listdir(real.parent) == ["tokens"]


@pytest.mark.rule("X9")
def test_a_new_signing_key_signs_and_the_older_ones_stay_until_they_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    _, text = run(token, "etl", "--token-file", str(path))
    old = book(path).exchange("etl", text.strip(), 0)
    assert old is not None
    assert run(new_signing_key, "--token-file", str(path))[0] == 0
    new = book(path).exchange("etl", text.strip(), 0)
    assert new is not None
    assert book(path).owner(old.reveal(), 0) == book(path).owner(new.reveal(), 0) == Caller("etl")
    assert new.reveal().split("~")[1] == book(path).keys[0] != old.reveal().split("~")[1]
    assert run(new_signing_key, "--token-file", str(path), "--drop-others")[0] == 0
    assert book(path).owner(old.reveal(), 0) is None
    assert len(book(path).keys) == 1
    assert book(path).owner(text.strip(), 0) == Caller("etl"), "tokens are not signed"


@pytest.mark.parametrize("days", ["0", "-1", "nan", "1e9"])
def test_days_that_are_none_are_refused(tmp_path: Path, days: str) -> None:
    assert run(token, "etl", "--days", days, "--token-file", str(tmp_path / "tokens"))[0] == 2
    assert not (tmp_path / "tokens").exists()


def test_a_file_that_another_process_changes_now_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    run(token, "etl", "--token-file", str(path))
    before = path.read_text()
    (tmp_path / "tokens.changing").touch()
    for command, *words in ((token, "b"), (revoke_token, "etl"), (new_signing_key,)):
        code, text = run(command, *words, "--token-file", str(path))
        assert code == 1 and "another process changes" in text
    assert path.read_text() == before
    path.chmod(0o640)
    code, text = run(tokens, "--token-file", str(path))
    assert code == 1 and "chmod 600" in text
