from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.auth.token_file import revoked_line, signing_key_line
from bookkeeper.errors import ConfigError
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.tokens import (
    ACCESS_TOKEN_S,
    TokenBook,
    new_token,
    token_line,
    without_tokens,
)
from bookkeeper.secret import Secret

ALICE, BOB = new_token(), new_token()
KEYS = signing_key_line("k1")
TEXT = f"# people\n\n{KEYS}{token_line('alice', ALICE)}{token_line('bob', BOB, ['/bob', '/shared'])}"
NOW = 1_700_000_000_000


def book(text: str = TEXT) -> TokenBook:
    return TokenBook.parse(text, "tokens")


@pytest.mark.rule("X48")
def test_the_file_holds_no_token() -> None:
    assert ALICE.reveal() not in TEXT
    assert len(ALICE.reveal()) >= 43, "256 bits"
    assert book().owner(ALICE.reveal(), NOW) == Caller("alice")
    assert book().owner(BOB.reveal(), NOW) == Caller("bob", ("/bob", "/shared"))
    hashed = TEXT.split("sha256:")[1].split()[0]
    for wrong in ("", hashed, f"sha256:{hashed}", ALICE.reveal() + "x", "x" * 5000, "\udcff"):
        assert book().owner(wrong, NOW) is None


@pytest.mark.rule("X9")
def test_an_access_token_is_good_for_its_time_and_for_its_owner() -> None:
    bought = book().exchange("bob", BOB.reveal(), NOW)
    assert bought is not None
    text, end = bought.reveal(), NOW + ACCESS_TOKEN_S * 1000
    assert book().owner(text, end - 1) == Caller("bob", ("/bob", "/shared"))
    assert book().owner(text, end) is None
    assert book().exchange("alice", BOB.reveal(), NOW) is None
    assert book().exchange("bob", text, NOW) is None, "an access token buys no other"
    later = text.split("~")
    later[3] = str(int(later[3]) + 1)
    assert book().owner("~".join(later), NOW) is None
    assert book().owner(text[:-1] + ("0" if text[-1] != "0" else "1"), NOW) is None


@pytest.mark.rule("X9", "X15")
def test_what_is_taken_from_the_file_is_revoked_and_keys_are_changed_without_a_gap() -> None:
    bought = book().exchange("alice", ALICE.reveal(), NOW)
    assert bought is not None
    renewed = TEXT.replace(KEYS, signing_key_line("k2") + KEYS)
    assert book(renewed).owner(bought.reveal(), NOW) == Caller("alice")
    fresh = book(renewed).exchange("alice", ALICE.reveal(), NOW)
    assert fresh is not None
    assert fresh.reveal().startswith("bk1~k2~")
    assert book(TEXT.replace(KEYS, signing_key_line("k1"))).owner(bought.reveal(), NOW) is None
    without = "".join(line for line in TEXT.splitlines(True) if " alice " not in line)
    assert book(without).owner(bought.reveal(), NOW) is None
    again = without + token_line("alice", new_token())
    assert book(again).owner(bought.reveal(), NOW) is None, "the same name with another token"
    assert not book(TEXT.replace(KEYS, "")).can_sign
    assert book(TEXT.replace(KEYS, "")).exchange("alice", ALICE.reveal(), NOW) is None


@pytest.mark.parametrize(
    "line",
    ["hello", "token alice", "token alice hunter2hunter2", "token 1a sha256:" + "0" * 64, "signing-key k1 abc",
     "token a sha256:" + "0" * 64 + " relative", "token a sha256:" + "0" * 64 + " /a/",
     "token a sha256:" + "0" * 64 + " until=2027-01-31", "token a sha256:" + "0" * 64 + " until=2027-13-31T00:00:00Z",
     "token a sha256:" + "0" * 64 + " until=2027-01-31T00:00:00Z until=2028-01-31T00:00:00Z",
     "token a sha256:" + "0" * 64 + " streams:a*", "token a sha256:" + "0" * 64 + " write-only"],
)  # fmt: skip
def test_a_line_that_is_not_understood_is_named_and_not_shown(line: str) -> None:
    with pytest.raises(ConfigError, match="tokens, line 2") as refused:
        book(f"# first\n{line}\n")
    assert "hunter2" not in str(refused.value)


