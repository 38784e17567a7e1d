from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.errors import StreamConfigError, StreamNameError
from segments.names import (
    check_owner_name,
    check_short_name,
    check_stream_name,
    escape_name,
    new_stream_id,
    unescape_name,
)


@pytest.mark.parametrize("name", ["flights", "shop/orders", "a.b", "größe/é", "x" * 512, "100%"])
def test_names_that_can_be(name: str) -> None:
    assert check_stream_name(name) == name


def test_a_leading_slash_is_taken_away() -> None:
    """SEG-25 leading `/` normalised"""
    assert check_stream_name("/shop/orders") == "shop/orders"


PLAIN = ["", "/", "//a", "a//b", "a/", "a b", ".hidden", "a/.b", "a/..", ".", "..", "<x>", "a<b", "a\0b", "a\nb"]


@pytest.mark.parametrize("name", [*PLAIN, "\x85", "x" * 513, "\ud800", 'a"b', "a\\b"])
def test_names_that_cannot_be(name: str) -> None:
    """SEG-25 names: reserved prefixes, spaces, empty parts, relative parts refused"""
    with pytest.raises(StreamNameError):
        check_stream_name(name)


def test_a_cursor_or_producer_may_begin_with_a_dot() -> None:
    assert check_short_name(".x", "cursor") == ".x"
    with pytest.raises(StreamNameError, match="a cursor needs a name"):
        check_short_name("", "cursor")


@given(st.text(st.characters(blacklist_categories=["Cs"]), min_size=1))
def test_an_escaped_name_is_one_part_of_a_path(name: str) -> None:
    part = escape_name(name)
    assert "/" not in part and part not in (".", "..") and part.isascii()
    assert unescape_name(part) == name


@pytest.mark.parametrize("name", ["", "etl", "spiffe://example.org/etl", "someone@example.org"])
def test_what_a_gateway_may_know_somebody_by(name: str) -> None:
    assert check_owner_name(name) == name


@pytest.mark.parametrize("name", ["role:writer", "tenant:red", "anyone", "token:etl", "e*l", " etl", "x" * 513])
def test_what_means_nobody_or_several_owns_nothing(name: str) -> None:
    with pytest.raises(StreamConfigError, match="nothing was done"):
        check_owner_name(name)


def test_an_id_has_128_bits() -> None:
    assert new_stream_id(5) == "0" * 31 + "5"
    assert new_stream_id(2**130 + 1) == "0" * 31 + "1"


@pytest.mark.parametrize("name", [None, 5, b"name", ["name"]])
def test_a_name_of_another_type_is_refused(name: Any) -> None:
    """Cause: nothing looked at the type, so that a caller got an AttributeError of this module's inside."""
    with pytest.raises(StreamNameError, match="a stream's name is a text"):
        check_stream_name(name)
    with pytest.raises(StreamNameError, match="a cursor's name is a text"):
        check_short_name(name, "cursor")
