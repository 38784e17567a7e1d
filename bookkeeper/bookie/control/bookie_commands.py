"""The commands that a running bookie takes: a pass or a scrub now, compaction suspended and resumed, what it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from bookkeeper.amounts import counted
from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.control.bookie_control import Command, Says
from bookkeeper.bookie.control.ledger_directories import LedgerDirectories
from bookkeeper.errors import IllegalOperationError
from bookkeeper.ids import LedgerId
from bookkeeper.volumes import Volumes
from bookkeeper.volumes.after_all import wait_until_done


class CommandedBookie(Protocol):
    """What commands need of a bookie."""

    config: BookieConfig

    @property
    def engine(self) -> Volumes: ...
    @property
    def ledger_directories(self) -> LedgerDirectories: ...
    @property
    def waiting_garbage(self) -> tuple[int, float, int]: ...
    def health(self) -> Mapping[str, Any]: ...
    async def collect_garbage(self) -> set[LedgerId]: ...
    def repairs(self) -> tuple[str, ...]: ...
    async def logs(self) -> list[dict[str, object]]: ...


def commands_of(bookie: CommandedBookie) -> dict[str, Command]:
    """The commands of one bookie, by name."""

    async def status(request: Mapping[str, Any], says: Says) -> Mapping[str, Any]:
        return bookie.health()

    async def gc(request: Mapping[str, Any], says: Says) -> Mapping[str, Any]:
        major, dry_run = _flag(request, "major"), _flag(request, "dry_run")
        before = await bookie.logs()
        if dry_run:
            return {"logs": before}
        await says("looks for ledgers that were deleted")
        dropped = await bookie.collect_garbage()
        await says(f"{counted(len(dropped), 'deleted ledger', 'was', 'were')} dropped; compacts entry logs")
        await wait_until_done(lambda done: bookie.engine.compact(done, major=major))
        after = await bookie.logs()
        return {"dropped": sorted(dropped), **_waiting(bookie), **_won(before, after)}

    async def suspend(request: Mapping[str, Any], says: Says) -> Mapping[str, Any]:
        bookie.engine.compactor.suspend()
        return {}

    async def resume(request: Mapping[str, Any], says: Says) -> Mapping[str, Any]:
        bookie.engine.compactor.resume()
        return {}

    async def scrub(request: Mapping[str, Any], says: Says) -> Mapping[str, Any]:
        scrubber = bookie.engine.scrubber
        if _flag(request, "now"):
            files, size = len(scrubber.files()), sum(file.size for file in scrubber.files())
            await says(f"reads and checks {counted(files, 'file')}, about {size} bytes")
            await wait_until_done(scrubber.run_now)
        return {**scrubber.report(), "sentences": [*scrubber.sentences(), *bookie.repairs()]}

    async def directories(request: Mapping[str, Any], says: Says) -> Mapping[str, Any]:
        return {"directories": bookie.ledger_directories.rows()}

    async def add_directory(request: Mapping[str, Any], says: Says) -> Mapping[str, Any]:
        ledger_dir = _text(request, "ledger_dir")
        number = await bookie.ledger_directories.add(ledger_dir, _text(request, "journal_dir", ledger_dir))
        return {"number": number}

    async def drain_directory(request: Mapping[str, Any], says: Says) -> Mapping[str, Any]:
        moved = await bookie.ledger_directories.drain(_text(request, "ledger_dir"), says)
        return {"moved": moved}

    async def lose_directory(request: Mapping[str, Any], says: Says) -> Mapping[str, Any]:
        return {"lost": await bookie.ledger_directories.lose(_text(request, "ledger_dir"))}

    return {
        "status": status,
        "gc": gc,
        "suspend": suspend,
        "resume": resume,
        "scrub": scrub,
        "directories": directories,
        "add-directory": add_directory,
        "drain-directory": drain_directory,
        "lose-directory": lose_directory,
    }


def _text(request: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = request.get(name, default)
    if not isinstance(value, str) or not value:
        raise IllegalOperationError(f"{name} is {value!r}: it must be a directory")
    return value


def _flag(request: Mapping[str, Any], name: str) -> bool:
    value = request.get(name, False)
    if not isinstance(value, bool):
        raise IllegalOperationError(f"{name} is {value!r}: it must be true or false")
    return value


def _waiting(bookie: CommandedBookie) -> dict[str, object]:
    """Which deleted ledgers were not dropped yet."""
    waiting, waiting_s, restorable = bookie.waiting_garbage
    return {"waiting": waiting, "waiting_s": waiting_s, "restorable": restorable}


def _won(before: list[dict[str, object]], after: list[dict[str, object]]) -> dict[str, object]:
    return {"logs": after, "bytes_before": _bytes(before), "bytes_after": _bytes(after)}


def _bytes(logs: list[dict[str, object]]) -> int:
    return sum(int(str(row["bytes"])) for row in logs)
