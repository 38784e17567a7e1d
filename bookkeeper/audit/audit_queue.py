"""Which lines wait to be written, and which are only counted (X16). Pure.

No peer can keep out the lines of others, or have their files put aside sooner than its rate allows:

* of each kind of event a peer has a rate; what was allowed and what was refused are two kinds, so that refusals do not
  hide a deletion;
* a peer's lines take at most a share of the queue;
* lines of peers that have proven no name, and lines that tell how many of theirs were left out, take at most half of
  it.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import Final

from bookkeeper.audit.audit_event import AuditEvent, event_line, left_out_line, peer_of
from bookkeeper.audit.config import AuditConfig

KINDS_MAX: Final = 10_000
"""How many (peer, kind of event) have a rate of their own. Beyond that the one that is idle longest is forgotten."""

PEER_SHARE: Final = 8
"""A peer's lines take at most one of so many parts of the queue."""

BATCH_BYTES: Final = 256 * 1024
"""Bytes that are written at a time, besides the last line."""

TOO_FAST: Final = "more lines than the rate of one peer"
NO_ROOM: Final = "the queue was full"

_Kind = tuple[str, str, bool]


@dataclass(slots=True)
class _Rate:
    """What a peer may still write of one kind."""

    lines: float
    since: float


@dataclass(frozen=True, slots=True)
class _Waiting:
    line: bytes
    peer: str
    proven: bool


class AuditQueue:
    """The lines of one audit log."""

    def __init__(self, config: AuditConfig) -> None:
        self._config = config
        self._lines: deque[_Waiting] = deque()
        self._taken = 0
        """How many of the first lines are being written."""
        self._bytes = 0
        self._unproven_bytes = 0
        self._bytes_of: Counter[str] = Counter()
        self._rates: dict[_Kind, _Rate] = {}
        self._left_out: dict[tuple[str, str, bool, str], int] = {}
        """How many lines of (kind of event, peer, whether it has proven a name, why) were left out and not told yet."""
        self._untold = 0
        """Left out besides those, of peers too many to name."""
        self.noted = 0
        self.left_out = 0

    @property
    def is_empty(self) -> bool:
        return not self._lines

    @property
    def has_counts(self) -> bool:
        """Whether something was left out that no line tells yet."""
        return bool(self._left_out or self._untold)

    def offer(self, event: AuditEvent, now: float, wall_ms: int) -> bool:
        """Note an event. False: its line is left out, and counted."""
        peer, proven = peer_of(event), bool(event.who) and not event.claimed
        if not self._has_rate((peer, str(event.what), bool(event.allowed)), now):
            self._leave_out(str(event.what), peer, proven, TOO_FAST)
            return False
        line = event_line(event, wall_ms)
        if not self._has_room(peer, proven, len(line)):
            self._leave_out(str(event.what), peer, proven, NO_ROOM)
            return False
        self._put(_Waiting(line, peer, proven))
        self.noted += 1
        return True

    def report_left_out(self, wall_ms: int) -> None:
        """Put the lines that say how much was left out behind the others, as far as there is room."""
        most = self._config.queue_bytes
        for key, count in list(self._left_out.items()):
            what, peer, proven, why = key
            line = left_out_line(what, peer, count, why, wall_ms)
            if self._bytes + len(line) > most:
                return
            if proven or self._unproven_bytes + len(line) <= most // 2:
                self._put(_Waiting(line, peer, proven))
                del self._left_out[key]
        line = left_out_line("any", "several peers", self._untold, "too many peers to name each", wall_ms)
        if self._untold and self._bytes + len(line) <= self._config.queue_bytes:
            self._put(_Waiting(line, "", proven=True))
            self._untold = 0

    def batch(self) -> bytes:
        """The lines to be written next; they stay in the queue until :meth:`written`. The same again if they were not
        written, and perhaps more."""
        lines, size = [], 0
        for waiting in self._lines:
            lines.append(waiting.line)
            size += len(waiting.line)
            if size >= BATCH_BYTES:
                break
        self._taken = len(lines)
        return b"".join(lines)

    def after_batch(self) -> bytes:
        """All lines behind those that :meth:`batch` returned last."""
        return b"".join([waiting.line for waiting in self._lines][self._taken :])

    def not_written(self) -> None:
        """What :meth:`batch` returned last could not be written, and waits on."""
        self._taken = 0

    def written(self) -> None:
        """What :meth:`batch` returned last is written."""
        for _ in range(self._taken):
            gone = self._lines.popleft()
            self._charge(gone, -len(gone.line))
        self._taken = 0

    def _has_rate(self, kind: _Kind, now: float) -> bool:
        config = self._config
        rate = self._rates.pop(kind, None)
        if rate is None:
            while len(self._rates) >= KINDS_MAX:
                del self._rates[next(iter(self._rates))]
            rate = _Rate(float(config.peer_lines_at_once), now)
        self._rates[kind] = rate
        earned = max(0.0, now - rate.since) * config.peer_lines_per_s
        rate.lines, rate.since = min(float(config.peer_lines_at_once), rate.lines + earned), now
        if rate.lines < 1:
            return False
        rate.lines -= 1
        return True

    def _has_room(self, peer: str, proven: bool, size: int) -> bool:
        most = self._config.queue_bytes
        return (
            self._bytes + size <= most
            and self._bytes_of[peer] + size <= most // PEER_SHARE
            and (proven or self._unproven_bytes + size <= most // 2)
        )

    def _leave_out(self, what: str, peer: str, proven: bool, why: str) -> None:
        self.left_out += 1
        key = (what, peer, proven, why)
        if key in self._left_out or len(self._left_out) < KINDS_MAX:
            self._left_out[key] = self._left_out.get(key, 0) + 1
        else:
            self._untold += 1

    def _put(self, waiting: _Waiting) -> None:
        self._lines.append(waiting)
        self._charge(waiting, len(waiting.line))

    def _charge(self, waiting: _Waiting, size: int) -> None:
        self._bytes += size
        self._bytes_of[waiting.peer] += size
        if not self._bytes_of[waiting.peer]:
            del self._bytes_of[waiting.peer]
        if not waiting.proven:
            self._unproven_bytes += size
