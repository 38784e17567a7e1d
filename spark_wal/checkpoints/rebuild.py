"""From which files a partition's state at a version can be built, as Spark builds it. A machine over verdicts.

The first format: the newest whole state (a snapshot, or RocksDB's zip) at or before the version, and each step (a delta
or changelog) behind it. Version 0 is empty and needs no file. The second format: the version's own zip, or its
changelog, which names the versions since the last zip; what it does not name is not found.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from spark_wal.checkpoints.layout import StateFile, StatePartition


@dataclass(frozen=True, slots=True)
class StateSources:
    """The files from which a version is built: at most one whole state, then steps, in order."""

    files: tuple[StateFile, ...]
    """Empty: the version is 0."""
    unusable: tuple[str, ...] = ()
    """Files that Spark would take before these, and that are damaged: it must not find them."""


@dataclass(frozen=True, slots=True)
class BuildObstacle:
    """A version cannot be built. What is damaged or missing on the way, by path."""

    missing: tuple[str, ...]


def sources_of(
    files: Collection[StateFile],
    usable: Collection[str],
    partition: StatePartition,
    version: int,
    unique_id: str | None = None,
    earlier: dict[str, dict[int, str]] | None = None,
) -> StateSources | BuildObstacle:
    """Find the sources of a version.

    Args:
        usable: the paths of files that are whole, with everything that they need.
        unique_id: the file's id in the second format; None in the first.
        earlier: path of a changelog -> the versions that it names and their ids.
    """
    at = {(f.version, f.unique_id, f.is_whole_state): f for f in files}
    if version == 0:
        return StateSources(())
    ids = dict.fromkeys(range(1, version + 1), "")
    if unique_id is not None:
        step = at.get((version, unique_id, False))
        ids = {version: unique_id}
        if step is not None and step.path in usable:
            ids |= (earlier or {}).get(step.path, {})
    found: list[StateFile] = []
    unusable: list[str] = []
    for number in range(version, 0, -1):
        unique = ids.get(number)
        if unique is None:  # of the second format, and its changelogs do not name this version
            return BuildObstacle(tuple(unusable) or (_name(partition, number, None, "zip"),))
        whole, step = at.get((number, unique, True)), at.get((number, unique, False))
        if whole is not None and whole.path in usable:
            return StateSources((whole, *reversed(found)), tuple(unusable))
        unusable += [whole.path] if whole is not None else []
        if step is None or step.path not in usable:
            there = step.path if step is not None else None
            form = _form(files)
            lost = there or (None if whole is not None and form == "zip" else _name(partition, number, unique, form))
            return BuildObstacle((*unusable, *([lost] if lost else [])))
        found.append(step)
    return StateSources(tuple(reversed(found)), tuple(unusable))


def _form(files: Collection[StateFile]) -> str:
    forms = {f.path.rpartition(".")[2] for f in files}
    return next((form for form in ("delta", "changelog", "zip") if form in forms), "delta")


def _name(partition: StatePartition, version: int, unique_id: str | None, form: str) -> str:
    unique = "_*" if unique_id is None else f"_{unique_id}" if unique_id else ""
    return f"{partition.directory}/{version}{unique}.{form}"
