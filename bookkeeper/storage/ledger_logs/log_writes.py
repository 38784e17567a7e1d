"""Carries out a write plan of the logs of ledgers: makes files, writes, syncs those that give way. Blocks.

A file is made when its first bytes are written, header and bytes in one write, and is not synced then: until a
manifest names it the journal has what is in it, and the checkpoint that names it syncs the file and the directory
first (K1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bookkeeper.seams import Disk, File
from bookkeeper.storage.base.durable_file import sync
from bookkeeper.storage.entry_log.entry_log_file import log_header, log_name
from bookkeeper.storage.ledger_logs.ledger_logs import LogWrite, WritePlan


@dataclass(slots=True)
class LogWriteResult:
    """How far a plan was carried out."""

    written: list[tuple[LogWrite, File]] = field(default_factory=list)
    """What was written, and the descriptor; one that is not kept is synced."""
    gave_way: list[int] = field(default_factory=list)
    error: Exception | None = None
    """Why the rest was not done."""


class LogWrites:
    """Belongs to the log's worker."""

    def __init__(self, disk: Disk, directory: str, directory_id: int, boot: int) -> None:
        self._disk, self._directory = disk, directory
        self._directory_id, self._boot = directory_id, boot

    def carry_out(self, plan: WritePlan, files: Mapping[int, File]) -> LogWriteResult:
        """Do it, up to the first error, which is reported with what was done before.

        Args:
            files: the open descriptors of logs in the plan.
        """
        done = LogWriteResult()
        try:
            for log_id, must_sync in plan.give_way:
                if must_sync:
                    sync(files[log_id])
                done.gave_way.append(log_id)
            for write in plan.writes:
                done.written.append((write, self._write(write, files.get(write.log_id))))
        except Exception as error:  # told on the loop's thread
            done.error = error
        return done

    def _write(self, write: LogWrite, known: File | None) -> File:
        file = known if known is not None else self._open(write)
        try:
            if write.make:
                header = log_header(write.log_id, self._directory_id, self._boot)
                file.pwrite(header + write.data, 0)
            else:
                file.pwrite(write.data, write.offset)
            if not write.keep:
                sync(file)
        except BaseException:
            if known is None:
                file.close()
            raise
        return file

    def _open(self, write: LogWrite) -> File:
        path = f"{self._directory}/{log_name(write.log_id)}"
        if write.make and self._disk.exists(path):  # an earlier attempt found no space
            self._disk.unlink(path)
        return self._disk.open(path, create=write.make)
