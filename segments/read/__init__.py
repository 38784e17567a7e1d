"""Reading a stream.

reading       everything that reads one stream
reader        what an application holds: records, batches, Arrow
reader_front  what is the same behind gateways
fetch         fetches records across segments, for a reader; idle, stuck, how far behind
batches       entries in order, what was fetched and not handed out, records in their entries
positions     the position of a seek, the number of a position, the end, splits
source        the stream's node, and its ledgers in runs and one by one
options       how a reader behaves
known_streams reads parts from what others knew of them
blocking      the same for threads
"""

from segments.read.batches.record_batch import RecordBatch
from segments.read.fetch.reader_state import Activity, Lag, ReaderState
from segments.read.options import OnGap, ReaderOptions
from segments.read.positions.locator import StreamEnd
from segments.read.positions.splits import StreamRange
from segments.read.reader import Reader
from segments.read.reader_front import ReaderFront
from segments.read.reading import StreamReading
from segments.read.source.known_part import KnownPart

__all__ = [
    "Activity",
    "KnownPart",
    "Lag",
    "OnGap",
    "Reader",
    "ReaderFront",
    "ReaderOptions",
    "ReaderState",
    "RecordBatch",
    "StreamEnd",
    "StreamRange",
    "StreamReading",
]
