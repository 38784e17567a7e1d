"""Shell and codec: what a stream remembers of the applications that publish to it, a value for each.

They are never forgotten by age; ``bk stream apps forget`` does it. A new one is refused when there are ``APPS_MAX``.

Format 2 says whose an application is, and is written only of those that are somebody's: a program that knows only
format 1 refuses it, because it would let others publish in that name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from bookkeeper.errors import MetadataConflictError, NoSuchKeyError
from bookkeeper.meta.store import Create, Operation, Set, Version, settled_delete, settled_set_if
from segments.errors import BatchRefusedError, StreamCorruptError
from segments.names import check_owner_name, escape_name, stream_path, unescape_name
from segments.publish.batch_key import AppRecord
from segments.retention.checked_json import checked_fields, pack_json, unpack_json

if TYPE_CHECKING:
    from bookkeeper.meta import Metadata

FORMAT: Final = 2
"""The format of one that is somebody's."""
NOBODYS: Final = 1
"""The format of one that is nobody's."""
_KINDS: Final = dict.fromkeys(("app", "query", "run"), str) | dict.fromkeys(
    ("base", "last", "first_seq_no", "records", "published_ms"), int
)
APPS_MAX: Final = 10_000
"""The most applications of one stream."""

MayPublish: TypeAlias = Callable[[AppRecord], None]
"""Raises if whoever asks may not publish in the name of this application."""


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
        value = _packed(record)
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

    async def hand_over(self, app: str, by: str) -> bool:
        """Give one to somebody else; empty: to nobody. Returns whether it is there. Raises: StreamConfigError: nobody
        can have this name. And as read."""
        check_owner_name(by)
        while True:
            record, version = await self.read(app)
            if record is None or version is None:
                return False
            try:
                await settled_set_if(self._store, self._path(app), _packed(replace(record, by=by)), version, [])
            except MetadataConflictError:  # a batch was published meanwhile, or it was forgotten
                continue
            return True

    def _path(self, app: str) -> str:
        return f"{self._parent}/{escape_name(app)}"

    def _decoded(self, data: bytes) -> AppRecord:
        what = f"what stream {self._name} remembers of an application"
        try:
            found = AppRecord(**checked_fields(unpack_json(data, FORMAT, what), _KINDS, what))
            if type(found.by) is not str or type(found.attempt) is not str:
                raise TypeError("whose it is, and which attempt, are texts")
            return found
        except TypeError as error:
            raise StreamCorruptError(
                f"what stream {self._name} remembers of an application cannot be read", stream=self._name
            ) from error


def _packed(record: AppRecord) -> bytes:
    value = asdict(record)
    if record.by:
        return pack_json(FORMAT, value)
    del value["by"]
    return pack_json(NOBODYS, value)
