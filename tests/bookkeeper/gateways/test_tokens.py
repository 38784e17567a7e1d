from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.auth.token_file import signing_key_line
from bookkeeper.errors import ConfigError
from bookkeeper.gateways.tokens import ACCESS_TOKEN_S, Caller, TokenBook, new_token, token_line
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
     "token a sha256:" + "0" * 64 + " relative", "token a sha256:" + "0" * 64 + " /a/"],
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


@pytest.mark.rule("X57")
def test_roots_are_directories_not_prefixes() -> None:
    bob = Caller("bob", ("/a/b",))
    assert [p for p in ("/", "/a", "/a/b", "/a/b/c", "/a/bc", "/b") if bob.holds(p)] == ["/a/b", "/a/b/c"]
    assert [p for p in ("/", "/a", "/a/b", "/a/", "/x") if bob.leads_to(p)] == ["/", "/a"]
    assert Caller("root").holds("/anything")


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
