"""What can be set about a bookie's disk."""

from __future__ import annotations

from dataclasses import dataclass

from bookkeeper.errors import require, require_below, require_range

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig:
    """Directories, sizes and limits of one bookie's disk.

    The journal is best kept on a device of its own. The files' formats know several ledger directories; the
    engine serves one.
    """

    journal_dir: str
    """Where groups of records are made durable before they are acknowledged."""

    ledger_dir: str
    """Where entry logs, index and manifest live. May be the same directory as ``journal_dir``."""

    journal_file_bytes: int = 64 * MIB
    """Size of a journal file: written once with zeros, then recycled."""

    journal_spares: int = 3
    """How many journal files are kept for re-use once a checkpoint has covered them. With fewer than fill up between
    two checkpoints, new ones are written with zeros again and again."""

    journal_gap_ms: float = 0.0
    """Least time between the starts of two syncs, for disks that are paid or limited by operations. 0 = the
    journal clocks itself: while one group is made durable the next one collects."""

    inline_sync_us: float = 0.0
    """While the average sync takes at most this long, groups are written on the loop's thread, which saves two
    hand-overs between threads. After a sync of more than eight times as long they go to the journal's thread,
    for twenty times what it took and sixteen fast syncs: slow syncs hold up the loop for a twentieth of its time at
    most. 0 = never: right where the loop is shared with an application."""

    group_bytes: int = 2 * MIB
    """A group is handed to the journal at this size even if the one before it is still being written."""

    split_bytes: int = MIB // 4
    """A larger group goes to the entry log on a thread of its own while the next one is made durable; a smaller one in
    the same job, which saves handing it over."""

    inflight_bytes: int = 16 * MIB
    """Above this many bytes not yet durable, callers are told to pause; below half of it, to go on."""

    entry_log_bytes: int = 512 * MIB
    """An entry log is closed at this size and the next one begun."""

    checkpoint_bytes: int = 128 * MIB
    """After this many journalled bytes a checkpoint starts by itself; it bounds what a restart replays."""

    log_sync_bytes: int = 2 * MIB
    """Entry logs are synced after so many bytes, in the background, one sync at a time: whatever is synced at one go
    keeps the disk busy while adds wait, so this bounds the slowest of them. 0 = by checkpoints only."""

    cached_bytes: int = 256 * MIB
    """How much of the newest entries the page cache is to keep; older ones, once synced, are given back to the system
    (advice, as everything about the page cache). 0 = the kernel decides: right for a machine that does nothing else
    and whose readers come late."""

    index_segments: int = 8
    """With more index segments than this, the small ones are merged."""

    page_cache_pages: int = 2048
    """Index pages (up to 512 entries, 4 KiB) kept in memory."""

    reserve_bytes: int = 64 * MIB
    """Space kept back so that fences and recovery adds work on a full disk. Regular adds stop when less
    than this is free, and when a write finds no space the reserve file is given up."""

    batch_read_bytes: int = 1 * MIB
    """The most one batch read gathers, whatever was asked for."""

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
        require_range(self, "index_segments", least=2)
        require_range(self, "page_cache_pages", least=1)
