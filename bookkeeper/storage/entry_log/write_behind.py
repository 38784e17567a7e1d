"""Writes entry logs to the disk in steps between checkpoints, and drops old ones from the page cache.

Otherwise a checkpoint would sync everything at once, and the journal's writes would wait behind a hundred megabytes.
The page cache would also fill all memory, although old entries are rarely read, and a fresh page costs more than
writing to it. Durability does not depend on this module: a checkpoint itself syncs what its mark covers (K13).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from bookkeeper.seams import File
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import BLOCK, sync
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.entry_log.entry_logs import EntryLogs

_Stretch = tuple[File, int, int]
"""File, first byte, end."""


@dataclass(slots=True)
class WriteBehind:
    """Runs on the loop's thread. The syncs run on the checkpoint's worker, so never during a checkpoint."""

    config: StorageConfig
    entry_logs: EntryLogs
    workers: StorageWorkers
    failed: Callable[[BaseException], None]
    """Called when a sync has failed, which is final (K23)."""
    _log: int = 0
    _at: int = BLOCK
    """A sync has taken everything below this offset of the log ``_log``."""
    _end: int = BLOCK
    _running: bool = False
    _kept: deque[_Stretch] = field(default_factory=deque)
    _kept_bytes: int = 0

    def filled(self, log_id: int, end: int) -> None:
        """Everything below ``end`` of this log is written. Called after each group."""
        if log_id != self._log:
            self._keep(self._at, self._end)
            self._log, self._at = log_id, BLOCK
        self._end = end
        step = self.config.log_sync_bytes
        # sync only the log being filled: its file stays open until then
        if step and self._end - self._at >= step and not self._running and self._log == self.entry_logs.current:
            self._sync()

    def _sync(self) -> None:
        file = self.entry_logs.file(self._log)
        self._keep(self._at, self._end)
        self._at = self._end
        leave = list(self._surplus())
        self._running = True

        def job() -> None:
            sync(file)
            for old, begin, end in leave:
                old.forget(begin, end - begin)

        def done(_result: None, error: BaseException | None) -> None:
            self._running = False
            if error is not None:
                self.failed(error)

        self.workers.get("checkpoint").submit(job, done)

    def _keep(self, begin: int, end: int) -> None:
        log = self.entry_logs.logs.get(self._log)
        if log is not None and log.file is not None and end > begin:
            self._kept.append((log.file, begin, end))
            self._kept_bytes += end - begin

    def _surplus(self) -> list[_Stretch]:
        """The oldest stretches, which the page cache need not keep."""
        surplus = []
        while self.config.cached_bytes and self._kept_bytes > self.config.cached_bytes:
            stretch = self._kept.popleft()
            self._kept_bytes -= stretch[2] - stretch[1]
            surplus.append(stretch)
        if not self.config.cached_bytes:
            self._kept.clear()
            self._kept_bytes = 0
        return surplus
