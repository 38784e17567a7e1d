"""Back-off as a sequence of delays. This module computes the delays; the caller waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bookkeeper.errors import require_below, require_range
from bookkeeper.seams import Rng


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Delays that grow by ``factor`` up to ``max_s``, each shortened by up to ``jitter`` of itself."""

    first_s: float = 0.05
    max_s: float = 5.0
    factor: float = 2.0
    jitter: float = 0.5
    """The largest random share taken off a delay, so that callers that failed together do not return together."""

    def __post_init__(self) -> None:
        require_range(self, "first_s", above=0)
        require_below(self, "first_s", "max_s", or_equal=True)
        require_range(self, "factor", least=1)
        require_range(self, "jitter", least=0, below=1)

    def delays(self, rng: Rng) -> Iterator[float]:
        """Seconds to wait before the second attempt, the third, and so on without end. Every delay is positive."""
        delay = self.first_s
        while True:
            yield delay * (1 - self.jitter * rng.random())
            delay = min(delay * self.factor, self.max_s)
