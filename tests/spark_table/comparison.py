"""Compares what a mode left at two places (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spark_wal.checkpoint_copy.contents import belongs

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_OF_PLACE: Final = re.compile(
    r'("(?:batchTimestampMs|timestamp|modificationTime|snapshot_id|blockReplication|blockSize)"):\d+'
)
"""Times, how a file system stores a file, and ids that are drawn."""
_LOGS: Final = ("offsets/", "commits/", "sources/", "metadata")
_ATTEMPT: Final = re.compile(r"(\.|-)TID\d+|(?<=part-)\d+")

Files = Mapping[str, bytes]
"""Path in the mode's directory -> contents."""


@dataclass(frozen=True)
class Left:
    """What a mode left at one place."""

    files: Files
    seen: Mapping[str, Any]
    """Name -> what the driver noted: the rows of each batch, and more."""
    errors: tuple[str, ...]
    """Of its lives; empty: none."""
    crashed_in: int | None
    """The batch that was planned and not done when the driver was killed; None: there was no such batch."""


@dataclass
class Difference:
    """Of two places."""

    what: list[str] = field(default_factory=list)

    def compare(self, name: str, here: Any, there: Any) -> None:
        if here != there:
            self.what.append(f"{name}: {_short(here)} at file://, {_short(there)} at the gateway")


def differences(local: Left, gateway: Left, bases: tuple[str, str]) -> list[str]:
    """Everything in which the places differ, apart from names, clocks and addresses that differ in every run."""
    found = Difference()
    found.compare("errors", local.errors, gateway.errors)
    found.compare("the batch of the crash", local.crashed_in, gateway.crashed_in)
    _by_name(found, local.seen, gateway.seen)
    logs = [_logs(each.files, base) for each, base in zip((local, gateway), bases, strict=True)]
    _by_name(found, *logs)
    found.compare("files of state", *(_state(each.files) for each in (local, gateway)))
    return found.what


def batches(files: Files, log: str) -> list[int]:
    """The batches of one of the logs of a checkpoint: ``offsets`` or ``commits``."""
    names = [path.rpartition("/")[2] for path in files if path.startswith(f"checkpoint/{log}/")]
    return sorted(int(name) for name in names if name.isdigit())


def _by_name(found: Difference, here: Mapping[str, Any], there: Mapping[str, Any]) -> None:
    for name in sorted({*here, *there}):
        found.compare(name, here.get(name), there.get(name))


def _logs(files: Files, base: str) -> dict[str, str]:
    """Path -> text, of all logs of checkpoints and of file sinks."""
    wanted = [path for path in files if _of_checkpoint(path, _LOGS) or "_spark_metadata/" in path]
    return {path: _text(files[path], base) for path in wanted if belongs(path, files)}


def without_place(text: str, base: str) -> str:
    """A text without ids that are drawn, and without the address of the mode's directory."""
    text = text.replace(base, "BASE").replace(base.replace("///", "/"), "BASE")
    return _UUID.sub("UUID", text)


def _text(data: bytes, base: str) -> str:
    return _OF_PLACE.sub(r"\1:0", without_place(data.decode(errors="replace"), base))


def _state(files: Files) -> list[str]:
    """Names of state files. Attempts' numbers and unique ids differ, and RocksDB compacts its tables when it likes."""
    paths = [path for path in files if _of_checkpoint(path, ("state/",)) and "/SSTs/" not in path]
    paths = [path for path in paths if belongs(path, files)]
    return sorted(_ATTEMPT.sub("", _UUID.sub("UUID", path)) for path in paths)


def _of_checkpoint(path: str, kinds: tuple[str, ...]) -> bool:
    """Whether a file is of these kinds, in the mode's checkpoint or in one of its other queries'."""
    directory, _, rest = path.partition("/")
    return directory.startswith("checkpoint") and rest.startswith(kinds)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 300 else f"{text[:200]} ... {text[-80:]}"
