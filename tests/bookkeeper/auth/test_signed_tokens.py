"""Signed tokens: what they say is what was signed, and they end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.auth.signed_tokens import TOKEN_MAX, issue, verified, why_ended
from bookkeeper.auth.token_file import TokenFile, revoked_line, signing_key_line
from bookkeeper.errors import ConfigError

KEYS = signing_key_line("k1") + signing_key_line("k2")
FILE = TokenFile.parse(KEYS, "keys")
END = 1_790_000_000


@pytest.mark.rule("X9")
def test_a_token_says_who_has_it_by_which_key_and_until_when() -> None:
    text = issue(FILE, "spiffe://x/etl", 7, end=END, roles=["writer", "reader"]).reveal()
    token = verified(FILE, text, END - 0.001)
    assert token is not None
    assert (token.name, token.roles, token.end, token.key) == ("spiffe://x/etl", ("writer", "reader"), END, "k2")
    older = verified(FILE, issue(FILE, "etl", 7, end=END, key="k1").reveal(), 0.0)
    assert older is not None and (older.key, older.roles) == ("k1", ())
    assert verified(FILE, text, END) is None, "it has ended"


@pytest.mark.rule("X9", "X11")
@given(st.integers(0, 400), st.integers(1, 255))
def test_no_character_can_be_changed(at: int, by: int) -> None:
    text = issue(FILE, "etl", 7, end=END, roles=["writer"]).reveal()
    at %= len(text)
    changed = text[:at] + chr((ord(text[at]) + by) % 256) + text[at + 1 :]
    assert changed == text or verified(FILE, changed, 0.0) is None


@pytest.mark.rule("X9")
@pytest.mark.parametrize("text", ["", "bk2", "x" * (TOKEN_MAX + 1), "bk2~k1~0123456789abcdef~1~etl~~" + "0" * 64])
def test_what_nobody_signed_is_no_token(text: str) -> None:
    assert verified(FILE, text, 0.0) is None


@pytest.mark.rule("X9", "X15")
def test_keys_rotate_and_tokens_are_revoked_by_a_line() -> None:
    text = issue(FILE, "etl", 7, end=END).reveal()
    token = verified(FILE, text, 0.0)
    assert token is not None and why_ended(FILE, token, END - 1) is None
    newer = TokenFile.parse(KEYS + signing_key_line("k3"), "keys")
    assert verified(newer, text, 0.0) == token, "a further key changes nothing for older tokens"
    fewer = TokenFile.parse(KEYS.splitlines()[0], "keys")
    for file, why in (
        (fewer, "the key that signed its token was removed"),
        (TokenFile.parse(KEYS + revoked_line(token.id), "keys"), "its token was revoked"),
        (TokenFile.parse(KEYS + revoked_line("principal:etl"), "keys"), "its token was revoked"),
    ):
        assert verified(file, text, 0.0) is None and why_ended(file, token, 0.0) == why
    other = TokenFile.parse(KEYS + revoked_line("principal:etl2") + revoked_line("0" * 16), "keys")
    assert verified(other, text, 0.0) == token
    assert why_ended(FILE, token, END) == "its token has ended"


@pytest.mark.parametrize("name", ["", "a b", "a~b", "-a", "a" * 201])
def test_a_name_that_could_not_be_read_is_not_signed(name: str) -> None:
    with pytest.raises(ConfigError, match="no name for a token"):
        issue(FILE, name, 7, end=END)


def test_what_else_cannot_be_issued() -> None:
    with pytest.raises(ConfigError, match="is no role"):
        issue(FILE, "etl", 7, end=END, roles=["a,b"])
    with pytest.raises(ConfigError, match="no signing key k9"):
        issue(FILE, "etl", 7, end=END, key="k9")
    with pytest.raises(ConfigError, match="there is no signing key:"):
        issue(TokenFile(), "etl", 7, end=END)
    with pytest.raises(ConfigError, match="fewer roles"):
        issue(FILE, "etl", 7, end=END, roles=["r" * 64] * 40)
