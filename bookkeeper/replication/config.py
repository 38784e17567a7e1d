"""What an operator may set of a copy and of a drain. Defaults stand here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field

from bookkeeper.errors import require_range


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyConfig:
    """Limits of one copy on its way."""

    window_bytes: int = 8 * 1024 * 1024
    """Bytes on their way from or to bookies above which no further run is read."""
    run_bytes: int = 384 * 1024
    """Approximate bytes of a run."""
    run_entries_max: int = 4096
    striped_run_entries_max: int = 64
    """Approximate bytes of a run if each entry needs a read of its own (E > Qw)."""
    retry_ms: int = 500
    """Pause before a failed step is tried again."""
    tries_max: int = 6
    """How often the steps of one run may fail, all together, before the attempt ends."""
    target_lives_max: int = 4
    """How often the copy begins anew because the target was started again."""
    runs_max: int = 32
    """Runs that are under way at a time."""

    def __post_init__(self) -> None:
        require_range(self, "window_bytes", "run_bytes", "run_entries_max", "striped_run_entries_max", least=1)
        require_range(self, "retry_ms", "tries_max", "target_lives_max", "runs_max", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainConfig:
    """How to drain."""

    targets: tuple[str, ...] = ()
    """The bookies that take what is moved. Empty: any writable bookie."""
    parallel: int = 4
    """Ledgers that are moved at a time."""
    bytes_per_s: int = 0
    """The greatest speed of all copies together; 0 sets no limit."""
    recover_open: bool = False
    """Recover ledgers that are not closed and whose writers do not move on."""
    grace_ms: int = 30_000
    """How long such a ledger is left alone before it is recovered."""
    while_writable: bool = False
    """Drain bookies that still take new entries, too. New fragments may go on appearing there."""
    owner: str = "bookkeeper-py"
    """Name of the repair locks' holder, for people who look at them."""
    copy: CopyConfig = field(default_factory=CopyConfig)

    def __post_init__(self) -> None:
        require_range(self, "parallel", least=1)
        require_range(self, "grace_ms", least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecommissionConfig:
    """How to take bookies out of the cluster."""

    drain: DrainConfig = field(default_factory=DrainConfig)
    """How their ledgers are moved."""
    wait_s: float = 60.0
    """How long it goes on while nothing changes: a ledger is stuck, or a bookie that holds nothing still runs."""
    poll_s: float = 5.0
    """Seconds between two looks at what holds it up."""
    give_up_deleted: bool = False
    """Forget them, too, if they have copies of deleted ledgers that can still be brought back: no drain moves these."""

    def __post_init__(self) -> None:
        require_range(self, "wait_s", "poll_s", least=0)
