"""The console's pages of Spark's checkpoints: the queries of every gateway on the cluster, and of each its batches, its
state and who writes. They only read: the tree comes from a gateway's journal, and no gateway is asked or disturbed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote
from weakref import WeakKeyDictionary

from bookkeeper.amounts import counted
from bookkeeper.console.panels import (
    ByteCount,
    Cell,
    DetailLink,
    Moment,
    PanelBlock,
    PanelContext,
    PanelFacts,
    PanelNote,
    PanelPage,
    PanelTable,
    StateWord,
    Tone,
)
from bookkeeper.errors import BookKeeperError, NoSuchKeyError, in_words
from bookkeeper.leases.lease import LeaseValue
from journal_manager.backends.bookkeeper.journal_node import journal_names
from spark_wal.checkpoint_copy.contents import source_of
from spark_wal.checkpoints.checkpoint import SMALL, Checkpoint, read_checkpoint
from spark_wal.checkpoints.directory_tree import CheckpointDirectory, being_written, checkpoint_directories, stamp_of
from spark_wal.checkpoints.layout import meaning
from spark_wal.checkpoints.logs import LogFormatError, read_query_id
from spark_wal.webhdfs.contents.blob_store import BlobMissingError
from spark_wal.webhdfs.contents.ledger_blobs import LedgerBlobs
from spark_wal.webhdfs.files.inodes import BlobRef, FileNode
from spark_wal.webhdfs.ownership.followed_namespace import FollowedNamespace

if TYPE_CHECKING:
    from bookkeeper import BookKeeper

JOURNALS: Final = "webhdfs/"
"""What the names of gateways' journals begin with."""
NAMESPACES_MAX: Final = 100
CHECKPOINTS_MAX: Final = 5_000
BATCHES_MAX: Final = 200
"""Batches that a checkpoint's page has: the last ones."""
TEXT_MAX: Final = 400
"""Characters of where a source ends; the rest is left out."""
READ_MAX: Final = 16 << 20
"""Bytes of a checkpoint's logs that are read from ledgers for its page, where they are too large for the journal."""
WRITTEN_MAX: Final = 20
"""Temporary files that a page names."""


class CheckpointsPanel:
    """Checkpoints in the console."""

    name = "checkpoints"
    title = "Spark checkpoints"

    def __init__(self) -> None:
        self._followed: WeakKeyDictionary[BookKeeper, dict[str, FollowedNamespace]] = WeakKeyDictionary()

    async def snapshot(self, context: PanelContext) -> PanelPage:
        """The checkpoints by gateway and path. Raises BookKeeperError."""
        spaces = await self._namespaces(context.client)
        gateways = [await self._gateway(context.client, name) for name in spaces[:NAMESPACES_MAX]]
        return _list_page(gateways, len(spaces))

    async def detail(self, context: PanelContext, key: str) -> PanelPage | None:
        """One checkpoint; ``key`` is the namespace's name, quoted, and the path. Raises BookKeeperError."""
        quoted, slash, path = key.partition("/")
        name = unquote(quoted)
        if not slash or name not in await self._namespaces(context.client):
            return None
        tree = await self._follow(context.client, name).catch_up()
        places = () if tree is None else checkpoint_directories(tree.root)
        place = next((each for each in places if each.path == f"/{path}"), None)
        if place is None:
            return None
        return await _checkpoint_page(context.client, name, place, await _owner(context.client, name))

    async def _namespaces(self, client: BookKeeper) -> list[str]:
        names = await journal_names(client.metadata_store)
        return [name.removeprefix(JOURNALS) for name in names if name.startswith(JOURNALS)]

    async def _gateway(self, client: BookKeeper, name: str) -> _Gateway:
        owner = await _owner(client, name)
        try:
            tree = await self._follow(client, name).catch_up()
        except BookKeeperError as error:
            return _Gateway(name, owner, (), in_words(error))
        if tree is None:
            return _Gateway(name, owner, ())
        return _Gateway(name, owner, tuple(checkpoint_directories(tree.root)), files=tree.root.names_below)

    def _follow(self, client: BookKeeper, name: str) -> FollowedNamespace:
        followed = self._followed.setdefault(client, {})
        if name not in followed:
            followed[name] = FollowedNamespace(client, name)
        return followed[name]


PANEL: Final = CheckpointsPanel()


