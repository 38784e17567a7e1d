"""Writing a ledger: the machine, its effects, and what stands in front of it. The shell is ``client/write``.

writer            the machine: numbers entries, confirms them, meets failures, closes
effects           what it asks its shell to do
writer_parts      its state, and its pending adds in runs
force_rounds      which bookies have made what durable, for a ledger with deferred sync
advanced_order    in front of the writer: puts entries whose ids the caller chose into order
append_runs       in front of it, too: how appends become runs
refused_adds      behind it: adds that a bookie had no room for, and when they are sent again

The bookies that it writes to are in :mod:`bookkeeper.ledger.ensemble`.
"""

from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.write.advanced_order import AdvancedOrder
from bookkeeper.ledger.write.append_runs import RUN_BYTES, RUN_ENTRIES, LoneAppends, cut
from bookkeeper.ledger.write.effects import (
    ChangeEnsemble,
    ChangeFailure,
    CloseFailed,
    CloseMetadata,
    Confirm,
    Effect,
    Encode,
    FailAdds,
    Forced,
    ForceFailed,
    MoreRoom,
    NoteMissing,
    PublishLac,
    Release,
    SendAdds,
    SendForce,
    WatchIncarnation,
)
from bookkeeper.ledger.write.refused_adds import RefusedAdds
from bookkeeper.ledger.write.writer import LedgerWriter
from bookkeeper.ledger.write.writer_parts import WriterState

__all__ = [
    "RUN_BYTES",
    "RUN_ENTRIES",
    "AdvancedOrder",
    "ChangeEnsemble",
    "ChangeFailure",
    "CloseFailed",
    "CloseMetadata",
    "Confirm",
    "Effect",
    "Encode",
    "FailAdds",
    "ForceFailed",
    "Forced",
    "LedgerWriter",
    "LoneAppends",
    "MoreRoom",
    "NoteMissing",
    "PublishLac",
    "RefusedAdds",
    "Release",
    "SendAdds",
    "SendForce",
    "WakeAt",
    "WatchIncarnation",
    "WriterState",
    "cut",
]
