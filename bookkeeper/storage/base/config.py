"""The settings of a bookie's disk."""

from __future__ import annotations

from dataclasses import dataclass

from bookkeeper.errors import require, require_below, require_range

MIB = 1024 * 1024

_SMALL_FILES = 32768
"""Headers, marker, manifest, and what files take beyond their size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig:
    """Directories, sizes and limits of one bookie's disk.

    The journal is best on a device of its own. The file formats support several ledger directories; the engine uses
    one.
    """

    journal_dir: str
    """Where groups of records are made durable before they are acknowledged."""

    ledger_dir: str
    """Where entry logs, index and manifest live. May be the same directory as ``journal_dir``."""

    journal_file_bytes: int = 64 * MIB
    """Bytes of a journal file. It is filled with zeros once, then recycled."""

    journal_spares: int = 3
    """How many covered journal files are kept for reuse. If more fill up between two checkpoints, new ones must be
    filled with zeros again and again."""

    journal_gap_ms: float = 0.0
    """Least milliseconds between the starts of two syncs, for disks with paid or limited operations. With 0 the journal
    clocks itself: while one group becomes durable the next one collects."""

    inline_sync_us: float = 0.0
    """While the average sync takes at most so many microseconds, the loop's thread writes the groups, which saves two
    hand-overs between threads. After a sync of more than eight times as long the journal's thread writes them, for
    twenty times that sync's time and sixteen fast syncs. So slow syncs take at most a twentieth of the loop's time. 0
    means never, for a loop that is shared with an application."""

    group_bytes: int = 2 * MIB
    """A group is handed to the journal at this size even if the one before it is still being written."""

    split_bytes: int = MIB // 4
    """A larger group is copied to the entry log by another thread, while the next one becomes durable. A smaller one is
    copied in the same job, which saves a hand-over."""

    inflight_bytes: int = 16 * MIB
    """Above so many bytes that are not durable yet callers are told to pause; below half of it, to continue."""

    entry_log_bytes: int = 512 * MIB
    """At this size an entry log is closed and the next one begun."""

    entry_log_per_ledger: bool = False
    """Whether each ledger has entry logs of its own. Then a ledger is read in long pieces, and goes without compaction
    when it is deleted; but each log with new bytes is a file that a checkpoint syncs, so it is for hundreds of ledgers
    at a time, not for tens of thousands. It may be changed at any start."""

    ledger_buffer_bytes: int = 64 * MIB
    """With a log per ledger: bytes in memory that are durable in the journal and wait for their logs. When half of it
    is full it is written, a piece for each ledger."""

    open_logs_max: int = 1000
    """Entry logs whose descriptors stay open for writing, with a log per ledger; the one that was written longest ago
    is synced and closed for another one. Ten times as many stay open for reading."""

    log_idle_s: float = 300.0
    """With a log per ledger: seconds without an add after which a ledger's log is finished and closed. An add that
    comes later begins another one. 0: never."""

    checkpoint_bytes: int = 128 * MIB
    """After so many journalled bytes a checkpoint starts by itself. This bounds what a restart replays."""

    log_sync_bytes: int = 2 * MIB
    """After so many bytes entry logs are synced in the background, one sync at a time. A sync keeps the disk busy while
    adds wait, so this bounds the slowest adds. With 0 only checkpoints sync."""

    cached_bytes: int = 256 * MIB
    """Bytes of the newest entries that the page cache should keep. Older synced entries are given back to the system
    (this is only advice to the kernel). With 0 the kernel decides, which is right for a machine that does nothing else
    and whose readers come late."""

    index_segments: int = 8
    """If there are more index segments, the small ones are merged."""

    page_cache_pages: int = 2048
    """Index pages (up to 512 entries, 4 KiB) kept in memory."""

    resident_ledgers_max: int = 100_000
    """Ledgers that stay in memory because they were asked for, about 1.1 kB each; the others are made from the index
    segments when they are asked for. Those that the next checkpoint has to write stay in any case."""

    reserve_bytes: int = 64 * MIB
    """Space kept back for a full disk. Regular adds stop when less than this is free. When a write finds no space, a
    part of the reserve is given up, for fences, recovery adds and checkpoints; the rest is left for the next start. 0:
    nothing is kept back."""

    batch_read_bytes: int = 1 * MIB
    """The most bytes of one batch read, whatever was asked for."""

    minor_compaction_ratio: float = 0.2
    """A minor compaction takes entry logs of which less than this share lives. 0 or less: there is none."""

    minor_compaction_interval_s: float = 3600.0
    """Seconds between two minor compactions. 0 or less: only when somebody asks for one."""

    major_compaction_ratio: float = 0.8
    """A major compaction takes entry logs of which less than this share lives. 0 or less: there is none."""

    major_compaction_interval_s: float = 86400.0
    """Seconds between two major compactions. 0 or less: only when somebody asks for one."""

    compaction_bytes_per_s: int = 16 * MIB
    """Bytes a second that a compaction reads and writes at most. 0 = no limit."""

    compaction_run_s: float = 3600.0
    """A compaction begins no further log after so many seconds; the next one goes on. 0 = no limit."""

    scrub_period_s: float = 7 * 86400.0
    """Seconds within which every stored byte is read and checked once, whoever asks for it. 0 or less: only when
    somebody asks for a scrub."""

    scrub_bytes_per_s: int = 4 * MIB
    """Bytes a second that a scrub reads at most; it reads more slowly if the period allows that. 0 = no limit."""

    @property
    def start_reserve_bytes(self) -> int:
        """What a start on a full disk may need: the groups that the journal has and no entry log (``inflight_bytes``,
        and what a log per ledger keeps in memory), an index of what it replays (a tenth of that),
        a journal file where no spare one is kept, and small files."""
        waiting = self.inflight_bytes + (self.ledger_buffer_bytes if self.entry_log_per_ledger else 0)
        journal = 0 if self.journal_spares else self.journal_file_bytes
        return waiting + self.checkpoint_bytes // 10 + journal + _SMALL_FILES

    @property
    def reserve_bytes_needed(self) -> int:
        """The least ``reserve_bytes`` with which a full disk goes on and can be started: as much for fences, recovery
        adds and checkpoints as for a start."""
        return 2 * self.start_reserve_bytes

    def reserve_problem(self) -> str | None:
        """Why the reserve may not suffice on a full disk; None: it does."""
        if self.reserve_bytes >= self.reserve_bytes_needed:
            return None
        return (
            f"reserve_bytes is {self.reserve_bytes}, and with the other sizes {self.reserve_bytes_needed} may be "
            "needed: a bookie whose disk is full may take no fences, and may not start until somebody makes room; "
            "raise reserve_bytes, or lower inflight_bytes and checkpoint_bytes"
        )

    def __post_init__(self) -> None:
        for name in ("journal_dir", "ledger_dir"):
            require(bool(getattr(self, name)), f"{name} is empty; it must be a directory")
        require_range(self, "journal_file_bytes", least=16384)
        require(
            self.journal_file_bytes % 4096 == 0,
            f"journal_file_bytes must be a multiple of 4096, not {self.journal_file_bytes}",
        )
        require_range(self, "journal_spares", "journal_gap_ms", "inline_sync_us", least=0)
        require_range(self, "group_bytes", least=4096, most=64 * MIB)
        require_below(self, "group_bytes", "inflight_bytes", or_equal=True)
        require_range(self, "entry_log_bytes", least=8192, below=2**38)
        require_range(self, "split_bytes", "log_sync_bytes", "cached_bytes", "reserve_bytes", least=0)
        require_range(self, "checkpoint_bytes", "batch_read_bytes", least=4096)
        require_range(self, "ledger_buffer_bytes", least=4096)
        require_range(self, "log_idle_s", least=0)
        require_range(self, "open_logs_max", least=1)
        require_range(self, "index_segments", least=2)
        require_range(self, "page_cache_pages", "resident_ledgers_max", least=1)
        require_range(self, "minor_compaction_ratio", "major_compaction_ratio", most=1)
        require_range(self, "compaction_bytes_per_s", "compaction_run_s", "scrub_bytes_per_s", least=0)
