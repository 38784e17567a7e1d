from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_wal.webhdfs.errors import InvalidPathError, NameTooLongError
from spark_wal.webhdfs.files.paths import (
    BadTargetError,
    check_new,
    child_of,
    decode_path,
    encode_path,
    is_below,
    is_temporary,
    name_of,
    normalize,
    parent_of,
)

UUID = "0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f"


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("", "/"),
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("//a///b//", "/a/b"),
        ("/a%2Fb", "/a/b"),
        ("/a+b", "/a+b"),
        ("/a%20b%C3%A9", "/a bé"),
        ("/a%FFb", "/a�b"),
        ("/a/../b", "/a/../b"),
    ],
)
def test_decoding(raw: str, path: str) -> None:
    assert decode_path(raw) == path


@pytest.mark.parametrize("raw", ["/a%zz", "/a%", "/a%2", "/a%00b"])
def test_what_is_no_path_at_all(raw: str) -> None:
    with pytest.raises(BadTargetError):
        decode_path(raw)


@given(st.lists(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1), max_size=4))
def test_encoding_and_decoding_are_inverse(names: list[str]) -> None:
    path = normalize("/" + "/".join(names))
    assert decode_path(encode_path(path)) == path


def test_parents_names_and_below() -> None:
    assert parent_of("/a/b") == "/a"
    assert parent_of("/a") == parent_of("/") == "/"
    assert name_of("/a/b") == "b"
    assert child_of("/", "a") == "/a"
    assert child_of("/a", "b") == "/a/b"
    assert is_below("/a/b", "/a")
    assert is_below("/a", "/")
    assert not is_below("/ab", "/a")
    assert not is_below("/a", "/a")


@pytest.mark.parametrize("path", ["/a/.", "/..", "/a:b/c"])
def test_names_nothing_may_have(path: str) -> None:
    with pytest.raises(InvalidPathError):
        check_new(path)


def test_a_name_has_255_bytes_at_most() -> None:
    check_new("/" + "é" * 127)
    with pytest.raises(NameTooLongError):
        check_new("/" + "é" * 128)


@pytest.mark.parametrize("name", [f".0.{UUID}.tmp", f".1.delta.{UUID}.TID12.tmp", f".metadata.{UUID}.tmp"])
def test_sparks_temporary_names(name: str) -> None:
    assert is_temporary(f"/c/{name}")


@pytest.mark.parametrize(
    "name", [f"0.{UUID}.tmp", f".0.{UUID}", ".0.tmp", f".0.{UUID.upper()}.tmp", f".0.{UUID}.TID.tmp", f".{UUID}.tmp"]
)
@pytest.mark.rule("S4")
def test_no_other_name_may_be_answered_before_it_is_durable(name: str) -> None:
    assert not is_temporary(f"/c/{name}")
