"""Cuts a chunk of adds, as the codec built it, into runs and their replies."""

from __future__ import annotations

from array import array

from bookkeeper.codec import Adds, Run


def alone(adds: Adds, run: Run) -> Adds:
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


def extend(ranges: list[tuple[int, int]], run: Run) -> None:
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
