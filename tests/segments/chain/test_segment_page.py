from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.chain import SegmentPage
from segments.chain.segment_page import VERSION, SegmentList
from segments.errors import ChainCorruptError, ChainStepError, UnsupportedStreamFormatError
from tests.segments.chain.pages import many

PAGE = SegmentPage.of(many(5), 3)


def test_a_page_holds_its_segments() -> None:
    assert PAGE.value is not None
    read = replace(PAGE, value=None).with_value(PAGE.value)
    assert tuple(read.segments()) == many(5) and [read.segment(n) for n in range(5)] == list(many(5))
    assert (read.first, read.last, read.count, read.records, read.size) == (1, 5, 5, 15, 500)
    assert read.end_seq_no == many(5)[-1].end_seq_no and read.tail == many(5)[-1].last


def test_pages_of_other_owners_have_other_keys() -> None:
    keys = {PAGE.key, SegmentPage.of(many(5), 4).key, SegmentPage.of(many(4), 3).key, SegmentPage.of(many(4, 2), 3).key}
    assert len(keys) == 4 and PAGE.key == "0000000001-0000000005-3"


@pytest.mark.parametrize("at", range(0, len(PAGE.value or b""), 7))
def test_a_changed_byte_is_noticed(at: int) -> None:
    assert PAGE.value is not None
    value = bytearray(PAGE.value)
    value[at] ^= 0x20
    with pytest.raises((ChainCorruptError, UnsupportedStreamFormatError)):
        PAGE.with_value(bytes(value))


def test_another_page_a_short_one_and_a_newer_one_are_refused() -> None:
    assert PAGE.value is not None
    other = SegmentPage.of(many(5, 6), 3).value
    for value in (other or b"", PAGE.value[:-1], b""):
        with pytest.raises(ChainCorruptError, match="damaged"):
            PAGE.with_value(value)
    newer = bytearray(PAGE.value)
    newer[4] = VERSION + 1
    with pytest.raises(UnsupportedStreamFormatError, match=f"format {VERSION + 1}"):
        PAGE.with_value(bytes(newer))


def test_the_oldest_segments_of_a_page_go() -> None:
    rest = PAGE.without(2).without(1)
    assert tuple(rest.segments()) == many(5)[3:] and (rest.count, rest.gone, rest.first_listed) == (2, 3, 4)
    assert (rest.records, rest.size, rest.start_seq_no) == (6, 200, many(5)[3].start_seq_no)
    assert (rest.key, rest.end_seq_no, rest.tail) == (PAGE.key, PAGE.end_seq_no, PAGE.tail)
    assert [rest.index_from(number) for number in range(1, 7)] == [0, 0, 0, 0, 1, 2]


def test_a_page_that_was_not_read_says_so() -> None:
    with pytest.raises(ChainStepError, match="not read"):
        replace(PAGE, value=None).segment(0)


@given(st.lists(st.integers(1, 4), max_size=4), st.integers(0, 3), st.integers(0, 2))
def test_a_list_of_pages_and_segments_is_a_sequence(sizes: list[int], recent: int, gone: int) -> None:
    plain, pages, at = many(sum(sizes) + recent), [], 0
    for size in sizes:
        pages.append(SegmentPage.of(plain[at : at + size], 1))
        at += size
    if pages and gone < pages[0].count:
        pages[0], plain = (pages[0].without(gone) if gone else pages[0]), plain[gone:]
    listed = SegmentList(pages, plain[len(plain) - recent :])
    assert len(listed) == len(plain) and tuple(listed) == plain and listed[:] == plain
    for index in range(-len(plain), len(plain)):
        assert listed[index] == plain[index]
    assert listed[1:-1] == plain[1:-1] and list(reversed(listed)) == list(reversed(plain))
    for index in (len(plain), -len(plain) - 1):
        with pytest.raises(IndexError):
            listed[index]
