from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.secret import Secret
from spark_wal.hadoop_tokens import HadoopToken, TokenFormatError, password_of, token_file


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 300])
def test_the_password_comes_back(size: int) -> None:
    token = HadoopToken("alice", Secret("x" * size), "127.0.0.1:9871")
    assert password_of(token.url_string().reveal()) == "x" * size


def test_it_is_written_as_hadoop_writes_it() -> None:
    """By hand: lengths, then bytes; -113 announces one byte of length."""
    data = HadoopToken("a", Secret("p" * 200), "1.2.3.4:5", "K").encode()
    assert data == b"\x09\x00\x01a\x00\x00\x00\x00\x00\x00" + b"\x8f\xc8" + b"p" * 200 + b"\x01K" + b"\x091.2.3.4:5"
    assert token_file([HadoopToken("a", Secret("p"), "s", "K")]).startswith(b"HDTS\x00\x01\x01s\x09\x00\x01a")


@pytest.mark.rule("X40")
@given(st.binary(max_size=60))
def test_other_bytes_are_no_token(data: bytes) -> None:
    try:
        password_of(base64.urlsafe_b64encode(data).decode().rstrip("="))
    except TokenFormatError:
        pass


@pytest.mark.parametrize("text", ["", "AAAA", "A", "ä", "x" * 10_000, "j_______"])
def test_other_texts_are_no_token(text: str) -> None:
    with pytest.raises(TokenFormatError):
        password_of(text)