@dataclass(frozen=True, slots=True)
class _Gateway:
    """A gateway's namespace, and the checkpoints in it."""

    name: str
    owner: str | None
    """Where the gateway listens that had it last; None: none has it."""
    places: tuple[CheckpointDirectory, ...]
    why: str = ""
    """Why its checkpoints are not known."""
    files: int = 0


async def _owner(client: BookKeeper, name: str) -> str | None:
    """The address of the gateway that holds the namespace's lease, as far as the lease says."""
    metadata = client.metadata_store
    with suppress(NoSuchKeyError, ValueError, KeyError, TypeError):
        lease = LeaseValue.decode((await metadata.store.get(metadata.own("leases", f"webhdfs-{name}"))).value)
        return None if lease.released else lease.address
    return None


# -- the list ------------------------------------------------------------------------------------------------


def _list_page(gateways: Sequence[_Gateway], count: int) -> PanelPage:
    places = [(gateway, place) for gateway in gateways for place in gateway.places]
    columns = ("checkpoint", "namespace", "query", "state", "planned", "done", "size of state", "files", "written by")
    checkpoints = PanelTable(
        (*columns, "last write"),
        tuple(_list_row(gateway, place) for gateway, place in places[:CHECKPOINTS_MAX]),
        "Checkpoints",
        "There are no checkpoints",
        len(places) if len(places) > CHECKPOINTS_MAX else None,
    )
    rows = tuple(
        (
            gateway.name,
            StateWord("no gateway", Tone.WARN) if gateway.owner is None else gateway.owner,
            len(gateway.places),
            gateway.files,
        )
        for gateway in gateways
    )
    spaces = PanelTable(
        ("namespace", "gateway", "checkpoints", "files and directories"),
        rows,
        "Gateways",
        "No gateway keeps its files on this cluster",
        count if count > len(rows) else None,
    )
    problems = [gateway.why for gateway in gateways if gateway.why]
    notes = [PanelNote(why, Tone.BAD) for why in problems]
    summary = f"{len(places)} checkpoint{'' if len(places) == 1 else 's'}"
    return PanelPage((*notes, checkpoints, spaces), summary, Tone.BAD if problems else Tone.PLAIN)


def _list_row(gateway: _Gateway, place: CheckpointDirectory) -> tuple[Cell, ...]:
    newest = place.newest
    query, state = _query(place), _state(place.planned, place.committed)
    return (
        DetailLink(place.path, f"{quote(gateway.name, safe='')}{place.path}"),
        gateway.name,
        query,
        state,
        place.planned,
        place.committed,
        ByteCount(place.state_bytes),
        place.files,
        None if newest is None else newest.owner,
        None if newest is None else Moment(newest.modified_ms),
    )


def _query(place: CheckpointDirectory) -> Cell:
    data = _inline(place.metadata)
    if data is None:
        return None
    if source_of(data) is not None:
        return StateWord("unfinished copy", Tone.WARN)
    try:
        return read_query_id(data)
    except LogFormatError:
        return StateWord("damaged", Tone.BAD)


def _state(planned: int | None, committed: int | None) -> StateWord:
    if planned is None:
        return StateWord("not begun", Tone.PLAIN)
    if committed is None or planned > committed:
        return StateWord(f"batch {planned} planned, not done", Tone.PLAIN)
    return StateWord(f"batch {committed} done", Tone.GOOD)


def _inline(file: FileNode | None) -> bytes | None:
    """A file's bytes if all of them are in the tree."""
    if file is None or any(isinstance(piece, BlobRef) for piece in file.pieces):
        return None
    return b"".join(piece for piece in file.pieces if isinstance(piece, bytes))


# -- one checkpoint ----------------------------------------------------------------------------------------------


