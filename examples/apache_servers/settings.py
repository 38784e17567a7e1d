"""Configuration files of Apache's programs. Data and text, nothing is started here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bookkeeper.errors import ConfigError

Settings = Mapping[str, object]
"""Names and values as in Apache's ``bk_server.conf``; True and False are written in lower case."""

SMALL: Final[Settings] = {
    "journalPreAllocSizeMB": 4,
    "journalMaxSizeMB": 64,
    "skipListSizeLimit": 8 * 1024 * 1024,
    "readBufferSizeBytes": 4096,
    "pageLimit": 256,
    "numAddWorkerThreads": 1,
    "numReadWorkerThreads": 2,
    "numLongPollWorkerThreads": 1,
    "numJournalCallbackThreads": 1,
    "serverNumIOThreads": 2,
    "entryLogFilePreallocationEnabled": False,
    "allocatorPoolingPolicy": "UnpooledHeap",
}
"""For tests: little memory, few threads, small files."""

QUICK_ADDS: Final[Settings] = {"journalFlushWhenQueueEmpty": True, "journalMaxGroupWaitMSec": 1}
"""Tuned for latency: as shipped, the journal waits up to 2 ms for more adds before it writes, and an add takes 2.6 ms;
with these 0.5 ms. What a fair comparison of latencies needs."""

_ZOOKEEPER: Final = re.compile(r"zk(?:\+\w+)?://.*")


def java_uri(uri: str) -> str:
    """A cluster's address as Java reads it: hosts are separated by ``;`` only, and the layout must be named.

    Raises:
        ConfigError: not a ZooKeeper address; Java knows no other store of ours.
    """
    if not _ZOOKEEPER.fullmatch(uri):
        raise ConfigError(f"Apache's programs keep metadata in ZooKeeper only: give a zk:// address, not {uri!r}")
    scheme, _, rest = uri.partition("://")
    hosts, slash, root = rest.partition("/")
    return f"{scheme if '+' in scheme else 'zk+null'}://{hosts.replace(',', ';')}{slash}{root}"


def bookie_settings(directory: Path, uri: str, port: int, more: Settings) -> dict[str, object]:
    """The settings that a bookie on 127.0.0.1 needs, and ``more``, which win."""
    return {
        "metadataServiceUri": java_uri(uri),
        "bookiePort": port,
        "journalDirectories": directory / "journal",
        "ledgerDirectories": directory / "ledgers",
        "indexDirectories": directory / "ledgers",
        "allowLoopback": True,
        "advertisedAddress": "127.0.0.1",
        "listeningInterface": "lo",
        "useHostNameAsBookieID": False,
        "autoRecoveryDaemonEnabled": False,
        "httpServerEnabled": False,
        "zkTimeout": 4000,
        "diskUsageThreshold": 0.99,
        "diskUsageWarnThreshold": 0.985,
        "diskUsageLwmThreshold": 0.98,
        "minUsableSizeForHighPriorityWrites": 0,
        **more,
    }


def client_settings(uri: str, more: Settings | None = None) -> dict[str, object]:
    """The settings that a Java client or ``bookkeeper shell`` needs, and ``more``, which win."""
    return {"metadataServiceUri": java_uri(uri), "zkTimeout": 10000, **(more or {})}


def write_settings(path: Path, settings: Settings) -> Path:
    """Write the settings to a file, in Java's properties format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={_text(value)}\n" for name, value in settings.items()))
    return path


def _text(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if "\n" in text:
        raise ConfigError(f"a setting must fit on one line, and this one does not: {text!r}")
    return text.replace("\\", "\\\\")
