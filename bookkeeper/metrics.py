"""Counters, histograms and summaries as plain data; who shows them is not their business.

Numbers are added to once per run or group, never per entry: statistics must not cost what they measure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, log, nan
from typing import Final, TypeVar

LATENCY_BOUNDS_S: Final = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
"""Seconds: upper bounds of the latency histograms."""


@dataclass(slots=True)
class Counter:
    """Only grows."""

    value: int = 0

    def add(self, amount: int = 1) -> None:
        self.value += amount


@dataclass(slots=True)
class Gauge:
    """What it is now."""

    value: float = 0.0


@dataclass(slots=True)
class Histogram:
    """How often a value fell under which bound."""

    bounds: Sequence[float] = LATENCY_BOUNDS_S
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float, times: int = 1) -> None:
        """Count ``value``, ``times`` times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    @property
    def count(self) -> int:
        return sum(self.counts)

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """(bound, values at or below it) with infinity last."""
        seen = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            seen += count
            yield bound, seen


ACCURACY: Final = 0.01
"""A quantile of a summary is within this share of the true one."""

_STEP: Final = log((1 + ACCURACY) / (1 - ACCURACY))
_LEAST: Final = 1e-9
_LOWEST: Final = ceil(log(_LEAST) / _STEP)
"""Smaller values count as this one."""


@dataclass(slots=True)
class Summary:
    """Quantiles of the last period that is over, and count and sum of all values. A period ends with :meth:`turn`.

    Values are counted in classes whose bounds grow by two per cent each, so that a quantile is read from a few hundred
    numbers, whatever was observed (the idea of DDSketch, Masson, Rim and Lee, 2019).
    """

    count: int = 0
    total: float = 0.0
    _now: dict[int, int] = field(default_factory=dict)
    _over: dict[int, int] = field(default_factory=dict)

    def observe(self, value: float, times: int = 1) -> None:
        """Count ``value``, ``times`` times."""
        at = ceil(log(value) / _STEP) if value > _LEAST else _LOWEST
        self._now[at] = self._now.get(at, 0) + times
        self.count += times
        self.total += value * times

    def turn(self) -> None:
        """End a period: its values are those that are shown from now on."""
        self._over, self._now = self._now, {}

    def quantiles(self, wanted: Sequence[float]) -> list[float]:
        """The values below which these shares of the last period's values lie; NaN if it had none."""
        classes = sorted(self._over.items())  # a copy, at once: somebody may still add to it
        total = sum(times for _, times in classes)
        if not total:
            return [nan] * len(wanted)
        found: list[float] = []
        for share in wanted:
            left, value = max(1, ceil(share * total)), 0.0
            for at, times in classes:
                left -= times
                value = exp((at - 0.5) * _STEP)
                if left <= 0:
                    break
            found.append(value)
        return found

    def show(self, other: Summary, unit: float) -> None:
        """Be what another one is, in a unit of which one of its own has ``unit``."""
        shift = round(log(unit) / _STEP)
        self.count, self.total = other.count, other.total * unit
        self._over = {at + shift: times for at, times in list(other._over.items())}

    def include(self, other: Summary) -> None:
        """Add what another one has seen, for one that shows several together."""
        self.count += other.count
        self.total += other.total
        for mine, theirs in ((self._now, other._now), (self._over, other._over)):
            for at, times in list(theirs.items()):
                mine[at] = mine.get(at, 0) + times


Metric = Counter | Gauge | Histogram | Summary
M = TypeVar("M", Counter, Gauge, Histogram, Summary)


@dataclass(slots=True)
class Metrics:
    """A named set of numbers. Asking for a name again gives the same object."""

    prefix: str = ""
    _metrics: dict[tuple[str, tuple[tuple[str, str], ...]], Metric] = field(default_factory=dict)
    _help: dict[str, str] = field(default_factory=dict)
    _included: list[Metrics] = field(default_factory=list)

    def summary(self, name: str, text: str = "", **labels: str) -> Summary:
        return self._get(Summary, name, text, labels)

    def include(self, others: Metrics) -> None:
        """Show these, too, with the names that they have."""
        self._included.append(others)

    def counter(self, name: str, text: str = "", **labels: str) -> Counter:
        return self._get(Counter, name, text, labels)

    def gauge(self, name: str, text: str = "", **labels: str) -> Gauge:
        return self._get(Gauge, name, text, labels)

    def histogram(self, name: str, text: str = "", **labels: str) -> Histogram:
        return self._get(Histogram, name, text, labels)

    def __iter__(self) -> Iterator[tuple[str, str, dict[str, str], Metric]]:
        """(name, help text, labels, metric), sorted by name and labels."""
        for (name, labels), metric in sorted(self._metrics.items(), key=lambda item: item[0]):
            yield self.prefix + name, self._help.get(name, ""), dict(labels), metric
        for others in self._included:
            yield from others

    def _get(self, kind: type[M], name: str, text: str, labels: dict[str, str]) -> M:
        key = (name, tuple(sorted(labels.items())))
        metric = self._metrics.get(key)
        if metric is None:
            metric = self._metrics[key] = kind()
            self._help.setdefault(name, text)
        assert isinstance(metric, kind), f"{name} is a {type(metric).__name__} already"
        return metric
