"""Lists of directives are read as RFC 2831 writes them, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.auth.sasl.directives import Directives, encode, quoted


def parse(message: bytes) -> Directives:
    return Directives.parse(message, most=4096)


def test_values_stand_alone_or_in_quotes() -> None:
    read = parse(b',, realm="a \\"b\\\\" , NONCE = x1 ,\t,qop="auth,auth-int",realm="second",')
    assert read.all("realm") == [b'a "b\\', b"second"]
    assert read.one("nonce") == b"x1" and read.required("qop") == b"auth,auth-int"
    assert read.one("cipher") is None and read.all("cipher") == []


@pytest.mark.rule("X40")
@pytest.mark.parametrize(
    "message",
    [
        b"realm",
        b"=x",
        b"realm=",
        b'realm="open',
        b'realm="open\\"',
        b'realm="a"b',
        b"a=b c=d",
        b"a=b;c=d",
        b'a="line\nbreak"',
        b'a="nul\0"',
        b"a=\xff",
        b'"a"=b',
        b"a" * 65 + b"=b",
    ],
)
def test_another_form_is_refused_whole(message: bytes) -> None:
    with pytest.raises(ValueError, match="byte"):
        parse(message)


@pytest.mark.rule("X40")
def test_size_is_looked_at_first() -> None:
    whole = b"a=" + b"b" * 97
    assert Directives.parse(whole, most=100).one("a") == b"b" * 97
    with pytest.raises(ValueError, match="99 bytes"):
        Directives.parse(whole, most=99)


def test_what_must_stand_there_once() -> None:
    read = parse(b'a=1,a=2,b=""')
    with pytest.raises(ValueError, match="a 2 times"):
        read.one("a")
    for name in ("b", "c"):
        with pytest.raises(ValueError, match=f"has no {name}"):
            read.required(name)


@given(st.binary(max_size=200))
@pytest.mark.rule("X40")
def test_any_bytes_are_read_or_refused(message: bytes) -> None:
    try:
        read = parse(message)
    except ValueError:
        return
    assert isinstance(read.all("a"), list)


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "nonce"]), st.text(st.characters(categories=["L", "N", "P", "S"]))))
)
def test_what_is_written_is_read_again(values: list[tuple[str, str]]) -> None:
    read = parse(encode((name, quoted(value.encode())) for name, value in values))
    for name in ("a", "b", "nonce"):
        assert read.all(name) == [value.encode() for each, value in values if each == name]
