"""Reading a stream.

reading         everything that reads one stream
reader          what an application holds: records, batches, Arrow
reader_front    what is the same behind gateways
options         how a reader behaves
ready_queue     what was fetched and not handed out
fetch_machine   where a fetch goes on, what is handed out, what is missing (pure)
fetcher         its shell: fetches records across segments, for a reader
segment_feed    reads the entries of one segment, in runs
entry_sequence  entries in order, and what is missing between them
record_batch    records that are still in their entries
reader_state    idle, stuck, how far behind
locator         the position of a seek, the number of a position, the end
seek_target     which segment a seek leads to
entry_search    which entry of a segment it is in
segment_entries single entries of a segment
splits          ranges of about equal size, for scans side by side
stream_source   the stream's client, record and ledgers
chain_follower  the stream's record, as last read
"""

from __future__ import annotations

from segments.read.locator import StreamEnd
from segments.read.options import OnGap, ReaderOptions, ReadOptions
from segments.read.reader import Reader
from segments.read.reader_front import ReaderFront
from segments.read.reader_state import Activity, Lag, ReaderState
from segments.read.reading import StreamReading
from segments.read.record_batch import RecordBatch
from segments.read.splits import StreamRange

__all__ = [
    "Activity",
    "Lag",
    "OnGap",
    "ReadOptions",
    "Reader",
    "ReaderFront",
    "ReaderOptions",
    "ReaderState",
    "RecordBatch",
    "StreamEnd",
    "StreamRange",
    "StreamReading",
]
