"""Writing a ledger: the machine, its effects, and what stands in front of it. The shell is ``client/write``.

writer             the machine: confirms entries, and hands every event to its parts
|-- progress           which entries were given, acknowledged and confirmed; what is not acknowledged yet, in runs
|-- ensemble_changes   performs the verdicts of the ensemble; asks for changes, uses bookies again
|-- member_shares      which entries each bookie is sent, and which it never got
|-- force_rounds       which bookies have made what durable, for a ledger with deferred sync
|-- writer_end         whether it is open, why it is not, whether it may still close the ledger
|   `-- end_reasons        the errors with which it ends
`-- alarm              when it has to be woken
effects            what it asks its shell to do
advanced_order     in front of it: puts entries whose ids the caller chose into order
append_runs        in front of it, too: how appends become runs
refused_adds       behind it: adds that a bookie had no room for, and when they are sent again

The bookies that it writes to are in :mod:`bookkeeper.ledger.ensemble`.
"""

from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.write.advanced_order import AdvancedOrder
from bookkeeper.ledger.write.append_runs import RUN_BYTES, RUN_ENTRIES, LoneAppends, cut_runs
from bookkeeper.ledger.write.effects import (
    ChangeEnsemble,
    ChangeFailure,
    CloseFailed,
    CloseMetadata,
    Confirm,
    Effect,
    Encode,
    FailAdds,
    ForceDone,
    ForceFailed,
    MarkMissing,
    PublishLac,
    Release,
    ResumeCallers,
    SendAdds,
    SendForce,
    WatchIncarnation,
)
from bookkeeper.ledger.write.refused_adds import RefusedAdds
from bookkeeper.ledger.write.writer import LedgerWriter
from bookkeeper.ledger.write.writer_end import WriterState

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
    "ForceDone",
    "ForceFailed",
    "LedgerWriter",
    "LoneAppends",
    "MarkMissing",
    "PublishLac",
    "RefusedAdds",
    "Release",
    "ResumeCallers",
    "SendAdds",
    "SendForce",
    "WakeAt",
    "WatchIncarnation",
    "WriterState",
    "cut_runs",
]
