"""What is measured, and what the ratios ours / Apache should be. Data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.report import Aim

OURS: Final = "ours"
SHIPPED: Final = "shipped"
TUNED: Final = "tuned"
JAVA_ON_OURS: Final = "java-on-ours"
OURS_ON_SHIPPED: Final = "ours-on-shipped"
OURS_ON_TUNED: Final = "ours-on-tuned"

SIDES: Final[Mapping[str, tuple[str, str]]] = {
    OURS: ("python", OURS),
    SHIPPED: ("java", SHIPPED),
    TUNED: ("java", TUNED),
    JAVA_ON_OURS: ("java", OURS),
    OURS_ON_SHIPPED: ("python", SHIPPED),
    OURS_ON_TUNED: ("python", TUNED),
}
"""Name -> which client on whose bookies."""
PAIR: Final = (OURS, SHIPPED, TUNED)
CROSS: Final = (JAVA_ON_OURS, OURS_ON_SHIPPED, OURS_ON_TUNED)

KB: Final = 1024


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of a row: where it comes from in a run's record, its unit, and what it should be."""

    key: str
    unit: str
    lower: bool = False
    aim: tuple[float, float] | None = None
    """Goal and must of the ratio ours / the better of Apache's two."""

    def verdict(self, ratio: float) -> str:
        return Aim(*self.aim, lower=self.lower).verdict(ratio) if self.aim else ""


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of run."""

    key: str
    title: str
    kind: str
    """``add``, ``read``, ``tail``, ``create``, ``recover``, ``start``, ``replay``, ``memory``."""
    measures: tuple[Measure, ...]
    arguments: dict[str, Any] = field(default_factory=dict)
    sides: tuple[str, ...] = PAIR
    protocol: str = "v3"
    rounds: int = 3
    seconds: float = 2.0


RATE: Final = Measure("rate", "/s")
MEDIAN: Final = Measure("p50_us", "µs", lower=True)
TAIL: Final = Measure("p99_us", "µs", lower=True)
CPU: Final = Measure("cpu_us", "µs", lower=True)


def _aimed(measure: Measure, goal: float, must: float) -> Measure:
    return Measure(measure.key, measure.unit, measure.lower, (goal, must))


def _size(size: int) -> str:
    return f"{size // KB} KB" if size >= KB else f"{size} B"


def _add(size: int, window: int, protocol: str, *measures: Measure, **options: Any) -> Row:
    """Measures that are given replace those of the same name."""
    given = {measure.key: measure for measure in measures}
    chosen = tuple(given.pop(m.key, m) for m in (RATE, MEDIAN, TAIL, CPU)) + tuple(given.values())
    return Row(
        f"add-{size}-{window}-{protocol}",
        f"adds of {_size(size)}, window {window}, {protocol}",
        "add",
        chosen,
        {"size": size, "window": window, "count": _COUNT_MAX.get(size, 400_000)},
        protocol=protocol,
        **options,
    )


_COUNT_MAX: Final = {KB: 300_000, 64 * KB: 6_000}
"""More would fill the disk, which is not what is measured."""


def _adds(protocol: str) -> list[Row]:
    deep = {"v3": ((5, 3.5), (0.15, 0.25)), "v2": ((3.5, 2.2), (0.2, 0.35))}[protocol]
    rows = [
        _add(KB, 1, protocol, _aimed(MEDIAN, 0.3, 0.5)),
        _add(KB, 10, protocol),
        _add(KB, 100, protocol, _aimed(RATE, 4, 2.5), _aimed(TAIL, 0.2, 0.4)),
        _add(KB, 1000, protocol, _aimed(RATE, *deep[0]), _aimed(CPU, *deep[1])),
        _add(64 * KB, 64, protocol, Measure("mb_per_s", "MB/s", aim=(3, 2.2)), seconds=1.5),
    ]
    return rows + [_add(100, window, protocol, rounds=2, seconds=1.5) for window in (1, 10, 100, 1000)]


def _cross(protocol: str) -> Row:
    return Row(
        f"cross-{protocol}",
        f"adds of 1 KB, window 1000, {protocol}, each client on each cluster",
        "add",
        (RATE, CPU),
        {"size": KB, "window": 1000, "count": 300_000},
        CROSS,
        protocol,
    )


def _namenode(size: int, window: int) -> Row:
    """What a NameNode does to its journal: Java's client, two copies of each entry, few of them in flight."""
    least = 1.0 if window == 1 else 1.5
    return Row(
        f"namenode-{size}-{window}",
        f"a NameNode's pattern: Java's client, adds of {_size(size)}, window {window}, E3/Qw2/Qa2",
        "add",
        (_aimed(RATE, least, least), MEDIAN, TAIL, _aimed(CPU, 1.0, 1.0)),
        {"size": size, "window": window, "count": _COUNT_MAX.get(size, 400_000), "write_quorum": 2},
        (JAVA_ON_OURS, TUNED),
        rounds=2,
        seconds=1.5,
    )


