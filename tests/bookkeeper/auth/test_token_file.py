"""The file that bookies and gateways share."""

from __future__ import annotations

import pytest

from bookkeeper.auth.token_file import TokenFile, revoked_line, signing_key_line
from bookkeeper.errors import ConfigError
from bookkeeper.gateways.tokens import TokenBook, new_token, token_line

TEXT = (
    "# keys\n\n"
    + signing_key_line("k1")
    + signing_key_line("k2")
    + token_line("etl", new_token(), ["/etl"])
    + revoked_line("0123456789abcdef")
    + revoked_line("principal:etl")
)


@pytest.mark.rule("X9")
def test_one_file_serves_bookies_and_gateways() -> None:
    file = TokenFile.parse(TEXT, "tokens")
    assert list(file.signing.keys) == ["k1", "k2"]
    assert file.revoked == {"0123456789abcdef", "principal:etl"}
    assert [(number, words[0]) for number, words in file.tokens] == [(5, "etl")]
    assert len(TokenBook.parse(TEXT, "tokens")) == 1


@pytest.mark.rule("X11")
def test_a_key_that_is_not_there_has_signed_nothing() -> None:
    signing = TokenFile.parse(TEXT, "tokens").signing
    signature = signing.sign("k1", "text")
    assert signing.has_signed("k1", "text", signature)
    assert not signing.has_signed("k2", "text", signature)
    assert not signing.has_signed("k1", "other", signature)
    stand_in = TokenFile.parse("signing-key k " + "00" * 32, "tokens").signing
    assert not signing.has_signed("k3", "text", stand_in.sign("k", "text")), "an unknown key is no key of zeros"


@pytest.mark.rule("X59")
def test_keys_are_not_shown() -> None:
    file = TokenFile.parse(TEXT, "tokens")
    assert repr(file.signing.keys["k1"]) not in repr(file) and "sha256" not in repr(file)


@pytest.mark.parametrize(
    "line", ["signing-key k1", "signing-key k1 abc", "signing-key 1k " + "0" * 64, "revoked etl", "revoke x", "k1"]
)
def test_another_line_is_refused_by_its_number_alone(line: str) -> None:
    with pytest.raises(ConfigError, match="tokens, line 2: expected") as caught:
        TokenFile.parse(f"\n{line}\n", "tokens")
    assert "0" * 64 not in str(caught.value)


def test_two_keys_of_one_name_are_an_error() -> None:
    with pytest.raises(ConfigError, match="line 2: another signing key"):
        TokenFile.parse(signing_key_line("k1") + signing_key_line("k1"), "tokens")


def test_lines_that_could_not_be_read_are_not_written() -> None:
    with pytest.raises(ConfigError, match="no name of a key"):
        signing_key_line("a b")
    with pytest.raises(ConfigError, match="neither the id"):
        revoked_line("etl")


@pytest.mark.rule("X40")
@pytest.mark.parametrize("digits", [63, 65, 127, 129, 130])
def test_a_key_that_lost_a_digit_is_a_bad_line_like_any_other(digits: int) -> None:
    with pytest.raises(ConfigError, match="tokens, line 2") as refused:
        TokenFile.parse(f"# keys\nsigning-key k1 {'a' * digits}\n", "tokens")
    assert "aaaa" not in str(refused.value)
