"""Reading a ledger: which bookie is asked for which entries, and how far the ledger may be read.

last_add_confirmed   how far: from entries, from a covering set of bookies, from long polls
read_plan            how reads are cut and combined
replica_order        in which order the bookies are asked
batch_support        which bookies answer batch reads
reader               the machine that reads one run: which bookie is next, when to ask two, when to give up
hedged_reads         when reads that were sent together are late

The shells are in ``client/read``.
"""

from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.read.batch_support import BatchSupport
from bookkeeper.ledger.read.hedged_reads import HedgedReads
from bookkeeper.ledger.read.last_add_confirmed import KnownLac, LacByCoverage, LongPoll, Poll
from bookkeeper.ledger.read.read_plan import LoneReads, ReadShare, RunLength, lone_share, plan_reads
from bookkeeper.ledger.read.reader import (
    DeliverEntries,
    Effect,
    FailRead,
    FragmentReader,
    RefreshMetadata,
    ReportCorrupt,
    SendRead,
)
from bookkeeper.ledger.read.replica_order import ReplicaOrder

__all__ = [
    "BatchSupport",
    "DeliverEntries",
    "Effect",
    "FailRead",
    "FragmentReader",
    "HedgedReads",
    "KnownLac",
    "LacByCoverage",
    "LoneReads",
    "LongPoll",
    "Poll",
    "ReadShare",
    "RefreshMetadata",
    "ReplicaOrder",
    "ReportCorrupt",
    "RunLength",
    "SendRead",
    "WakeAt",
    "lone_share",
    "plan_reads",
]
