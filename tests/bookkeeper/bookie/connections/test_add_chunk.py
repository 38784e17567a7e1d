"""Parts of a chunk of adds."""

from __future__ import annotations

from bookkeeper import codec
from bookkeeper.bookie.connections.add_chunk import ChunkCutter, add_range, copy_run, replies_of
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


class Memories:
    """Gives memory to build records in, and notes which was asked for."""

    def __init__(self, *, lands: bool = True) -> None:
        self.journal, self.shared = memoryview(bytearray(4096)), bytearray(4096)
        self.lands = lands
        self.asked: list[str] = []

    def landing(self, size: int) -> tuple[memoryview, int] | None:
        self.asked.append("journal")
        return (self.journal, 100) if self.lands else None

    def scratch(self, size: int) -> bytearray:
        self.asked.append("shared")
        return self.shared


def frames(*runs: tuple[int, int, int]) -> bytearray:
    made = (codec.encode_adds(2, ledger, first, [b"p"] * n, -1, 0, b"k" * 20, 3)[0] for ledger, first, n in runs)
    return bytearray().join(made)


def test_one_run_after_another_is_built_in_the_journals_memory() -> None:
    memories = Memories()
    cutter = ChunkCutter(1 << 20, memories.landing, memories.scratch)
    one, two = frames((7, 0, 3)), frames((7, 3, 2), (8, 0, 1))
    expected = [codec.split_adds(data, 0, len(data), 1 << 20) for data in (one, one, two, one)]
    wheres = [["shared"], ["journal"], ["journal", "shared"], ["shared"]]
    for data, whole, where in zip((one, one, two, one), expected, wheres, strict=True):
        adds = cutter.cut(data, 0, len(data), False)
        assert (memories.asked, adds.runs, adds.acks) == (where, whole.runs, whole.acks)
        begin = adds.record_start
        assert bytes(adds.records[begin : adds.record_ends[-1]]) == bytes(whole.records)
        assert (adds.records is memories.journal) == (where == ["journal"]) and begin == 100 * (where == ["journal"])
        memories.asked.clear()


def test_where_the_journal_gives_no_memory_the_shared_one_is_used() -> None:
    memories = Memories(lands=False)
    cutter = ChunkCutter(1 << 20, memories.landing, memories.scratch)
    data = frames((7, 0, 3))
    for where in (["shared"], ["journal", "shared"]):
        assert cutter.cut(data, 0, len(data), False).records is memories.shared
        assert memories.asked == where
        memories.asked.clear()


def test_other_frames_between_adds_are_cut_from_the_shared_memory() -> None:
    memories = Memories()
    cutter = ChunkCutter(1 << 20, memories.landing, memories.scratch)
    plain = frames((7, 0, 1))
    for _ in range(2):
        cutter.cut(plain, 0, len(plain), False)
    mixed = plain + bytearray(b"\0\0\0\x04\x02\x02\0\0")
    adds = cutter.cut(mixed, 0, len(mixed), False)
    assert adds.slow and adds.records is memories.shared


def test_a_run_by_itself_has_its_records_its_replies_and_its_entries() -> None:
    adds = chunk()
    whole = codec.split_add_replies(bytearray(adds.acks), 0, len(adds.acks), 1 << 20)
    for run, reply in zip(adds.runs, whole.runs, strict=True):
        one = copy_run(adds, run)
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
        add_range(everything, run)
    assert everything == [(0, 6)]
    assert replies_of(adds, everything) is adds.acks
    some: list[tuple[int, int]] = []
    add_range(some, adds.runs[0])
    assert bytes(replies_of(adds, some)) == bytes(adds.acks[: adds.ack_ends[2]])
    add_range(some, adds.runs[2])
    assert some == [(0, 3), (4, 6)]
    expected = bytes(adds.acks[: adds.ack_ends[2]]) + bytes(adds.acks[adds.ack_ends[3] :])
    assert bytes(replies_of(adds, some)) == expected
