"""The settings of autorecovery, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass, field

from bookkeeper.errors import require
from bookkeeper.replication import CopyConfig

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AutorecoveryConfig:
    """What an auditor and a repair worker may do. Defaults are Apache BookKeeper's, unless a line says otherwise."""

    lost_bookie_delay_s: int = 30
    """How long a bookie may be away before its ledgers are repaired. Written to the metadata unless a value is there.
    Apache's default is 0; here a restart, which takes seconds, causes no repair."""
    mass_loss_share: float = 1 / 3
    """If more than this share of the bookies (and more than one) are lost together, nothing is marked until they come
    back or an operator asks for it. Ours alone: what looks like the loss of half a cluster is a network that is cut."""
    bookies_interval_s: float = 3600.0
    """All ledgers of lost bookies are looked at again after so long."""
    ledgers_interval_s: float = 7 * DAY_S
    """All ledgers' copies are checked after so long; 0 or less: never."""
    check_ledgers_per_s: float = 200.0
    """Ledgers that a check of all ledgers looks at in a second; 0 sets no limit."""
    sample_percent: float = 0.0
    """Of each copy, so many in a hundred entries are read and verified, besides the first and the last."""
    placement_interval_s: float = DAY_S
    """Whether the copies of closed ledgers stand in enough racks is checked after so long; 0 or less: never. Apache's
    default is never."""
    repair_placement: bool = False
    """Have the copies of ledgers that do not stand in enough racks moved apart. Without it they are counted."""
    poll_s: float = 5.0
    """The metadata are read again after so long, though no watch told of a change."""

    parallel: int = 4
    """Ledgers that one worker repairs at a time."""
    bytes_per_s: int = 0
    """The greatest speed of all copies of one worker together; 0 sets no limit."""
    grace_ms: int = 30_000
    """How long a ledger that is not closed, and whose last fragment names a lost bookie, is left to its writer. Then it
    is recovered, which ends the writer."""
    backoff_s: float = 5.0
    """A ledger that could not be repaired is tried again after so long; the pause doubles with each further try."""
    backoff_max_s: float = 300.0
    """The longest such pause."""
    copy: CopyConfig = field(default_factory=CopyConfig)

    def __post_init__(self) -> None:
        require(self.lost_bookie_delay_s >= 0, "lost_bookie_delay_s >= 0")
        require(0 < self.mass_loss_share <= 1, "0 < mass_loss_share <= 1")
        require(self.bookies_interval_s > 0, "bookies_interval_s > 0")
        require(self.check_ledgers_per_s >= 0, "check_ledgers_per_s >= 0")
        require(0 <= self.sample_percent <= 100, "0 <= sample_percent <= 100")
        require(self.poll_s > 0, "poll_s > 0")
        require(self.parallel >= 1, "parallel >= 1")
        require(self.bytes_per_s >= 0, "bytes_per_s >= 0")
        require(self.grace_ms >= 0, "grace_ms >= 0")
        require(0 < self.backoff_s <= self.backoff_max_s, "0 < backoff_s <= backoff_max_s")
