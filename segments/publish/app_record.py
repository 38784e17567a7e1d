"""Shell and codec: what a stream remembers of the applications that publish to it, a value for each.

They are never forgotten by age; ``bk stream apps forget`` does it. A new one is refused when there are ``APPS_MAX``.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from bookkeeper.errors import NoSuchKeyError
from bookkeeper.meta.store import Create, Operation, Set, Version, settled_delete
from segments.errors import BatchRefusedError, StreamCorruptError
from segments.names import escape_name, stream_path, unescape_name
from segments.publish.batch_key import AppRecord
from segments.retention.checked_json import checked_fields, pack_json, unpack_json

if TYPE_CHECKING:
    from bookkeeper.meta import Metadata

FORMAT: Final = 1
_KINDS: Final = dict.fromkeys(("app", "query", "run"), str) | dict.fromkeys(
    ("base", "last", "first_seq_no", "records", "published_ms"), int
)
APPS_MAX: Final = 10_000
"""The most applications of one stream."""


class AppRecords:
    """The applications of one stream. The methods raise BookKeeper's metadata errors."""

    def __init__(self, metadata: Metadata, stream_id: str, name: str) -> None:
        self._store, self._name = metadata.store, name
        self._parent = stream_path(metadata, stream_id, "apps")

    @property
    def parent(self) -> str:
        """The path below which they are."""
        return self._parent

    async def read(self, app: str) -> tuple[AppRecord | None, Version | None]:
        """What is remembered of one. Raises: StreamCorruptError, UnsupportedStreamFormatError."""
        path = self._path(app)
        await self._store.sync(path)
        try:
            found = await self._store.get(path)
        except NoSuchKeyError:
            return None, None
        return self._decoded(found.value), found.version

    def write(self, record: AppRecord, expected: Version | None) -> Operation:
        """The part of a write that remembers one. None: it must not be there yet."""
        value = pack_json(FORMAT, asdict(record))
        if expected is None:
            return Create(self._path(record.app), value)
        return Set(self._path(record.app), value, expected)

    async def check_room(self) -> None:
        """Check that a new one may come. Raises BatchRefusedError."""
        try:
            count = len(await self._store.children(self._parent))
        except NoSuchKeyError:
            return
        if count >= APPS_MAX:
            raise BatchRefusedError(
                f"{count} applications have published to stream {self._name}, the most that it remembers: "
                f"bk stream apps forget {self._name} APP forgets one that writes no more",
                stream=self._name,
            )

    async def all(self) -> list[AppRecord]:
        """All of them, by name. Raises: as read."""
        try:
            names = await self._store.children(self._parent)
        except NoSuchKeyError:
            return []
        found = []
        for name in sorted(names):
            record, _ = await self.read(unescape_name(name))
            if record is not None:
                found.append(record)
        return found

    async def forget(self, app: str) -> bool:
        """Forget one: what it publishes next counts as new. Returns whether it was there."""
        try:
            await settled_delete(self._store, self._path(app), None)
        except NoSuchKeyError:
            return False
        return True

    def _path(self, app: str) -> str:
        return f"{self._parent}/{escape_name(app)}"

    def _decoded(self, data: bytes) -> AppRecord:
        what = f"what stream {self._name} remembers of an application"
        try:
            return AppRecord(**checked_fields(unpack_json(data, FORMAT, what), _KINDS, what))
        except TypeError as error:
            raise StreamCorruptError(
                f"what stream {self._name} remembers of an application cannot be read", stream=self._name
            ) from error
