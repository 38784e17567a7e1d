"""Frames that may have to be sent again: the same bytes, cut where they are asked for."""

from __future__ import annotations

import pytest

from bookkeeper import codec, wire
from bookkeeper.client.write.packets import Packets
from bookkeeper.ledger import QuorumSpec

FULL = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
STRIPED = QuorumSpec(ensemble_size=4, write_quorum=2, ack_quorum=2)


def filled(spec: QuorumSpec, *counts: int) -> Packets:
    packets, first = Packets(spec), 0
    for count in counts:
        payloads = [b"%d" % (first + i) for i in range(count)]
        frames, ends = codec.encode_adds(wire.Dialect.V2, 7, first, payloads, -1, 0, b"k" * 20, codec.Digest.DUMMY)
        packets.keep(first, count, frames, ends)
        first += count
    return packets


def entries(packets: Packets, position: int, first: int, count: int) -> list[int]:
    data = b"".join(packets.frames(position, first, count))
    return list(codec.split_adds(data, 0, len(data)).entry_ids)


@pytest.mark.rule("W8")
def test_the_newest_run_goes_to_everybody_as_it_is() -> None:
    packets = filled(FULL, 3, 5)
    one = packets.frames(0, 3, 5)[0]
    assert all(packets.frames(position, 3, 5)[0] is one for position in range(3))


@pytest.mark.parametrize("first", range(10))
@pytest.mark.parametrize("spec", [FULL, STRIPED], ids=str)
def test_any_stretch_is_cut_into_what_a_position_holds(spec: QuorumSpec, first: int) -> None:
    packets = filled(spec, 3, 1, 5, 1)
    for end in range(first + 1, 11):
        for position in range(spec.ensemble_size):
            held = list(spec.stripe(position, first, end - first))
            assert entries(packets, position, first, end - first) == held


def test_released_runs_are_dropped_whole() -> None:
    packets = filled(FULL, 3, 5)
    size = packets.size
    packets.release(1)
    assert packets.size == size  # entry 2 may still be sent
    packets.release(2)
    assert packets.size < size
    assert entries(packets, 0, 3, 5) == [3, 4, 5, 6, 7]
    packets.release(7)
    assert packets.size == 0
