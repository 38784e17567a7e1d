"""Writing a stream.

opening    opens a writer, and producers that share one
take_over  claim, recover, read the end
writer     appends, back-pressure, waiting, the end
producer   idempotent appends under a name
writer_front  what both are, also behind gateways
output     groups of appends become entries, segment after segment
segment    when a segment ends, and how the next one begins
ledgers    a ledger made in advance, a ledger that is filled
state      what the writer knows: the record, the end, the producers
appends    which appends share an entry, and how many may be pending
"""

from segments.write.producer import Producer
from segments.write.segment.rolling import RollReason
from segments.write.writer import Writer

__all__ = ["Producer", "RollReason", "Writer"]
