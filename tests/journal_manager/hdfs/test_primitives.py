"""Java's and Hadoop's primitive types: bytes known from Hadoop, and everything read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager.errors import OpFormatError
from journal_manager.hdfs.primitives import (
    decode_modified_utf8,
    encode_modified_utf8,
    read_bool,
    read_bytes16,
    read_i8,
    read_string,
    read_text,
    read_vint,
    take,
    write_bool,
    write_i8,
    write_string,
    write_text,
    write_vint,
)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (-112, "90"),
        (128, "8f80"),
        (-113, "8770"),
        (1001, "8e03e9"),
        (-123, "877a"),
        (1795263562493, "8a01a1fe0c02fd"),
        (2**63 - 1, "887fffffffffffffff"),
        (-(2**63), "807fffffffffffffff"),
    ],
)
def test_hadoops_integers_of_variable_length(value: int, encoded: str) -> None:
    assert write_vint(value).hex() == encoded
    assert read_vint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_an_integer_is_read_back_wherever_it_stands(value: int, before: bytes) -> None:
    data = before + write_vint(value)
    assert read_vint(data + b"\xff", len(before)) == (value, len(data))


def test_an_integer_that_does_not_fit_is_not_written() -> None:
    with pytest.raises(ValueError, match="64 bits"):
        write_vint(2**64)


def test_java_writes_surrogates_and_the_null_character_in_its_own_way() -> None:
    assert encode_modified_utf8("a\0ß日😀").hex() == "61c080c39fe697a5eda0bdedb880"
    assert decode_modified_utf8(bytes.fromhex("61c080c39fe697a5eda0bdedb880")) == "a\0ß日😀"


@given(st.text(st.characters(), max_size=50))
def test_a_string_is_read_back(value: str) -> None:
    assert read_string(b"x" + write_string(value) + b"y", 1) == (value, 1 + len(write_string(value)))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_a_text_is_read_back(value: str) -> None:
    assert read_text(write_text(value), 0) == (value, len(write_text(value)))


def test_what_is_cut_short_is_refused() -> None:
    with pytest.raises(OpFormatError, match="4 bytes begins"):
        read_string(b"\x00\x04abc", 0)
    with pytest.raises(OpFormatError, match="left"):
        read_bytes16(b"\x00\x04abc", 0)
    with pytest.raises(OpFormatError, match="left"):
        read_text(write_vint(-1), 0)
    assert take(b"abc", 1, 2) == b"bc"
    with pytest.raises(OpFormatError, match="2 are left"):
        take(b"abc", 1, 3)


def test_truth_and_signs() -> None:
    assert [read_bool(write_bool(value), 0) for value in (True, False)] == [(True, 1), (False, 1)]
    with pytest.raises(OpFormatError, match="should be true"):
        read_bool(b"\x02", 0)
    assert [read_i8(write_i8(value), 0)[0] for value in (-128, -1, 0, 127)] == [-128, -1, 0, 127]
