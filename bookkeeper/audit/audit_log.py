"""The audit log as others hold it.

``note`` puts a line into a queue and returns; a worker writes and syncs. It never waits and never raises: what cannot
be written is counted, told once in the program's log, and told by a line in the audit log when it can be written again.
A full disk stops nothing that is served.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final, Protocol

from bookkeeper.amounts import counted
from bookkeeper.audit.audit_event import AuditEvent
from bookkeeper.audit.audit_file import AuditFile
from bookkeeper.audit.audit_queue import AuditQueue
from bookkeeper.audit.config import LOG, AuditConfig
from bookkeeper.errors import in_words
from bookkeeper.metrics import Metrics
from bookkeeper.rate_limited_log import RateLimitedLogger
from bookkeeper.seams import Clock, Disk, Worker, Workers

log = logging.getLogger(__name__)

lines_log = logging.getLogger("bookkeeper.audit.lines")
"""Where the lines go with ``to = "log"``."""

AGAIN_S: Final = 1.0
"""Seconds after which a batch that could not be written is tried again."""

TELL_S: Final = 10.0
"""Seconds within which a line says how much was left out."""


class AuditLog(Protocol):
    """Takes events. Called on the loop's thread."""

    def note(self, event: AuditEvent) -> None:
        """Have ``event`` written. Never waits, never raises; after :meth:`close` nothing is noted."""

    def close(self) -> None:
        """Write what is noted, and end. It waits for the disk. Idempotent."""


class NullAuditLog:
    """An audit log that is switched off."""

    def note(self, event: AuditEvent) -> None:
        pass

    def close(self) -> None:
        pass


NO_AUDIT: Final = NullAuditLog()


def open_audit_log(
    config: AuditConfig, clock: Clock, disk: Disk, workers: Workers, metrics: Metrics | None = None
) -> AuditLog:
    """The audit log of one program, called where its loop runs. ``metrics`` get what was noted, left out and failed.

    Raises:
        ConfigError: its file cannot be opened or made, or another process writes it; the text names it.
    """
    if config.to is None:
        return NO_AUDIT
    sink: _Sink
    if config.to == LOG:
        sink = _LogSink()
    else:
        sink = AuditFile(config.to, config, disk)
        sink.open()
    return WrittenAuditLog(sink, config, clock, workers.worker("audit"), metrics or Metrics())


class _Sink(Protocol):
    def write(self, batch: bytes) -> None: ...
    def close(self) -> None: ...


class _LogSink:
    """The program's log, whatever level its other lines have."""

    def __init__(self) -> None:
        lines_log.setLevel(logging.INFO)

    def write(self, batch: bytes) -> None:
        for line in batch.decode("ascii").splitlines():
            lines_log.info("%s", line)

    def close(self) -> None:
        pass


@dataclass(slots=True)
class _Batch:
    lines: bytes
    is_written: bool = False
    """Set by the worker."""


class WrittenAuditLog:
    """An audit log whose lines a worker writes into ``sink``."""

    def __init__(self, sink: _Sink, config: AuditConfig, clock: Clock, worker: Worker, metrics: Metrics) -> None:
        self._sink = sink
        self._queue = AuditQueue(config)
        self._clock = clock
        self._worker = worker
        self._complaints = RateLimitedLogger(log, clock.monotonic)
        self._noted = metrics.counter("audit_lines_total", "Events that the audit log has taken.")
        self._left_out = metrics.counter("audit_left_out_total", "Events that the audit log has counted only.")
        self._failing = metrics.gauge("audit_failing", "1 while the audit log cannot be written.")
        self._under_way: _Batch | None = None
        self._closed = False
        self._again: asyncio.TimerHandle | None = None
        self._telling: asyncio.TimerHandle | None = None

    def note(self, event: AuditEvent) -> None:
        """See :class:`AuditLog`."""
        if self._closed:
            return
        try:
            kept = self._queue.offer(event, self._clock.monotonic(), self._clock.wall_ms())
            self._count()
            if not kept:
                self._schedule_report()
            elif not self._failing.value:
                self._write()
        except Exception as error:  # whoever notes has something else to do, and does it
            self._complaints.error("an event of the audit log was not noted", error)

    def close(self) -> None:
        """See :class:`AuditLog`."""
        if self._closed:
            return
        self._closed = True
        for timer in (self._again, self._telling):
            if timer is not None:
                timer.cancel()
        self._queue.report_left_out(self._clock.wall_ms())
        under_way, rest = self._under_way, self._queue.after_batch()
        self._worker.submit(lambda: self._write_last(under_way, rest), lambda result, error: None)
        self._worker.close()

    def _write_last(self, under_way: _Batch | None, rest: bytes) -> None:
        """In the worker, behind the batch under way."""
        lines = rest if under_way is None or under_way.is_written else under_way.lines + rest
        try:
            if lines:
                self._sink.write(lines)
        except OSError as error:
            log.error("the audit log has lost its end, %s: %s", counted(lines.count(b"\n"), "line"), in_words(error))
        self._sink.close()

    def _write(self) -> None:
        """Have the next batch written, unless one is under way."""
        if self._under_way is not None or self._queue.is_empty or self._closed:
            return
        self._under_way = batch = _Batch(self._queue.batch())

        def job() -> None:
            self._sink.write(batch.lines)
            batch.is_written = True

        self._worker.submit(job, self._done)

    def _done(self, result: None, error: BaseException | None) -> None:
        self._under_way = None
        if self._closed:
            return
        if error is None:
            self._queue.written()
            self._report_working()
            self._write()
        else:
            self._queue.not_written()
            self._report_failing(error)
            self._again = asyncio.get_running_loop().call_later(AGAIN_S, self._write)

    def _report_working(self) -> None:
        if self._failing.value:
            self._failing.value = 0
            log.warning("the audit log can be written again")

    def _report_failing(self, error: BaseException) -> None:
        if not self._failing.value:
            self._failing.value = 1
            log.error(
                "the audit log cannot be written: %s. What is served goes on; lines wait, and those that find no room "
                "are counted. Make room, or give the file back to its owner",
                in_words(error),
            )

    def _schedule_report(self) -> None:
        """Have a line report soon how much was left out."""
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(TELL_S, self._report)

    def _report(self) -> None:
        self._telling = None
        self._queue.report_left_out(self._clock.wall_ms())
        if self._queue.has_counts:  # there was no room
            self._schedule_report()
        if not self._failing.value:
            self._write()

    def _count(self) -> None:
        self._noted.value = self._queue.noted
        self._left_out.value = self._queue.left_out
