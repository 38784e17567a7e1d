"""What lives in every entry log: from the ledgers in it, and from which of them are deleted. Reads files; blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping

from bookkeeper.errors import CorruptionError, in_words
from bookkeeper.seams import Disk
from bookkeeper.storage.base.durable_file import TRANSIENT
from bookkeeper.storage.base.manifest import ManifestLog
from bookkeeper.storage.compaction.schedule import LogUse
from bookkeeper.storage.entry_log.entry_log_file import Usage, log_name, read_usage


def uses_of(disk: Disk, directory: str, logs: Mapping[int, ManifestLog], dropped: Container[int]) -> list[LogUse]:
    """What lives in each of these logs. One that cannot be read says why.

    Raises:
        OSError: the disk has a passing problem.
    """
    usages: dict[int, Usage] = {}
    unreadable: dict[int, str] = {}
    for log_id, entry in logs.items():
        path = f"{directory}/{log_name(log_id)}"
        try:
            known = entry.usage or not entry.finished
            usages[log_id] = entry.usage if known else read_usage(disk, path, log_id, entry.end)
        except CorruptionError as error:
            unreadable[log_id] = str(error)
        except OSError as error:
            if error.errno in TRANSIENT:
                raise
            unreadable[log_id] = f"{path}: {in_words(error, beside=path)}"
    spread = Counter(owner for usage in usages.values() for owner in usage if owner in dropped)
    return [
        _use(log_id, entry, usages.get(log_id, {}), unreadable.get(log_id), dropped, spread)
        for log_id, entry in logs.items()
    ]


def _use(
    log_id: int,
    entry: ManifestLog,
    usage: Usage,
    unreadable: str | None,
    dropped: Container[int],
    spread: Mapping[int, int],
) -> LogUse:
    return LogUse(
        log_id=log_id,
        total=sum(size for size, _ in usage.values()),
        live=sum(size for owner, (size, _) in usage.items() if owner not in dropped),
        filling=not entry.finished,
        unreadable=unreadable,
        drops=frozenset(owner for owner in usage if spread.get(owner, 0) > 1),
    )
