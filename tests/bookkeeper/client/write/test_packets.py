"""Frames that may have to be sent again: the same bytes, cut where they are asked for."""

from __future__ import annotations

import pytest

from bookkeeper import codec, wire
from bookkeeper.client.write.packets import APART_MIN, Framing, Packets
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.ledger import DigestScheme, DigestType, QuorumSpec
from bookkeeper.ledger.write import Encode

FULL = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
STRIPED = QuorumSpec(ensemble_size=4, write_quorum=2, ack_quorum=2)


DIGEST = DigestScheme(DigestType.CRC32C, b"")


def framing(dialect: wire.Dialect = wire.Dialect.V2, *, deferred: bool = False) -> Framing:
    return Framing(dialect, LedgerId(7), DIGEST, 1, deferred)


def filled(spec: QuorumSpec, *counts: int, size: int = 1) -> Packets:
    packets, first = Packets(spec, framing()), 0
    for count in counts:
        payloads = [b"%d" % (first + i) * size for i in range(count)]
        packets.encode(Encode(EntryId(first), count, EntryId(-1), 0), payloads)
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


@pytest.mark.parametrize("size", [1, APART_MIN], ids=["small", "large"])
@pytest.mark.parametrize("first", range(10))
@pytest.mark.parametrize("spec", [FULL, STRIPED], ids=str)
def test_any_stretch_is_cut_into_what_a_position_holds(spec: QuorumSpec, first: int, size: int) -> None:
    packets = filled(spec, 3, 1, 5, 1, size=size)
    for end in range(first + 1, 11):
        for position in range(spec.ensemble_size):
            held = list(spec.stripe(position, first, end - first))
            assert entries(packets, position, first, end - first) == held


@pytest.mark.parametrize("dialect", list(wire.Dialect))
def test_a_large_payload_is_sent_as_it_was_given(dialect: wire.Dialect) -> None:
    payloads = [bytes([i]) * (APART_MIN + i) for i in range(3)]
    packets = Packets(FULL, framing(dialect))
    packets.encode(Encode(EntryId(5), 3, EntryId(4), 100), payloads)
    pieces = packets.frames(1, 5, 3)
    assert all(any(piece is payload for piece in pieces) for payload in payloads)
    key = DIGEST.master_key
    frames, _ = codec.encode_adds(dialect, 7, 5, payloads, 4, 100, key, DIGEST.digest_type, b"", 1 << 40)
    assert b"".join(pieces) == frames
    assert packets.size == len(frames)


@pytest.mark.parametrize("small", [0, 1])
def test_a_run_with_a_small_payload_is_copied(small: int) -> None:
    payloads = [bytes(APART_MIN), bytes(APART_MIN)]
    payloads[small] = payloads[small][1:]
    packets = Packets(FULL, framing())
    packets.encode(Encode(EntryId(0), 2, EntryId(-1), 0), payloads)
    assert len(packets.frames(0, 0, 2)) == 1
    assert entries(packets, 0, 0, 2) == [0, 1]


def test_deferred_adds_have_their_flag_behind_a_large_payload() -> None:
    packets = Packets(FULL, framing(wire.Dialect.V3, deferred=True))
    packets.encode(Encode(EntryId(0), 1, EntryId(-1), 0), [bytes(APART_MIN)])
    data = b"".join(packets.frames(0, 0, 1))
    assert codec.split_adds(data, 0, len(data)).runs[0].deferred


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
