"""The file of users."""

from __future__ import annotations

import pytest

from bookkeeper.auth.sasl.digest_md5 import REALM, user_hash
from bookkeeper.auth.sasl.users import SaslUser, parse_users, user_line
from bookkeeper.errors import ConfigError
from bookkeeper.secret import Secret

PASSWORD = Secret("swordfish")
DIGEST = user_hash("etl", REALM, PASSWORD).hex()


def test_what_is_written_is_read_again() -> None:
    text = "# users\n\n" + user_line("etl", PASSWORD) + user_line("ωmega", PASSWORD, ["writer", "reader"])
    assert parse_users(text, "users") == {
        "etl": SaslUser("etl", bytes.fromhex(DIGEST)),
        "ωmega": SaslUser("ωmega", user_hash("ωmega", REALM, PASSWORD), ("writer", "reader")),
    }


@pytest.mark.rule("X59")
def test_neither_password_nor_digest_is_shown() -> None:
    line = user_line("etl", PASSWORD)
    assert "swordfish" not in line
    assert DIGEST not in repr(parse_users(line, "users")) and repr(bytes.fromhex(DIGEST)) not in repr(
        parse_users(line, "users")
    )


@pytest.mark.parametrize(
    "line",
    [
        "user etl",
        f"user etl digest:{DIGEST} a b",
        f"user etl digest:{DIGEST} a,,b",
        f"user etl digest:{DIGEST[:-1]}",
        f"user etl {DIGEST}",
        f"user e:tl digest:{DIGEST}",
        "user etl swordfish",
        f"users etl digest:{DIGEST}",
    ],
)
def test_another_line_is_refused_by_its_number_alone(line: str) -> None:
    with pytest.raises(ConfigError, match="users, line 2: expected") as caught:
        parse_users(f"# first\n{line}\n", "users")
    assert DIGEST[:20] not in str(caught.value) and "swordfish" not in str(caught.value)


def test_a_user_who_stands_there_twice_is_an_error() -> None:
    with pytest.raises(ConfigError, match="line 2: this user stands above"):
        parse_users(user_line("etl", PASSWORD) + user_line("etl", Secret("other")), "users")


@pytest.mark.parametrize(("name", "roles"), [("a b", []), ("a:b", []), ("", []), ("etl", ["a b"]), ("etl", ["a,"])])
def test_a_line_that_could_not_be_read_is_not_written(name: str, roles: list[str]) -> None:
    with pytest.raises(ConfigError, match="is no name"):
        user_line(name, PASSWORD, roles)


def test_there_are_no_empty_passwords() -> None:
    with pytest.raises(ConfigError, match="the password is empty"):
        user_line("etl", Secret(""))
