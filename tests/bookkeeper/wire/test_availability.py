"""Lists of entries that bookies hold."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.errors import MalformedFrameError
from bookkeeper.wire.availability import (
    GROUP,
    HEADER,
    RUNS_MAX,
    HeldEntries,
    SequenceGroup,
    decode_availability,
    encode_availability,
)


@given(st.sets(st.integers(0, 200)))
def test_what_a_bookie_of_ours_encodes_is_what_it_holds(ids: set[int]) -> None:
    runs: list[list[int]] = []
    for entry in sorted(ids):
        if runs and runs[-1][0] + runs[-1][1] == entry:
            runs[-1][1] += 1
        else:
            runs.append([entry, 1])
    held = decode_availability(encode_availability((first, first + count - 1) for first, count in runs))
    assert {entry for entry in range(202) if entry in held} == ids and -1 not in held
    assert len(held) == len(ids) and bool(held) == bool(ids)
    assert [list(run) for run in held.runs()] == [[f, f + n - 1] for f, n in runs]


def test_a_run_longer_than_a_group_can_say_is_two_groups() -> None:
    body = encode_availability([(0, 2**31 + 4)])
    assert (len(body), int.from_bytes(body[4:8], "big")) == (64 + 48, 2)


def test_periods_are_honoured_as_other_encoders_may_use_them() -> None:
    held = HeldEntries([SequenceGroup(0, 0, 3, 0), SequenceGroup(10, 22, 2, 4)])
    assert [entry for entry in range(40) if entry in held] == [0, 1, 2, 10, 11, 14, 15, 18, 19, 22, 23]
    assert len(held) == 11
    assert list(held.runs()) == [(0, 2), (10, 11), (14, 15), (18, 19), (22, 23)]
    assert all(b[0] > a[1] + 1 for a, b in pairwise(held.runs()))
    assert repr(held) == "HeldEntries(0..2, 10..11, 14..15, 18..19, 22..23)"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        HEADER.pack(1, 0),
        HEADER.pack(0, -1),
        HEADER.pack(0, 2) + GROUP.pack(0, 0, 1, 0),
        HEADER.pack(0, 1) + GROUP.pack(0, 0, 0, 0),
        HEADER.pack(0, 1) + GROUP.pack(5, 9, 2, 0),
        HEADER.pack(0, 1) + GROUP.pack(5, 9, 4, 2),
        HEADER.pack(0, 1) + GROUP.pack(9, 5, 1, 2),
        HEADER.pack(0, 1) + GROUP.pack(0, (1 << 63) - 1, 2, 2),
        HEADER.pack(0, 2) + GROUP.pack(5, 5, 4, 0) + GROUP.pack(8, 8, 1, 0),
    ],
)
def test_nonsense_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedFrameError, match="a list of entries"):
        decode_availability(body)


@pytest.mark.parametrize("runs", [[], [(3, 9)], [(0, 4), (5, 9)], [(0, 4), (6, 9)], [(2, 2), (4, 4), (6, 6)]])
def test_all_of_a_range_is_there_exactly_if_every_entry_is(runs: list[tuple[int, int]]) -> None:
    held = decode_availability(encode_availability(runs))
    for first in range(11):
        for last in range(first, 11):
            assert held.holds_all(first, last) == all(entry in held for entry in range(first, last + 1)), (first, last)


@pytest.mark.rule("X40")
def test_a_few_bytes_that_stand_for_any_number_of_entries_cost_nothing() -> None:
    """Cause: a bookie's answer of 24 bytes was made into as many runs as it wanted, by whoever lists or rolls back."""
    held = decode_availability(HEADER.pack(0, 1) + GROUP.pack(0, (1 << 63) - 3, 2, 3))
    assert 1 << 62 in held and held.last == (1 << 63) - 2 and len(held) > 1 << 62
    assert held.sequences > RUNS_MAX and repr(held) == f"HeldEntries({held.sequences} sequences)"
    with pytest.raises(MalformedFrameError, match="are believed"):
        held.runs()
    assert len(decode_availability(HEADER.pack(0, 1) + GROUP.pack(0, (1 << 63) - 1, 1, 1))) == (1 << 63) - 1
    assert HeldEntries().last == -1 and list(HeldEntries().runs()) == []
