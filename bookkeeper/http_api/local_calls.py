"""What is asked of the bookie in this process."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

from bookkeeper.bookie.control.bookie_commands import commands_of
from bookkeeper.bookie.health.health import PageReply
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.http_api.background import BackgroundWork
from bookkeeper.http_api.request import ApiRequest, Call, RefusedRequestError, json_text
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.read_only import ReadOnlyOrders
from bookkeeper.seams import Disk
from bookkeeper.storage.journal.group_writer import journal_name

FOLLOWS_S: Final = 5.0
"""How long a reply waits until the bookie follows an order."""

_BOOKIE: Final = "/api/v1/bookie"
_FILES: Final = {
    "journal": ("journal files", "journal"),
    "entrylog": ("entrylog files", "log"),
    "index": ("index files", "index"),
}
"""By ``file_type``: what the answer calls them, and how their names end."""


class LocalCalls:
    """Answers for one bookie."""

    def __init__(self, bookie: BookieServer, metadata: Metadata, disk: Disk, background: BackgroundWork) -> None:
        self._bookie = bookie
        self._orders = ReadOnlyOrders(metadata.store, metadata.paths)
        self._disk = disk
        self._background = background
        self._commands = commands_of(bookie)

    @property
    def calls(self) -> dict[tuple[str, str], Call]:
        """By method and path."""
        return {
            ("GET", f"{_BOOKIE}/last_log_mark"): self.last_log_mark,
            ("GET", f"{_BOOKIE}/list_disk_file"): self.list_disk_file,
            ("PUT", f"{_BOOKIE}/expand_storage"): self.expand_storage,
            ("PUT", f"{_BOOKIE}/gc"): self.collect_garbage,
            ("PUT", f"{_BOOKIE}/gc/suspend_compaction"): self.suspend,
            ("PUT", f"{_BOOKIE}/gc/resume_compaction"): self.resume,
            ("PUT", f"{_BOOKIE}/state/readonly"): self.set_read_only,
            ("GET", f"{_BOOKIE}/entry_location_compact"): self.location_state,
            ("PUT", f"{_BOOKIE}/entry_location_compact"): self.compact_locations,
        }

    # -- what it has ----------------------------------------------------------------------------------------

    async def last_log_mark(self, request: ApiRequest) -> PageReply:
        """The end of each journal."""
        marks = self._bookie.engine.positions.values()
        return PageReply(
            200,
            {f"LastLogMark: Journal Id - {file}({journal_name(file)})": f"Pos - {group}" for file, group in marks},
        )

    async def list_disk_file(self, request: ApiRequest) -> PageReply:
        """Names of files, each with a tab behind it."""
        wanted = request.params.get("file_type")
        kinds = (wanted,) if wanted in _FILES else tuple(_FILES)
        return PageReply(200, {_FILES[kind][0]: "".join(f"{name}\t" for name in self._files(kind)) for kind in kinds})

    def _files(self, kind: str) -> list[str]:
        found: set[str] = set()
        for volume in self._bookie.engine.serving:
            place = volume.config.journal_dir if kind == "journal" else volume.config.ledger_dir
            names = self._disk.list(place)
            found.update(name for name in names if name.rpartition(".")[2] == _FILES[kind][1])
        return sorted(found)

    async def expand_storage(self, request: ApiRequest) -> PageReply:
        """Not supported."""
        return PageReply(
            404, "This bookie adds no directory by this route: bk bookie add-directory does, while the bookie runs"
        )

    # -- garbage and compaction ------------------------------------------------------------------------------

    async def collect_garbage(self, request: ApiRequest) -> PageReply:
        """Begin a pass, unless one runs."""
        major = not self._bookie.engine.compactor.is_suspended
        if request.body is not None and request.body.strip():
            told = request.document("Failed to handle the request, exception: ", 400)
            major = _truth(told, "forceMajor", major)
            _truth(told, "forceMinor", major)
        self._background.begin("garbage pass", request.caller, lambda: self._collect(major), how=major)
        return json_text(f"Triggered GC on BookieServer: {self._bookie.bookie_id}")

    async def _collect(self, major: bool) -> str:
        async def report(what: str) -> None:
            pass

        await self._commands["gc"]({"major": major}, report)
        return ""

    async def suspend(self, request: ApiRequest) -> PageReply:
        """Let compaction rest."""
        wanted = _words(request, "suspendMajor", "suspendMinor")
        if any(wanted.values()):
            self._bookie.engine.compactor.suspend()
        return json_text(self._done("Suspend", wanted))

    async def resume(self, request: ApiRequest) -> PageReply:
        """Let it go on."""
        wanted = _words(request, "resumeMajor", "resumeMinor")
        if any(wanted.values()):
            self._bookie.engine.compactor.resume()
        return json_text(self._done("Resume", wanted))

    def _done(self, verb: str, wanted: dict[str, bool]) -> str:
        server = f"Bookie Server listening on {self._bookie.address} with id {self._bookie.bookie_id}"
        major, minor = wanted.values()
        said = f"{verb} majorGC on BookieServer: {server}" if major else ""
        return said + (f", {verb} minorGC on BookieServer: {server}" if minor else "")

    async def location_state(self, request: ApiRequest) -> PageReply:
        """There is no RocksDB."""
        return PageReply(200, {})

    async def compact_locations(self, request: ApiRequest) -> PageReply:
        """Not supported."""
        if request.body is None or not request.body.strip():
            return PageReply(400, "Empty request body")
        if not _truth(request.document("", 400), "entryLocationRocksDBCompact", False):
            return PageReply(200, "Not trigger Entry Location RocksDB compact.")
        return json_text("This bookie has no RocksDB: its index segments are merged by themselves", 400)

    # -- read-only -------------------------------------------------------------------------------------------

    async def set_read_only(self, request: ApiRequest) -> PageReply:
        """Give the order, or take it back, and wait until the bookie follows."""
        told = request.document("", 500)
        if not isinstance(wanted := told.get("readOnly"), bool):
            raise RefusedRequestError('the body must be {"readOnly": true} or {"readOnly": false}')
        bookie = self._bookie.bookie_id
        if wanted:
            await self._orders.give(bookie, f"{request.caller} over HTTP")
        elif self._bookie.config.read_only:
            return PageReply(400, "Bookie is in forceReadOnly mode, cannot transit to writable mode")
        else:
            await self._orders.take_back(bookie)
        with contextlib.suppress(TimeoutError):  # what it is now is told in any case
            async with asyncio.timeout(FOLLOWS_S):
                await self._bookie.parts.order.wait_until(ordered=wanted)
        return PageReply(200, {"readOnly": self._bookie.condition().read_only})


def _truth(told: dict[str, Any], key: str, default: bool) -> bool:
    """A flag, which Apache's servers take as JSON's and as text. Raises: RefusedRequestError."""
    found = told.get(key, default)
    if not isinstance(found, bool) and found not in ("true", "false"):
        raise RefusedRequestError(f"Failed to handle the request, exception: {key} must be true or false", 400)
    return found in (True, "true")


def _words(request: ApiRequest, *keys: str) -> dict[str, bool]:
    """The flags of a body of which there must be one. Raises: RefusedRequestError."""
    if request.body is None:
        raise RefusedRequestError("Empty request body", 400)
    told = request.document("", 500)
    if not any(told.get(key) is not None for key in keys):
        raise RefusedRequestError(f"No {' or '.join(keys)} params found", 400)
    for key in keys:
        if not isinstance(told.get(key, False), bool):
            raise RefusedRequestError(f"{key} must be true or false, not a text")
    return {key: bool(told.get(key)) for key in keys}