def test_lines_are_made_of_names_and_paths_only() -> None:
    for name, roots in (("a b", []), ("1", []), ("a", ["b"]), ("a", ["/a/"]), ("a", ["/a b"])):
        with pytest.raises(ConfigError):
            token_line(name, ALICE, roots)
    assert token_line("a", Secret("x"), ["/"]).endswith(" /\n")


@pytest.mark.rule("X40")
@given(st.text(alphabet="bk1~0aéA", max_size=120))
def test_any_text_is_just_not_a_token(text: str) -> None:
    assert book().owner(text, NOW) is None


def test_two_keys_of_one_name_are_refused() -> None:
    """The new one, in front of the old one, would be the old one, and nobody would notice."""
    line, other = signing_key_line("k1"), signing_key_line("k1")
    assert TokenBook.parse(line + line, "f").can_sign
    with pytest.raises(ConfigError, match="line 2: another signing key has this name") as refused:
        TokenBook.parse(line + other, "f")
    assert other.split()[-1] not in str(refused.value)


@pytest.mark.rule("X9", "X15", "X48")
def test_a_token_ends_is_limited_and_its_access_tokens_are_neither_longer_nor_wider() -> None:
    end_s = NOW // 1000 + 100
    text = signing_key_line("k1") + token_line("bob", BOB, ["/b", "streams:s"], read_only=True, end_s=end_s)
    whose = Caller("bob", (), ("/b", "streams:s"))
    made = book(text)
    access = made.exchange("bob", BOB.reveal(), NOW)
    assert access is not None
    assert made.end_of(access) == end_s, "an hour from now would be later"
    for shown in (BOB.reveal(), access.reveal()):
        found = made.owner(shown, NOW)
        assert found == whose
        assert found.ends_ms == end_s * 1000
        assert made.owner(shown, end_s * 1000 - 1) == whose
        assert made.owner(shown, end_s * 1000) is None
    assert made.exchange("bob", BOB.reveal(), end_s * 1000) is None
    [token] = made
    assert made.why_refused(BOB.reveal(), end_s * 1000) == f"token {token.id} has ended"
    assert made.claimed(BOB.reveal()) == "bob"
    assert book(KEYS).why_refused(BOB.reveal(), NOW) == "the token file does not have the token"
    assert book(text.split("\n")[0]).why_refused(access.reveal(), NOW).startswith(f"token {token.id} was revoked")
    assert "no signing key" in book(KEYS).why_refused(access.reveal(), NOW)
    assert book(KEYS).claimed(BOB.reveal()) == ""


def test_a_line_is_read_as_it_was_written() -> None:
    for roots in ([], ["/a"], ["/a", "streams:b/c", "paths:/d"]):
        for read_only in (False, True):
            for end_s in (None, NOW // 1000):
                line = token_line("a", ALICE, roots, read_only=read_only, end_s=end_s)
                [token] = book(line)
                assert (token.end_s, [*token.caller.roots, *token.caller.reads]) == (end_s, roots or ["/"])
                assert token.caller.reads == tuple(roots or ["/"]) * read_only
                assert ALICE.reveal() not in repr(token)


@pytest.mark.rule("X15")
def test_a_line_that_revokes_an_id_revokes_that_token_and_its_access_tokens() -> None:
    alice, bob = book()
    bought = book().exchange("alice", ALICE.reveal(), NOW)
    assert bought is not None
    less = book(TEXT + revoked_line(alice.id))
    assert [each.id for each in less] == [bob.id]
    assert less.owner(ALICE.reveal(), NOW) is None
    assert less.owner(bought.reveal(), NOW) is None
    assert less.owner(BOB.reveal(), NOW) == bob.caller


def test_taking_a_token_out_leaves_every_other_line_as_it_is() -> None:
    [alice, bob] = book()
    assert without_tokens(TEXT, frozenset({alice.id})) == "".join(
        line for line in TEXT.splitlines(keepends=True) if " alice " not in line
    )
    assert without_tokens(TEXT, frozenset()) == TEXT
    assert [each.id for each in book(without_tokens(TEXT, frozenset({alice.id})))] == [bob.id]
