"""Names: addresses and bookie ids, as people write them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.ids import Address, IdRanges, bookie_id, counted_address, is_loopback


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:3181", Address("localhost", 3181)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:65535", Address("::1", 65535)),
    ],
)
def test_an_address_is_read_and_written_alike(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert str(address) == text


@pytest.mark.parametrize("text", ["", "host", ":3181", "host:", "host:port", "host:-1", "host:65536", "host:3 "])
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        Address.parse(text)


@pytest.mark.parametrize("text", ["b1", "host.example.org:3181", "A-b_c.9"])
def test_a_bookie_id_is_taken_as_it_is(text: str) -> None:
    assert bookie_id(text) == text


@pytest.mark.parametrize("text", ["", "a b", "a/b", "ä", "readonly", "ReadOnly", "a\n"])
def test_what_cannot_be_a_path_s_name_is_no_bookie_id(text: str) -> None:
    with pytest.raises(ValueError, match="not a bookie id"):
        bookie_id(text)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5))), st.integers(0, 50), st.integers(0, 50))
def test_ranges_of_ids_are_a_set_of_them(added: list[tuple[int, int]], first: int, last: int) -> None:
    ranges, ids = IdRanges(), set[int]()
    for begin, more in added:
        ranges.add(begin, begin + more)
        ids |= set(range(begin, begin + more + 1))
    assert [each for each in range(60) if each in ranges] == sorted(ids)
    runs = list(ranges)
    assert all(end + 1 < begin for (_, end), (begin, _) in pairwise(runs)), "neighbours are one run"
    assert len(ranges) == len(runs)
    assert IdRanges(runs) == ranges.copy() == ranges
    if first <= last:
        assert ranges.covers(first, last) == (set(range(first, last + 1)) <= ids)


@given(st.sets(st.integers(0, 30)), st.lists(st.integers(0, 30)))
def test_ids_are_taken_out_of_ranges(ids: set[int], gone: list[int]) -> None:
    ranges = IdRanges((number, number) for number in ids)
    for number in gone:
        ranges.discard(number)
        ids.discard(number)
    assert ranges == IdRanges((number, number) for number in ids)


def test_a_range_that_ends_before_it_begins_is_none() -> None:
    with pytest.raises(ValueError, match="from 5 to 4"):
        IdRanges().add(5, 4)


@pytest.mark.rule("X34")
@pytest.mark.parametrize(
    ("host", "counts"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8:0:1:2:3:4:5", "2001:db8:0:1::/64"),
        ("2001:db8:0:1::", "2001:db8:0:1::/64"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("", ""),
        ("in-process", "in-process"),
        ("a:b", "a:b"),
    ],
)
def test_a_peer_counts_as_its_address_or_its_network(host: str, counts: str) -> None:
    assert counted_address(host) == counts


def test_loopback_is_what_only_this_machine_reaches() -> None:
    for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        assert is_loopback(host)
    for host in ("0.0.0.0", "::", "10.0.0.1", "localhost.example.org", "example.org", ""):
        assert not is_loopback(host)
