"""``bk credentials`` writes the files that bookies read."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bookkeeper.admin.servers.credentials import credentials
from bookkeeper.auth.sasl.digest_md5 import REALM, user_hash
from bookkeeper.auth.sasl.users import parse_users
from bookkeeper.auth.signed_tokens import verified
from bookkeeper.auth.token_file import TokenFile
from bookkeeper.real import SystemClock
from bookkeeper.secret import Secret


def bk(*words: str, says: str | None = None) -> Result:
    return CliRunner().invoke(credentials, words, input=says)


def book(path: Path) -> TokenFile:
    return TokenFile.parse(path.read_text(), "file")


@pytest.mark.rule("X9")
def test_a_token_is_signed_with_the_newest_key_and_ends(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    where = ("--token-file", str(file))
    for key in ("k1", "k2"):
        assert bk("signing-key", key, *where).exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before, now = file.read_text(), SystemClock().wall_ms() / 1000
    made = bk("token", "etl", *where, "--valid", "12h", "--role", "writer", "--role", "reader")
    token = verified(book(file), made.stdout.strip(), now)
    assert token is not None and (token.name, token.roles, token.key) == ("etl", ("writer", "reader"), "k2")
    assert 12 * 3600 - 1 <= token.end - now <= 12 * 3600 + 600
    assert file.read_text() == before, "a token needs no line"
    older = bk("token", "etl", *where, "--valid", "1d", "--key", "k1").stdout.strip()
    assert verified(book(file), older, now) is not None
    assert bk("revoke", token.id, *where).exit_code == 0
    assert verified(book(file), made.stdout.strip(), now) is None and verified(book(file), older, now) is not None
    assert bk("revoke", "principal:etl", *where).exit_code == 0
    assert verified(book(file), older, now) is None


@pytest.mark.rule("X58", "X59")
def test_a_user_is_added_and_replaced_and_the_password_comes_from_a_file_or_a_question(tmp_path: Path) -> None:
    file, secret = tmp_path / "users", tmp_path / "password"
    secret.write_text("first\n")
    secret.chmod(0o600)
    where = ("--user-file", str(file))
    assert bk("sasl-user", "etl", *where, "--password-file", str(secret)).exit_code == 0
    asked = bk("sasl-user", "spark", *where, "--role", "writer", says="second\nsecond\n")
    assert asked.exit_code == 0 and "second" not in asked.output
    users = parse_users(file.read_text(), "file")
    assert users["etl"].hash == user_hash("etl", REALM, Secret("first"))
    assert users["spark"].hash == user_hash("spark", REALM, Secret("second")) and users["spark"].roles == ("writer",)
    again = bk("sasl-user", "etl", *where, says="third\nthird\n")
    assert again.exit_code == 1 and "--replace" in again.output
    assert bk("sasl-user", "etl", *where, "--replace", says="third\nthird\n").exit_code == 0
    users = parse_users(file.read_text(), "file")
    assert users["etl"].hash == user_hash("etl", REALM, Secret("third")) and len(users) == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.rule("X43")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("token", "etl", "--valid", "12h"), "no signing key"),
        (("token", "etl", "--valid", "12"), "write 30m, 12h or 90d"),
        (("signing-key", "a b"), "no name of a key"),
        (("revoke", "etl"), "neither the id"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    file = tmp_path / "tokens"
    done = bk(*words, "--token-file", str(file))
    assert done.exit_code != 0 and why in done.output
    assert not file.exists()
    file.write_text("")
    file.chmod(0o644)
    open_to_all = bk("signing-key", "k1", "--token-file", str(file))
    assert open_to_all.exit_code == 1 and "chmod 600" in open_to_all.output


def test_nothing_is_done_twice(tmp_path: Path) -> None:
    where = ("--token-file", str(tmp_path / "tokens"))
    for words, why in ((("signing-key", "k1"), "a key of this name"), (("revoke", "0" * 16), "revoked already")):
        assert bk(*words, *where).exit_code == 0
        twice = bk(*words, *where)
        assert twice.exit_code == 1 and why in twice.output
