"""One bookie's share of a ledger, copied to another bookie.

copies        what a bookie holds of a ledger, by metadata (pure)
fragment      the machine that copies one bookie's share of a fragment to another bookie (pure)
throttle      bytes per second (pure)
repair        the shell around the machine: reads, writes, reads back, swaps
replace       choosing targets; ``replicate_fragment``
repair_lock   one repair of a ledger at a time
"""

from bookkeeper.replication.copying.copies import copies_of
from bookkeeper.replication.copying.repair import RepairContext
from bookkeeper.replication.copying.repair_lock import repair_lock
from bookkeeper.replication.copying.throttle import Throttle

__all__ = ["RepairContext", "Throttle", "copies_of", "repair_lock"]
