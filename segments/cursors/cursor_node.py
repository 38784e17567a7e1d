"""The records of a stream's cursors at their paths, ``<stream>/cursors/<escaped name>``, changed by compare-and-set.

Making a cursor, or moving it to another position, writes its node and then the value of ``<stream>/cursors``, which
is empty: only its version counts. A pass of retention takes this version before it reads the cursors, and removes
nothing unless it is still the same. So it has seen a cursor whose owner was told that it is made, or removes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from bookkeeper.amounts import counted
from bookkeeper.chains.chain_node import ChainNode
from bookkeeper.errors import KeyExistsError, MetadataConflictError, NoSuchKeyError
from bookkeeper.meta.store import Check, Version, get_or_none, settled_create, settled_delete, settled_set
from segments.cursors.cursor_format import decode_cursor, encode_cursor
from segments.cursors.cursor_state import CursorState
from segments.error_translation import worded
from segments.errors import CursorNotFoundError, StreamCorruptError, TooManyCursorsError
from segments.names import check_short_name, escape_name, stream_path, unescape_name

if TYPE_CHECKING:
    from bookkeeper.meta import Metadata

CURSORS_MAX: Final = 1_000
"""The most cursors of one stream: each pass of retention reads all of them."""

CURSORS_OF_ONE_MAX: Final = 100
"""The most of them that belong to one name, so that one reader leaves room for the others."""

MayMove: TypeAlias = Callable[[str | None], None]
"""Raises if a cursor may not be moved or deleted by who asks for that. It gets whose the cursor is, ``CursorState.by``;
None if its node is damaged and nobody knows."""


class CursorNode(ChainNode[CursorState]):
    """The node of one cursor. Methods that say nothing else raise BookKeeper's metadata errors."""

    def __init__(self, metadata: Metadata, stream_id: str, stream: str, name: str) -> None:
        check_short_name(name, "cursor")
        path = stream_path(metadata, stream_id, "cursors", escape_name(name))
        super().__init__(metadata.store, path, decode_cursor, encode_cursor)
        self._parent = stream_path(metadata, stream_id, "cursors")
        self.name = name
        self.stream = stream
        """The stream's name, for messages."""

    async def read(self) -> tuple[CursorState, Version]:
        """Read the node as it is now.

        Raises:
            CursorNotFoundError: there is none. StreamCorruptError, UnsupportedStreamFormatError.
        """
        state, version, _ = await self.read_created()
        return state, version

    async def read_created(self) -> tuple[CursorState, Version, int]:
        """As ``read``: a cursor of a deleted one's name is another one, whose versions begin again."""
        try:
            found = await self._found()
        except NoSuchKeyError as error:
            raise CursorNotFoundError(
                f"stream {self.stream} has no cursor named {self.name}", stream=self.stream
            ) from error
        return found.value, found.version, found.created_txn

    async def create(self, state: CursorState) -> bool:
        """Make the node. False: there is one already. The state's nonce is its maker's.

        Raises:
            TooManyCursorsError: the stream has as many as it may have, or whose it would be has. Nothing is left of it.
        """
        if await self.store.exists(self.path) is not None:
            return False
        await self._check_room(state.by, more=1)
        try:
            await settled_create(self.store, self.path, encode_cursor(state), parents=True)
        except KeyExistsError:
            return False
        try:
            await self._check_room(state.by, more=0)  # of several that are made at a time none may be beyond it
        except TooManyCursorsError:
            await self.take_back(state)
            raise
        await self._announce()
        return True

    async def _check_room(self, by: str, *, more: int) -> None:
        """Check that the stream may have ``more`` cursors than it has. Raises: TooManyCursorsError."""
        await self.store.sync(self._parent)
        try:
            names = await self.store.children(self._parent)
        except NoSuchKeyError:
            return
        if len(names) + more > CURSORS_MAX:
            raise TooManyCursorsError(
                f"stream {self.stream} has {counted(len(names), 'cursor')}, and takes none beyond "
                f"{CURSORS_MAX}: delete some "
                f"(bk stream cursor list {self.stream} shows them); {self.name} was not made",
                stream=self.stream,
            )
        if by and len(names) + more > CURSORS_OF_ONE_MAX and await self._owned(by, names) + more > CURSORS_OF_ONE_MAX:
            raise TooManyCursorsError(
                f"{by} has {CURSORS_OF_ONE_MAX} cursors of stream {self.stream}, the most of one name: delete some of "
                f"them; {self.name} was not made",
                stream=self.stream,
            )

    async def _owned(self, by: str, names: Sequence[str]) -> int:
        """How many of these nodes belong to a name."""
        count = 0
        for name in names:
            try:
                found = await self.store.get(f"{self._parent}/{name}")
            except NoSuchKeyError:
                continue
            count += _owner_of(found.value) == by
        return count

    async def write(self, value: CursorState, expected: Version, *, created_txn: int = 0) -> Version:
        """Replace version ``expected``. What an owner could not announce of a chosen position the next one does.

        Raises:
            MetadataConflictError: someone else replaced it.
            NoSuchKeyError: it was deleted, and perhaps made anew.
        """
        version = await super().write(value, expected, created_txn=created_txn)
        if value.is_repositioned:
            await self._announce()
        return version

    async def take_back(self, state: CursorState) -> None:
        """Delete the node if it is still as it was made. An owner that has it by now keeps it."""
        await self.store.sync(self.path)
        try:
            found = await self.store.get(self.path)
            if found.value == encode_cursor(state):
                await settled_delete(self.store, self.path, found.version, created_txn=found.created_txn)
        except (MetadataConflictError, NoSuchKeyError):
            pass

    async def overwrite(self, state: CursorState) -> None:
        """Replace a node that nobody can read.

        Raises:
            MetadataConflictError: someone else replaced it meanwhile.
        """
        found = await self.store.get(self.path)
        try:
            decode_cursor(found.value)
        except StreamCorruptError:
            pass
        else:
            raise MetadataConflictError(f"{self.path} can be read: someone else has replaced it")
        await settled_set(self.store, self.path, encode_cursor(state), found.version)
        await self._announce()

    async def _announce(self) -> None:
        """Let passes of retention that have read the cursors already read them again."""
        await self.store.sync(self._parent)
        found = await self.store.get(self._parent)
        try:
            await settled_set(self.store, self._parent, found.value, found.version)
        except MetadataConflictError:
            pass  # another cursor was announced after this one was written

    async def delete(self, may_move: MayMove | None = None) -> bool:
        """Delete the node. False: there was none. ``may_move`` is asked about the node as it is when it goes.

        Raises: what ``may_move`` raises.
        """
        if may_move is None:
            try:
                await settled_delete(self.store, self.path, None)
            except NoSuchKeyError:
                return False
            return True
        while True:
            if (found := await get_or_none(self.store, self.path, fresh=True)) is None:
                return False
            may_move(_owner_of(found.value))
            try:
                await settled_delete(self.store, self.path, found.version, created_txn=found.created_txn)
            except (MetadataConflictError, NoSuchKeyError):
                continue
            return True


