"""The holds of a stream at their path in the metadata store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bookkeeper.errors import KeyExistsError, MetadataConflictError, NoSuchKeyError
from bookkeeper.meta import Metadata
from bookkeeper.meta.store import Check, Version, settled_create, settled_set_if
from segments.chain import StreamChain, StreamHead
from segments.error_translation import worded
from segments.names import check_short_name, stream_path
from segments.retention.holds import Hold, Holds

MayChange = Callable[[Hold], None]
"""Raises if a hold that somebody has put may not be changed or released by who asks for that."""


class HoldNode:
    """Reads and changes them. The methods raise StreamError."""

    def __init__(self, metadata: Metadata, node: StreamHead) -> None:
        self._node = node
        self._store = metadata.store
        self._path = stream_path(metadata, node.stream_id, "holds")

    async def read(self) -> tuple[Holds, Check]:
        """The holds, and the condition that they are still these.

        Raises:
            StreamNotFoundError: the stream is gone. StreamCorruptError, UnsupportedStreamFormatError,
            StreamMetadataError.
        """
        with worded(f"reading the holds of stream {self._node.name}", self._node.name):
            while True:
                await self._store.sync(self._path)
                try:
                    found = await self._store.get(self._path)
                    return Holds.decode(found.value), Check(self._path, found.version)
                except NoSuchKeyError:
                    await self._make()

    async def stored(self) -> Holds:
        """The holds, for whoever only looks: no node is made. Raises: as ``read``, but for StreamNotFoundError."""
        with worded(f"reading the holds of stream {self._node.name}", self._node.name):
            await self._store.sync(self._path)
            try:
                return Holds.decode((await self._store.get(self._path)).value)
            except NoSuchKeyError:
                return Holds()

    async def _make(self) -> None:
        await self._node.read()  # a stream that was deleted does not come back by its holds
        try:
            await settled_create(self._store, self._path, Holds().encode())
        except KeyExistsError:
            pass

    async def put(self, hold: Hold, now_ms: int, may_change: MayChange = lambda hold: None) -> Hold:
        """Add a hold, or give the one of this name another range. Expired ones are swept on the way.

        It is made only if nothing was truncated or removed meanwhile: what it covers exists. ``may_change`` is asked
        about the hold that it replaces, as it is when it is replaced, and raises if this may not be.

        Raises:
            StreamConfigError: its range begins before the stream, or is empty. StreamNameError. And as ``read``.
        """
        check_short_name(hold.name, "hold")

        def put(holds: Holds, chain: StreamChain) -> Holds:
            begins = chain.reads_on(hold.start)
            placed = hold if begins is None else replace(hold, start=begins)
            rest = holds.sweep(now_ms)
            if (present := rest.by_name.get(hold.name)) is not None:
                may_change(present)
            return rest.put(placed, chain.first_position)

        holds = await self._change(put, f"putting hold {hold.name}")
        return holds.by_name[hold.name]

    async def release(self, name: str, may_change: MayChange = lambda hold: None, *, only: Hold | None = None) -> None:
        """Remove a hold. What it kept goes with the next pass of retention. ``may_change`` is asked about it, as in
        ``put``. One that is put under its name meanwhile stays: a removal that got no answer may have been done.

        Args:
            only: this very hold; if it is gone already, nothing is changed.

        Raises: HoldNotFoundError; and as read.
        """
        meant = only

        def release(holds: Holds, _: StreamChain) -> Holds:
            nonlocal meant
            present = holds.by_name.get(name)
            if meant is not None and present != meant:
                return holds
            if present is not None:
                may_change(present)
            changed, meant = holds.release(name), present
            return changed

        await self._change(release, f"releasing hold {name}")

    async def _change(self, change: Callable[[Holds, StreamChain], Holds], doing: str) -> Holds:
        name = self._node.name
        with worded(f"{doing} of stream {name}", name):
            while True:
                chain, chain_version = await self._node.read()
                holds, condition = await self.read()
                changed = change(holds, chain)
                if changed == holds:
                    return holds
                same_chain = Check(self._node.path, chain_version)
                try:
                    await settled_set_if(self._store, self._path, changed.encode(), _version(condition), [same_chain])
                except MetadataConflictError:
                    continue
                return changed


def _version(condition: Check) -> Version:
    assert condition.expected is not None
    return condition.expected
