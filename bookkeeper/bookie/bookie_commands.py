"""The commands that a running bookie takes: a pass or a scrub now, compaction suspended and resumed, what it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from bookkeeper.bookie.control import Command, Says
from bookkeeper.errors import IllegalOperationError
from bookkeeper.ids import LedgerId
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.results import Done


class CommandedBookie(Protocol):
    """What commands need of a bookie."""

    @property
    def engine(self) -> Engine: ...
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
        await says(f"{len(dropped)} deleted ledgers were dropped; compacts entry logs")
        await _until(lambda done: bookie.engine.compact(done, major=major))
        after = await bookie.logs()
        return {"dropped": sorted(dropped), "logs": after, "bytes_before": _bytes(before), "bytes_after": _bytes(after)}

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
            await says(f"reads and checks {files} files, about {size} bytes")
            await _until(scrubber.run_now)
        return {**scrubber.report(), "sentences": [*scrubber.sentences(), *bookie.repairs()]}

    return {"status": status, "gc": gc, "suspend": suspend, "resume": resume, "scrub": scrub}


def _flag(request: Mapping[str, Any], name: str) -> bool:
    value = request.get(name, False)
    if not isinstance(value, bool):
        raise IllegalOperationError(f"{name} is {value!r}: it must be true or false")
    return value


def _bytes(logs: list[dict[str, object]]) -> int:
    return sum(int(str(row["bytes"])) for row in logs)


async def _until(begin: Callable[[Done], None]) -> None:
    """Begin something and wait until it calls back. Raises: what it ended with."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done(error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result(None) if error is None else ended.set_exception(error)

    begin(done)
    await ended
