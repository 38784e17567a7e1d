"""Parts of a chunk of adds."""

from __future__ import annotations

from bookkeeper import codec
from bookkeeper.bookie.connections.add_chunk import alone, extend, replies_of
from bookkeeper.codec import Adds, Dialect


def chunk() -> Adds:
    """Three runs: entries 0..2 of ledger 7, 5 of ledger 8, 3..4 of ledger 7."""
    frames = b"".join(
        codec.encode_adds(Dialect.V3, ledger, first, [b"p" * 10] * count, -1, 0, b"k" * 20, 3, txn_base=1 << 40)[0]
        for ledger, first, count in ((7, 0, 3), (8, 5, 1), (7, 3, 2))
    )
    adds = codec.split_adds(bytearray(frames), 0, len(frames), 1 << 20, False)
    assert [(run.ledger_id, run.i0, run.i1) for run in adds.runs] == [(7, 0, 3), (8, 3, 4), (7, 4, 6)]
    return adds


def test_a_run_by_itself_has_its_records_its_replies_and_its_entries() -> None:
    adds = chunk()
    whole = codec.split_add_replies(bytearray(adds.acks), 0, len(adds.acks), 1 << 20)
    for run, reply in zip(adds.runs, whole.runs, strict=True):
        one = alone(adds, run)
        begin = adds.record_ends[run.i0 - 1] if run.i0 else adds.record_start
        assert one.records == bytes(adds.records[begin : adds.record_ends[run.i1 - 1]])
        assert list(one.entry_ids) == list(adds.entry_ids[run.i0 : run.i1])
        assert one.record_ends[-1] == len(one.records)
        assert one.ack_ends[-1] == len(one.acks)
        assert (one.runs[0].i0, one.runs[0].i1) == (0, run.i1 - run.i0)
        assert codec.split_add_replies(bytearray(one.acks), 0, len(one.acks), 1 << 20).runs == [reply]


def test_replies_of_some_runs_are_cut_out_in_order() -> None:
    adds = chunk()
    everything: list[tuple[int, int]] = []
    for run in adds.runs:
        extend(everything, run)
    assert everything == [(0, 6)]
    assert replies_of(adds, everything) is adds.acks
    some: list[tuple[int, int]] = []
    extend(some, adds.runs[0])
    assert bytes(replies_of(adds, some)) == bytes(adds.acks[: adds.ack_ends[2]])
    extend(some, adds.runs[2])
    assert some == [(0, 3), (4, 6)]
    expected = bytes(adds.acks[: adds.ack_ends[2]]) + bytes(adds.acks[adds.ack_ends[3] :])
    assert bytes(replies_of(adds, some)) == expected