async def _checkpoint_page(client: BookKeeper, name: str, place: CheckpointDirectory, owner: str | None) -> PanelPage:
    files = place.listing(BATCHES_MAX)
    contents, problems = await _contents(client, name, files)
    listing = {path: stamp_of(file) for path, file in files.items() if path in contents or not _is_small(path)}
    found = read_checkpoint(place.path, listing, contents)
    problems += [f"{path} cannot be read: {why}" for path, why in found.unreadable.items()]
    newest = place.newest
    facts: dict[str, Cell] = {
        "state": _state(place.planned, place.committed),
        "query": found.query_id,
        "next batch": found.next_batch,
        "namespace": name,
        "gateway": StateWord("no gateway", Tone.WARN) if owner is None else owner,
        "written by": None if newest is None else newest.owner,
        "last write": None if newest is None else Moment(newest.modified_ms),
        "size": ByteCount(place.node.bytes_below),
        "size of state": ByteCount(place.state_bytes),
        "files and directories": place.files,
        "format of state": 2 if found.has_unique_ids else 1,
    }
    if found.unfinished_copy_of is not None:
        problems.append(f"This is an unfinished copy of {found.unfinished_copy_of}: no query starts here")
    blocks: list[PanelBlock] = [PanelFacts(facts), *(PanelNote(why, Tone.WARN) for why in problems[:20])]
    blocks += [_batch_table(found), _operator_table(found), _partition_table(found)]
    blocks += _temporary_table(files)
    tone = Tone.WARN if problems else Tone.PLAIN
    return PanelPage(tuple(blocks), f"{place.path}: {_state(place.planned, place.committed).text}", tone)


def _is_small(path: str) -> bool:
    return meaning(path).kind in SMALL


async def _contents(client: BookKeeper, name: str, files: dict[str, FileNode]) -> tuple[dict[str, bytes], list[str]]:
    """The bytes of the small files, and what cannot be had of them."""
    blobs = LedgerBlobs(client, name, client.services.seams.rng)
    found: dict[str, bytes] = {}
    problems: list[str] = []
    left = READ_MAX
    for path, file in files.items():
        if not _is_small(path):
            continue
        if (data := _inline(file)) is not None:
            found[path] = data
        elif file.length > left:
            problems.append(f"{path} is not shown: the logs have more than {READ_MAX >> 20} MiB in ledgers")
        else:
            left -= file.length
            try:
                found[path] = b"".join([piece async for piece in _pieces(blobs, file)])
            except BlobMissingError as error:
                problems.append(f"{path} cannot be read: {error}")
    return found, problems


async def _pieces(blobs: LedgerBlobs, file: FileNode) -> AsyncIterator[bytes]:
    for piece in file.pieces:
        if isinstance(piece, bytes):
            yield piece
        else:
            async for data in blobs.read(piece.blob, piece.offset, piece.length):
                yield data


def _batch_table(found: Checkpoint) -> PanelTable:
    """The newest first."""
    numbers = sorted(found.offsets.keys() | found.commits.keys(), reverse=True)
    rows = []
    for number in numbers:
        planned = found.offsets.get(number)
        done = StateWord("done", Tone.GOOD) if number in found.commits else StateWord("not done", Tone.PLAIN)
        at = None if planned is None else Moment(planned.planned_ms)
        watermark = None if planned is None or not planned.watermark_ms else Moment(planned.watermark_ms)
        sources = "" if planned is None else "; ".join(f"{each}: {text}" for each, text in planned.sources.items())
        rows.append((number, done, at, watermark, _cut(sources) or None))
    columns = ("batch", "state", "planned", "watermark", "where its sources end")
    return PanelTable(columns, tuple(rows), f"The last {counted(len(rows), 'batch')}", "No batch was planned yet")


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}… ({len(text)} characters)"


def _operator_table(found: Checkpoint) -> PanelTable:
    rows = tuple(
        (each.number, each.name, ", ".join(f"{name} in {counted(count, 'partition')}" for name, count in each.stores))
        for each in found.operators.values()
    )
    return PanelTable(("operator", "name", "stores"), rows, "Operators with state", "No operator has state")


def _partition_table(found: Checkpoint) -> PanelTable:
    rows = []
    for partition, versions in found.state_files.items():
        size = sum(found.listing[each.path].size for each in versions)
        shown = f"{versions[0].version} to {versions[-1].version}"
        rows.append((partition.operator, partition.partition, partition.store, shown, ByteCount(size)))
    columns = ("operator", "partition", "store", "versions", "size")
    kept = tuple(rows[:BATCHES_MAX])
    total = len(rows) if len(rows) > len(kept) else None
    return PanelTable(columns, kept, "Partitions of state", "There is no state", total)


def _temporary_table(files: dict[str, FileNode]) -> list[PanelBlock]:
    """Who writes now, or has died while he wrote."""
    found = being_written(files)
    rows = tuple(
        (path, file.owner, ByteCount(file.length), Moment(file.touched_ms or file.modified_ms))
        for path, file in list(found.items())[:WRITTEN_MAX]
    )
    if not rows:
        return []
    total = len(found) if len(found) > len(rows) else None
    return [PanelTable(("file", "by", "size", "written"), rows, "Temporary files", "none", total)]
