"""The names of a namespace's streams: listing, renaming, and being told of changes.

A name leads to a stream's id, and everything else of the stream is kept under the id. So renaming is one write, moves
no data, and disturbs neither writers nor readers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile
from typing import TYPE_CHECKING

from bookkeeper.errors import KeyExistsError, MetadataConflictError, NoSuchKeyError
from bookkeeper.meta import Metadata
from bookkeeper.meta.store import OUTCOME_UNKNOWN, Create, Delete, Operation, get_or_none
from segments.chain import RecentHead, StreamChain, StreamHead, StreamSegment
from segments.directory.settings import named_stream
from segments.error_translation import worded
from segments.errors import StreamExistsError, StreamNotFoundError
from segments.names import check_stream_name, name_path, names_path, unescape_name
from segments.position import Position

if TYPE_CHECKING:
    from bookkeeper import BookKeeper


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A stream in one line."""

    name: str
    stream_id: str
    sealed: bool
    owner: str
    """The writer's name; empty if nobody writes."""
    epoch: int
    segments: int
    records: int
    """Of the completed segments, as far as readers see them."""
    bytes: int
    """Of the completed segments, as stored once, also of those records that are truncated."""
    start: Position
    """The first position that readers see."""
    truncated: int = 0
    """Records of the completed segments that readers do not see any more, and that are still stored. A gateway of an
    older version counts them among the records."""


def info_of(name: str, chain: StreamChain) -> StreamInfo:
    """The line of a stream with this node."""
    hidden = chain.hidden_records
    return StreamInfo(
        name,
        chain.stream_id,
        chain.sealed,
        chain.owner,
        chain.epoch,
        chain.count,
        chain.listed_records - hidden,
        chain.listed_bytes,
        chain.first_position,
        hidden,
    )


async def stream_names(metadata: Metadata, prefix: str = "") -> dict[str, str]:
    """The names that begin with ``prefix``, sorted, each with its stream's id. Raises StreamMetadataError."""
    with worded("listing the streams"):
        path = names_path(metadata)
        await metadata.store.sync(path)
        try:
            names = sorted(map(unescape_name, await metadata.store.children(path)))
        except NoSuchKeyError:
            return {}
        found: dict[str, str] = {}
        for name in names:
            if name.startswith(prefix):
                try:
                    found[name] = (await metadata.store.get(name_path(metadata, name))).value.decode()
                except NoSuchKeyError:
                    continue
        return found


async def list_streams(client: BookKeeper, prefix: str = "") -> AsyncIterator[StreamInfo]:
    """The streams whose names begin with ``prefix``, by name. One that is deleted meanwhile is left out.

    Raises:
        StreamMetadataError, StreamCorruptError, UnsupportedStreamFormatError.
    """
    for name, stream_id in (await stream_names(client.metadata_store, prefix)).items():
        with worded(f"reading stream {name}", name):
            try:
                chain, _ = await RecentHead(client.metadata_store, stream_id, name).read()
            except StreamNotFoundError:
                continue
        yield info_of(name, chain)


async def rename_stream(client: BookKeeper, old: str, new: str) -> None:
    """Give a stream another name. Writers, readers and cursors go on.

    Raises:
        StreamNotFoundError: there is no stream ``old``. StreamExistsError: there is a stream ``new``.
        StreamNameError: ``new`` cannot be a name. StreamMetadataError: perhaps it was renamed.
    """
    new = check_stream_name(new)
    metadata, store = client.metadata_store, client.metadata_store.store
    source, target = name_path(metadata, old), name_path(metadata, new)
    with worded(f"renaming stream {old} to {new}", old):
        unsure: bytes | None = None  # the stream that an attempt without an answer may have renamed
        while True:
            await store.sync(source)
            if unsure is not None and (there := await get_or_none(store, target)) is not None and there.value == unsure:
                return
            if (stream := await named_stream(metadata, old)) is None:
                raise StreamNotFoundError(f"there is no stream {old}", stream=old)
            found, settings = stream.name, stream.settings
            if unsure not in (None, found.value):
                raise StreamNotFoundError(f"stream {old} is another one than it was a moment ago", stream=old)
            if old == new:
                return
            rename: list[Operation] = [Delete(source, found.version), Create(target, found.value)]
            try:
                await store.multi([*rename, *([settings] if settings is not None else [])])
            except KeyExistsError as error:
                raise StreamExistsError(f"there is a stream {new} already", stream=new) from error
            except OUTCOME_UNKNOWN:
                unsure = found.value
            except (MetadataConflictError, NoSuchKeyError):
                continue
            else:
                return


# -- listeners -------------------------------------------------------------------------------------------


class NameChange(Enum):
    """What happened to a name."""

    CREATED = "created"
    DELETED = "deleted"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True)
