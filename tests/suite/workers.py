"""How many processes a run of the tests uses."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

MEMORY_EACH: Final = 1_500_000_000
"""Bytes that one process of tests and what it starts may need."""
_WATCHED_S: Final = 0.5
_V2: Final = Path("/sys/fs/cgroup")
_V1_QUOTA: Final = "cpu.cfs_quota_us"
_V1_PERIOD: Final = "cpu.cfs_period_us"


def workers(cores: int, quota: float | None, memory: int | None, load: float) -> tuple[int, str]:
    """How many, and why so many: one for each core that is free, has memory, and may be used.

    Args:
        cores: that this process may run on.
        quota: cores' worth of time that it may use, if there is a limit.
        memory: bytes that are free for it, if that is known.
        load: processes of others that run or want to.
    """
    limits = [(cores, f"{cores} cores")]
    if quota is not None and quota < cores:
        limits.append((max(int(quota), 1), f"a quota of {quota:.2g} cores"))
    if memory is not None:
        limits.append((max(memory // MEMORY_EACH, 1), f"{memory / 1e9:.1f} GB of free memory"))
    if load >= 0.5:
        limits.append((max(cores - round(load), 1), f"{cores} cores, of which others use {load:.1f}"))
    least, why = min(limits, key=lambda limit: limit[0])
    return least, f"{least} {'process' if least == 1 else 'processes'}: {why}"


def here() -> tuple[int, str]:
    """The same for this machine, now."""
    return workers(len(os.sched_getaffinity(0)), _quota(), _free_memory(), min(os.getloadavg()[0], _busy_cores()))


def _busy_cores() -> float:
    """How many cores are busy now, while this process sleeps. The load of the last minute has what ended in it."""
    before, began = _busy_ticks(), time.monotonic()
    time.sleep(_WATCHED_S)
    after = _busy_ticks()
    if before is None or after is None:
        return float("inf")
    return (after - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)


def _busy_ticks() -> int | None:
    """Ticks that all cores together have worked, for whomever."""
    for line in _lines(Path("/proc/stat")):
        if line.startswith("cpu "):
            user, nice, system, _, _, irq, soft_irq, steal = map(int, line.split()[1:9])
            return user + nice + system + irq + soft_irq + steal
    return None


def _quota() -> float | None:
    """The narrowest limit of the control groups around this process."""
    found = []
    for line in _lines(Path("/proc/self/cgroup")):
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found += _v2_quotas(path)
        elif "cpu" in controllers.split(","):
            found += _v1_quotas(_V2 / controllers / path.lstrip("/")) or _v1_quotas(_V2 / "cpu" / path.lstrip("/"))
    return min(found, default=None)


def _v2_quotas(path: str) -> list[float]:
    directory, found = _V2 / path.lstrip("/"), []
    while True:
        words = " ".join(_lines(directory / "cpu.max")).split()
        if len(words) == 2 and words[0] != "max":
            found.append(int(words[0]) / int(words[1]))
        if directory == _V2:
            return found
        directory = directory.parent


def _v1_quotas(directory: Path) -> list[float]:
    quota, period = _lines(directory / _V1_QUOTA), _lines(directory / _V1_PERIOD)
    return [int(quota[0]) / int(period[0])] if quota and period and int(quota[0]) > 0 else []


def _free_memory() -> int | None:
    free = {line.split()[0]: int(line.split()[1]) * 1024 for line in _lines(Path("/proc/meminfo"))}
    known = [free[name] for name in ("MemAvailable:",) if name in free]
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        most, now = _lines(_V2 / limit), _lines(_V2 / used)
        if most and now and most[0] != "max":
            known.append(int(most[0]) - int(now[0]))
    return min(known, default=None)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
