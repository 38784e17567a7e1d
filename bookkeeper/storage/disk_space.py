"""The free space of a bookie's disk: when the disk becomes read-only, and the reserve for fences and recovery adds.

The reserve is a file of zeros. When a write finds no space the file is cut down to the part that only a start may use
(``StorageConfig.start_reserve_bytes``), so that fences, recovery adds and checkpoints still work (K26). A reserve that
is too small for both goes whole. It is made again once twice its size is free.
"""

from __future__ import annotations

from collections.abc import Callable

from bookkeeper.errors import in_words
from bookkeeper.seams import Disk
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import NO_SPACE, SyncFailedError, create_file, file_size, remove_files
from bookkeeper.storage.base.results import EngineState
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.journal.group_writer import spare_names

RESERVE = "reserve"


class DiskSpace:
    """Watches the free space and keeps the reserve. Runs on the loop's thread."""

    def __init__(
        self,
        config: StorageConfig,
        disk: Disk,
        workers: StorageWorkers,
        set_state: Callable[[EngineState, str], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """
        Args:
            set_state: called with writable or read-only, and the reason.
            failed: called when the reserve could not be synced, which is final (K23).
        """
        self._config, self._disk, self._workers = config, disk, workers
        self._set_state, self._failed = set_state, failed
        self._has_reserve = False
        self._making = False

    def begin(self) -> None:
        """Make the reserve if there is none, or only a part of it, and judge the free space. Blocks; part of the
        start."""
        self._has_reserve = reserve_size(self._config, self._disk) >= max(self._config.reserve_bytes, 1)
        if not self._config.reserve_bytes or self._has_reserve:
            return self.judge()
        if self._disk.space(self._config.ledger_dir).free <= 2 * self._config.reserve_bytes:
            return self._set_state(
                EngineState.READ_ONLY,
                f"less than twice the reserve of {self._config.reserve_bytes} bytes is free; free some space",
            )
        try:
            self._make()
            self._has_reserve = True
        except OSError as error:
            self._set_state(EngineState.READ_ONLY, f"the reserve file could not be written: {in_words(error)}")
        return None

    def judge(self) -> None:
        """Check the free space, and make the disk read-only or writable."""
        try:
            free = self._disk.space(self._config.ledger_dir).free
        except OSError as error:
            return self._set_state(EngineState.READ_ONLY, f"the free space cannot be read: {in_words(error)}")
        reserve = self._config.reserve_bytes
        if not reserve or (self._has_reserve and free >= reserve):
            return self._set_state(EngineState.WRITABLE, "the disk has enough free space")
        needed = reserve if self._has_reserve else 2 * reserve
        self._set_state(EngineState.READ_ONLY, f"{free} bytes are free, and new entries need {needed}; free some space")
        if not self._has_reserve and free > 2 * reserve and not self._making:
            self._making = True
            self._workers.get("checkpoint").submit(self._make, self._made)
        return None

    def room(self) -> int:
        """Bytes that may be written, with what a write may use of the reserve; 0 if nobody can tell."""
        try:
            free = self._disk.space(self._config.ledger_dir).free
        except OSError:
            return 0
        return free + (self._config.reserve_bytes - _kept_for_start(self._config) if self._has_reserve else 0)

    def no_space(self, error: OSError) -> bool:
        """A write failed with ``error``. If it found no space, make the disk read-only and give up what it may use of
        the reserve (K26).

        Returns:
            Whether that freed space. Then the write may be tried again at once.
        """
        if error.errno not in NO_SPACE:
            return False
        self._set_state(EngineState.READ_ONLY, f"a write found no space: {in_words(error)}; free some space")
        had, self._has_reserve = self._has_reserve, False
        return had and cut_reserve(self._config, self._disk)

    @property
    def _path(self) -> str:
        return f"{self._config.ledger_dir}/{RESERVE}"

    def _make(self) -> None:
        remove_files(self._disk, self._config.ledger_dir, [RESERVE])
        chunk = bytes(min(self._config.reserve_bytes, 1 << 20))
        chunks = [chunk] * (self._config.reserve_bytes // len(chunk))
        try:
            create_file(self._disk, self._path, *chunks)
        except OSError:
            remove_files(self._disk, self._config.ledger_dir, [RESERVE])
            raise

    def _made(self, _result: None, error: BaseException | None) -> None:
        self._making = False
        if isinstance(error, SyncFailedError):
            self._failed(error)
        elif error is None:
            self._has_reserve = True
            self.judge()


def reserve_size(config: StorageConfig, disk: Disk) -> int:
    """How large the reserve file is; 0: there is none, or nobody can tell."""
    path = f"{config.ledger_dir}/{RESERVE}"
    try:
        return file_size(disk, path) if disk.exists(path) else 0
    except OSError:
        return 0


def _kept_for_start(config: StorageConfig) -> int:
    """What running writes leave of the reserve; 0 of one that is too small for them and a start."""
    return config.start_reserve_bytes if config.reserve_bytes >= config.reserve_bytes_needed else 0


def cut_reserve(config: StorageConfig, disk: Disk) -> bool:
    """Give up what running writes may use of the reserve. Returns whether that freed space."""
    if not (kept := _kept_for_start(config)):
        return give_up_reserve(config, disk)
    try:
        file = disk.open(f"{config.ledger_dir}/{RESERVE}")
        try:
            freed = file.size() > kept
            if freed:
                file.truncate(kept)
        finally:
            file.close()
    except OSError:
        return False
    return freed


def give_up_reserve(config: StorageConfig, disk: Disk) -> bool:
    """Remove the reserve file (K26). Returns False if there is none, or it cannot be removed."""
    try:
        if not disk.exists(f"{config.ledger_dir}/{RESERVE}"):
            return False
        disk.unlink(f"{config.ledger_dir}/{RESERVE}")
    except OSError:
        return False
    return True


def give_up_space(config: StorageConfig, disk: Disk) -> bool:
    """Make room for a start: remove the reserve, or else all spare journal files but the one that it uses itself, which
    must be whole. Returns False if there is nothing to remove, or it cannot be removed."""
    if give_up_reserve(config, disk):
        return True
    try:
        names, whole = spare_names(disk, config.journal_dir), config.journal_file_bytes
        kept = [name for name in names if file_size(disk, f"{config.journal_dir}/{name}") >= whole][-1:]
        needless = [name for name in names if name not in kept]
        remove_files(disk, config.journal_dir, needless)
    except OSError:
        return False
    return bool(needless)