class NamespaceEvent:
    """A change of a namespace."""

    change: NameChange
    name: str
    """The stream's name now, or its last one."""
    stream_id: str
    was: str | None = None
    """The former name of a stream that was renamed."""


def diff_names(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[NamespaceEvent, ...]:
    """What happened between two listings of name and id. A name with another id is another stream."""
    gone = {stream_id: name for name, stream_id in before.items() if after.get(name) != stream_id}
    new = {stream_id: name for name, stream_id in after.items() if before.get(name) != stream_id}
    found = [
        NamespaceEvent(NameChange.DELETED, name, stream_id) for stream_id, name in gone.items() if stream_id not in new
    ]
    for stream_id, name in new.items():
        if stream_id in gone:
            found.append(NamespaceEvent(NameChange.RENAMED, name, stream_id, gone[stream_id]))
        else:
            found.append(NamespaceEvent(NameChange.CREATED, name, stream_id))
    return tuple(found)


async def watch_streams(client: BookKeeper, prefix: str = "") -> AsyncIterator[NamespaceEvent]:
    """Changes of the streams whose names begin with ``prefix``, from now on, for ever; first, those that exist.

    What is created and deleted again in between may be left out. A lost session is made good by listing again.

    Raises:
        StreamMetadataError: the store does not answer.
    """
    metadata = client.metadata_store
    changed = asyncio.Event()
    watch = metadata.store.watch_children(names_path(metadata), changed.set)
    try:
        known: dict[str, str] = {}
        while True:
            changed.clear()
            names = await stream_names(metadata, prefix)
            for event in diff_names(known, names):
                yield event
            known = names
            await changed.wait()
    finally:
        watch.close()


class ChainChange(Enum):
    """What happened to a stream."""

    SEGMENT_STARTED = "segment started"
    SEGMENT_COMPLETED = "segment completed"
    SEGMENT_REMOVED = "segment removed"
    TRUNCATED = "truncated"
    CLAIMED = "claimed"
    SEALED = "sealed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """A change of a stream."""

    change: ChainChange
    segment: int | None = None
    position: Position | None = None
    """Of a truncation: where the stream begins now."""
    owner: str | None = None
    """Of a claim: the new owner's name."""


def diff_chains(before: StreamChain, after: StreamChain) -> tuple[StreamEvent, ...]:
    """What happened between two versions of a stream's node."""
    found: list[StreamEvent] = []
    if after.epoch != before.epoch:
        found.append(StreamEvent(ChainChange.CLAIMED, owner=after.owner))
    was_open = {segment.number: segment.is_open for segment in before.recent}
    for segment in _since(after, before.recent[0].number if before.recent else 0):
        if segment.number not in was_open:
            found.append(StreamEvent(ChainChange.SEGMENT_STARTED, segment.number))
        if was_open.get(segment.number, True) and not segment.is_open:
            found.append(StreamEvent(ChainChange.SEGMENT_COMPLETED, segment.number))
    if after.first_position > before.first_position:
        found.append(StreamEvent(ChainChange.TRUNCATED, position=after.first_position))
    listed = {segment.number for segment in _since(after, before.recent[0].number if before.recent else 0)}
    removed = [segment.number for segment in takewhile(lambda s: s.number < after.first_number, before.segments)]
    removed += [number for number in was_open if number >= after.first_number and number not in listed]
    found += [StreamEvent(ChainChange.SEGMENT_REMOVED, number) for number in removed]
    if after.sealed and not before.sealed:
        found.append(StreamEvent(ChainChange.SEALED))
    return tuple(found)


def _since(chain: StreamChain, number: int) -> list[StreamSegment]:
    """The segments from this number on: a few at the end of a long stream."""
    return [
        segment
        for page in chain.pages
        if page.last >= number
        for segment in page.segments()
        if segment.number >= number
    ] + [segment for segment in chain.recent if segment.number >= number]


async def watch_stream(node: StreamHead) -> AsyncIterator[StreamEvent]:
    """Changes of a stream from now on, until it is deleted; that is the last event.

    Steps that follow each other fast are told together, none is left out but a segment that came and went in between.

    Raises:
        StreamNotFoundError: there is no stream now. StreamMetadataError: the store does not answer.
    """
    changed = asyncio.Event()
    watch = node.watch(changed.set)
    try:
        with worded(f"watching stream {node.name}", node.name):
            known, _ = await node.read()
        while True:
            await changed.wait()
            changed.clear()
            with worded(f"watching stream {node.name}", node.name):
                try:
                    chain, _ = await node.read()
                except StreamNotFoundError:
                    yield StreamEvent(ChainChange.DELETED)
                    return
            for event in diff_chains(known, chain):
                yield event
            known = chain
    finally:
        watch.close()