NAMENODE: Final = tuple(_namenode(size, window) for size in (200, KB, 4 * KB) for window in (1, 2, 4, 8))
"""``ours`` is Java's client on our bookies here; there is nothing of our client in these rows."""


def _read(key: str, title: str, protocol: str, *measures: Measure, **arguments: Any) -> Row:
    return Row(f"read-{key}-{protocol}", f"{title}, {protocol}", "read", measures, arguments, protocol=protocol)


_LEDGER_RATE: Final = Measure("rate", "pairs/s")

MAIN: Final[tuple[Row, ...]] = (
    *_adds("v3"),
    *_adds("v2"),
    _cross("v3"),
    _cross("v2"),
    *NAMENODE,
    _read("one", "reads of 1 KB, one at a time", "v3", RATE, MEDIAN, TAIL, CPU, mode="single", window=1),
    _read("single", "single reads of 1 KB, 1000 in flight", "v3", _aimed(RATE, 4, 2), CPU, mode="single", window=1000),
    _read("single", "single reads of 1 KB, 1000 in flight", "v2", _aimed(RATE, 4, 2), CPU, mode="single", window=1000),
    _read("random", "random reads of 1 KB, 100 in flight", "v3", RATE, MEDIAN, TAIL, CPU, mode="random", window=100),
    _read("random", "random reads of 1 KB, 100 in flight", "v2", RATE, MEDIAN, TAIL, CPU, mode="random", window=100),
    _read("batch", "batch reads of 1 KB", "v2", _aimed(RATE, 6, 3), CPU, mode="batch", window=10, batch=100),
    Row(
        "tail", "tail by long poll at 1,000 adds/s", "tail", (MEDIAN, TAIL, CPU), {"rate": 1000, "size": KB}, seconds=3
    ),
    Row("create-1", "create + close a ledger, one at a time", "create", (_LEDGER_RATE, MEDIAN, TAIL), {"lanes": 1}),
    Row(
        "create-100",
        "create + close ledgers, 100 at a time",
        "create",
        (_aimed(_LEDGER_RATE, 0.5, 0.25), MEDIAN, TAIL),
        {"lanes": 100},
    ),
    Row("recover", "open with recovery, 10,000 entries", "recover", (Measure("recovered_s", "s", lower=True),)),
    Row(
        "memory",
        "memory of a bookie after all that",
        "memory",
        (Measure("resident_mb", "MB", lower=True, aim=(0.1, 0.25)),),
        rounds=1,
    ),
    Row(
        "start",
        "bookie start to first add",
        "start",
        (Measure("started_s", "s", lower=True, aim=(0.2, 0.4)),),
        rounds=3,
    ),
    Row(
        "replay",
        "bookie killed with 200,000 entries of 1 KB, start to first add",
        "replay",
        (Measure("started_s", "s", lower=True),),
        {"count": 200_000},
        (OURS, SHIPPED),
        rounds=2,
    ),
)
"""In plain surroundings, in this order."""


def elsewhere(surroundings: str) -> tuple[Row, ...]:
    """What is measured in other surroundings."""
    return tuple(
        Row(
            f"{surroundings}-{window}",
            f"adds of 1 KB, window {window}, v3",
            "add",
            (RATE, MEDIAN, TAIL, CPU),
            {"size": KB, "window": window, "count": 300_000},
            rounds=2,
        )
        for window in (1, 100, 1000)
    )
