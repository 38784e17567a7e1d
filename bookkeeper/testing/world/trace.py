"""The events of a simulation and their hash: the same seed gives the same trace, in every process."""

from __future__ import annotations

import hashlib
from collections import deque


class Trace:
    """Appends to a hash; keeps the last events for people."""

    def __init__(self, keep: int = 400) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self.count = 0
        self.counts: dict[str, int] = {}
        """How often each kind of event happened."""
        self.last: deque[str] = deque(maxlen=keep)

    def add(self, time: float, kind: str, *details: object) -> None:
        """One event. ``details`` are ids, numbers and short texts: nothing whose text differs between processes."""
        line = f"{time:.9f} {kind} {' '.join(map(str, details))}"
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        self.count += 1
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.last.append(line)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()
