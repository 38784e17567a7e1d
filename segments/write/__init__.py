"""Writing a stream.

writer            appends, back-pressure, waiting, the end
producer          idempotent appends under a name
grouping          which appends share an entry, and when it is sent (pure)
rolling           when a segment ends (pure)
append_machine    gathers appends, bounds what is pending (pure)
append_queue      its shell: sends groups, lets those who wait go on
entry_sender      groups to entries, and to those who wait for them
segment_machine   which segment, and what a failure, a roll or another owner does (pure)
entry_output      its shell: segment after segment
open_segment      entries on their way to one ledger
flight            an entry, and whom it answers
segment_change    the steps between two segments
ledger_allocator  the next ledger, made in advance
stream_owner      the record, held by its owner
take_over         claim, recover, read the end
snapshot          what a take-over begins with
"""

from __future__ import annotations

from segments.write.producer import Producer
from segments.write.rolling import RollReason
from segments.write.writer import Writer

__all__ = ["Producer", "RollReason", "Writer"]