def _owner_of(raw: bytes) -> str | None:
    """The owner of a node; None if the node cannot be read."""
    try:
        return decode_cursor(raw).by
    except StreamCorruptError:
        return None


async def cursor_names(metadata: Metadata, stream_id: str, stream: str) -> tuple[str, ...]:
    """The names of a stream's cursors, sorted. Raises: StreamMetadataError."""
    path = stream_path(metadata, stream_id, "cursors")
    with worded(f"listing the cursors of stream {stream}", stream):
        await metadata.store.sync(path)
        try:
            return tuple(sorted(map(unescape_name, await metadata.store.children(path))))
        except NoSuchKeyError:
            return ()


async def cursors_as_positioned(metadata: Metadata, stream_id: str, stream: str) -> Check:
    """The condition that no cursor is made, or moved to another position, from now on. Raises: StreamMetadataError."""
    path = stream_path(metadata, stream_id, "cursors")
    with worded(f"looking at the cursors of stream {stream}", stream):
        while True:
            await metadata.store.sync(path)
            try:
                return Check(path, (await metadata.store.get(path)).version)
            except NoSuchKeyError:
                pass
            try:
                await metadata.store.create(path)
            except KeyExistsError:
                pass


async def read_cursors(metadata: Metadata, stream_id: str, stream: str) -> dict[str, CursorState]:
    """All cursors of a stream.

    Raises:
        StreamMetadataError. StreamCorruptError, UnsupportedStreamFormatError: one of them cannot be read; nobody can
        tell what it still needs.
    """
    found: dict[str, CursorState] = {}
    for name in await cursor_names(metadata, stream_id, stream):
        with worded(f"reading cursor {name} of stream {stream}", stream):
            try:
                found[name] = (await CursorNode(metadata, stream_id, stream, name).read())[0]
            except CursorNotFoundError:
                continue
    return found
