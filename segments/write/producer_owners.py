"""Shell and codec: whose the producers of a stream are, a value for each that is somebody's.

A gateway notes who uses a name first, and lets nobody else append under it. Programs of the cluster ask nobody: whoever
may write the metadata may do everything to a stream. Earlier versions look at none of these values, and delete them
with the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from bookkeeper.errors import KeyExistsError, MetadataConflictError, NoSuchKeyError
from bookkeeper.meta.store import get_or_none, names_below, settled_create, settled_delete, settled_set
from segments.names import check_owner_name, check_short_name, escape_name, stream_path, unescape_name
from segments.retention.checked_json import checked_fields, pack_json, unpack_json

if TYPE_CHECKING:
    from bookkeeper.meta import Metadata

FORMAT: Final = 1


class ProducerOwners:
    """The owners of one stream's producers. The methods raise BookKeeper's metadata errors, and StreamCorruptError and
    UnsupportedStreamFormatError: a value cannot be read."""

    def __init__(self, metadata: Metadata, stream_id: str, name: str) -> None:
        self._store, self._name = metadata.store, name
        self._parent = stream_path(metadata, stream_id, "producers")

    async def owner_of(self, producer: str) -> str:
        """Whose it is; empty: nobody's."""
        found = await get_or_none(self._store, self._path(producer), fresh=True)
        return "" if found is None else self._decoded(found.value)[0]

    async def claim(self, producer: str, by: str) -> str:
        """Make it somebody's, unless it is another one's already. Returns whose it is."""
        if owner := await self.owner_of(producer):
            return owner
        try:
            await settled_create(self._store, self._path(producer), _packed(by, given=False), parents=True)
        except KeyExistsError:
            return await self.owner_of(producer)
        return by

    async def hand_over(self, producer: str, by: str) -> None:
        """Give it to somebody; empty: to nobody. A name that no producer has yet is kept for him.

        Raises: StreamNameError, StreamConfigError: no producer, or nobody, can have this name.
        """
        check_short_name(producer, "producer")
        path = self._path(producer)
        if not check_owner_name(by):
            try:
                await settled_delete(self._store, path, None)
            except NoSuchKeyError:
                pass
            return
        value = _packed(by, given=True)
        while True:
            found = await get_or_none(self._store, path, fresh=True)
            try:
                if found is None:
                    await settled_create(self._store, path, value, parents=True)
                else:
                    await settled_set(self._store, path, value, found.version)
            except (KeyExistsError, MetadataConflictError, NoSuchKeyError):
                continue
            return

    async def all(self) -> dict[str, str]:
        """The producers that are somebody's, by name, and whose."""
        found = {}
        for part in await names_below(self._store, self._parent, fresh=True):
            name = unescape_name(part)
            if owner := await self.owner_of(name):
                found[name] = owner
        return found

    async def count(self) -> int:
        """How many are somebody's."""
        return len(await names_below(self._store, self._parent))

    async def tidy(self, is_needed: Callable[[str], bool]) -> int:
        """Forget whose those are that are not needed, and that nobody was given by hand. Returns how many are left."""
        left = 0
        for part in await names_below(self._store, self._parent, fresh=True):
            found = await get_or_none(self._store, f"{self._parent}/{part}")
            if is_needed(unescape_name(part)) or (found is not None and self._decoded(found.value)[1]):
                left += 1
                continue
            try:
                await settled_delete(self._store, f"{self._parent}/{part}", None)
            except NoSuchKeyError:
                pass
        return left

    def _path(self, producer: str) -> str:
        return f"{self._parent}/{escape_name(producer)}"

    def _decoded(self, data: bytes) -> tuple[str, bool]:
        what = f"the notes of stream {self._name} about whose a producer is"
        found = checked_fields(unpack_json(data, FORMAT, what), {"by": str, "given": bool}, what)
        return found["by"], found["given"]


def _packed(by: str, *, given: bool) -> bytes:
    """``given``: by an order, and not because he was the first."""
    return pack_json(FORMAT, {"by": by, "given": given})
