"""One bookie's share of a ledger, copied to another bookie.

copies        what a bookie holds of a ledger, by metadata (pure)
fragment      the machine that copies one bookie's share of a fragment to another bookie (pure)
throttle      bytes per second (pure)
repair        the shell around the machine: reads, writes, reads back, swaps
replace       choosing targets; ``replicate_fragment``
repair_lock   one repair of a ledger at a time
"""

from __future__ import annotations

from bookkeeper.replication.copying.copies import Copy, PartialCopy, copies_of, copy_at
from bookkeeper.replication.copying.fragment import CopyOutcome, FragmentCopy
from bookkeeper.replication.copying.repair import RepairContext, RepairResult, copy_fragment, digest_of, held_by
from bookkeeper.replication.copying.repair_lock import holds_lock, lock_path, repair_lock
from bookkeeper.replication.copying.replace import replace_copy, replicate_fragment, replicate_unlocked
from bookkeeper.replication.copying.throttle import Throttle

__all__ = [
    "Copy",
    "CopyOutcome",
    "FragmentCopy",
    "PartialCopy",
    "RepairContext",
    "RepairResult",
    "Throttle",
    "copies_of",
    "copy_at",
    "copy_fragment",
    "digest_of",
    "held_by",
    "holds_lock",
    "lock_path",
    "repair_lock",
    "replace_copy",
    "replicate_fragment",
    "replicate_unlocked",
]
