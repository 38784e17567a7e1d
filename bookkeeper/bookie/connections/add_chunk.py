"""Cuts what a connection received into adds, and a chunk of adds into runs and their replies."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from bookkeeper import codec
from bookkeeper.codec import Adds, Run
from bookkeeper.seams import Buffer


class ChunkCutter:
    """Chooses where the records of one connection's chunks are built.

    Those of a single run are built in the journal's memory (``landing``), where the engine takes them as they are;
    others in memory that all connections share (``scratch``), from where it copies them. That a chunk is one run is
    known when it is cut: it is expected if the chunk before was one, and the chunk is cut again if it is none.
    """

    __slots__ = ("_frame_max", "_landing", "_one_run", "_scratch")

    def __init__(
        self,
        frame_max: int,
        landing: Callable[[int], tuple[memoryview, int] | None],
        scratch: Callable[[int], bytearray],
    ) -> None:
        """``landing`` is :meth:`Engine.landing`; ``scratch`` gives memory for the records of so large a chunk."""
        self._frame_max, self._landing, self._scratch = frame_max, landing, scratch
        self._one_run = False

    def cut(self, chunk: Buffer, start: int, end: int, v2: bool) -> Adds:
        """As ``codec.split_adds``. The records are valid until the next call of the engine or of any cutter."""
        landing = self._landing(end - start) if self._one_run else None
        if landing is not None:
            adds = codec.split_adds(chunk, start, end, self._frame_max, v2, *landing)
            if not adds.slow and len(adds.runs) <= 1:
                assert not adds.full, "a record is smaller than its frame"
                return adds
        adds = codec.split_adds(chunk, start, end, self._frame_max, v2, self._scratch(end - start))
        assert not adds.full, "a record is smaller than its frame"
        self._one_run = not adds.slow and len(adds.runs) <= 1
        return adds


def copy_run(adds: Adds, run: Run) -> Adds:
    """Copy one run out of the chunk, so that it may wait while the chunk's buffers are used again."""
    i0, i1 = run.i0, run.i1
    begin = adds.record_ends[i0 - 1] if i0 else adds.record_start
    ack_begin = adds.ack_ends[i0 - 1] if i0 else 0
    return adds._replace(
        records=bytes(memoryview(adds.records)[begin : adds.record_ends[i1 - 1]]),
        record_start=0,
        record_ends=array("q", [end - begin for end in adds.record_ends[i0:i1]]),
        acks=bytes(memoryview(adds.acks)[ack_begin : adds.ack_ends[i1 - 1]]),
        ack_ends=array("q", [end - ack_begin for end in adds.ack_ends[i0:i1]]),
        entry_ids=adds.entry_ids[i0:i1],
        runs=[run._replace(i0=0, i1=i1 - i0)],
        slow=[],
        slow_after=[],
    )


def add_range(ranges: list[tuple[int, int]], run: Run) -> None:
    """Add the run's range of adds to ``ranges``."""
    if ranges and ranges[-1][1] == run.i0:
        ranges[-1] = (ranges[-1][0], run.i1)
    else:
        ranges.append((run.i0, run.i1))


def replies_of(adds: Adds, taken: list[tuple[int, int]]) -> bytes | memoryview:
    """The success replies of these adds."""
    if taken == [(0, len(adds.ack_ends))]:
        return adds.acks
    view = memoryview(adds.acks)
    slices = [view[adds.ack_ends[i0 - 1] if i0 else 0 : adds.ack_ends[i1 - 1]] for i0, i1 in taken]
    return slices[0] if len(slices) == 1 else b"".join(slices)
