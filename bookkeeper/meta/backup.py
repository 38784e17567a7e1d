"""A backup of a cluster's metadata, taken while the cluster runs, and put into an empty store.

A backup is a text of lines: a head (cluster, layout's place, the store's newest transaction before anything was read),
one line for each value that is not ephemeral, and an end with their number and digest. It holds the passwords of
ledgers, so its file is private.

The values are read one after another, so they are those of the time while it was taken, not of one moment; each
ledger's metadata are one value. Ledgers are read before and after what names them, so that a stream or a journal that
begins a segment meanwhile names no ledger that is missing; so are values that lie deeper, as a stream's pages. A ledger
that is deleted or brought back meanwhile is one of the two. Whoever has seen a transaction after the head's is told
that the restored cluster is older, and ``bk metadata accept-rollback`` goes on from there.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from bookkeeper.errors import MetadataError, MetadataFormatError, NoClusterError, NoSuchKeyError, in_words
from bookkeeper.meta.records import layout as layouts
from bookkeeper.meta.records.deleted_ledgers import deleted_among
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.lineage import COPYING, MOVED
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import parent_of
from bookkeeper.meta.store_copy import CopyReport, Progress, StoreCopy
from bookkeeper.meta.store_steps import ClusterLocation, chunks, is_ledger, probe, walk
from bookkeeper.meta.stores.memory import MemoryCluster, MemorySnapshot
from bookkeeper.meta.stores.tree import TreeNode

KIND: Final = "bookkeeper-py metadata backup"
VERSION: Final = 1
HEAD_MAX: Final = 64 * 1024
"""Bytes of a backup's first line at most."""

_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class MetadataBackup:
    """What a backup holds."""

    root: str
    instance_id: str
    transaction: int
    """The store's newest transaction when the backup began."""
    number: int
    """The last number of the generator of short ledger ids."""
    generator: str
    """The path below which that generator counts."""
    taken_ms: int
    """When it began, in milliseconds since 1970, by the clock of who took it."""
    values: dict[str, bytes]
    """Path -> value, parents first."""

    @property
    def ledgers(self) -> int:
        """How many ledgers there are."""
        return sum(is_ledger(path.removeprefix(self.root)) for path in self.values)

    def encode(self) -> Iterator[str]:
        """The lines of the file."""
        head = {
            "kind": KIND,
            "version": VERSION,
            "root": self.root,
            "instance_id": self.instance_id,
            "transaction": self.transaction,
            "number": self.number,
            "generator": self.generator,
            "taken_ms": self.taken_ms,
        }
        digest = hashlib.sha256()
        for row in (head, *({"path": path, "value": _packed(value)} for path, value in self.values.items())):
            line = json.dumps(row) + "\n"
            digest.update(line.encode())
            yield line
        yield json.dumps({"values": len(self.values), "sha256": digest.hexdigest()}) + "\n"

    @classmethod
    def decode(cls, lines: Iterable[str]) -> MetadataBackup:
        """Read such lines back. Raises: MetadataFormatError: they are no whole backup, or of a later version."""
        try:
            return cls._decoded(iter(lines))
        except UnicodeDecodeError as error:
            raise MetadataFormatError("it is no backup of metadata: it is no text") from error
        except (ValueError, TypeError, KeyError, RecursionError, binascii.Error) as error:
            raise MetadataFormatError(f"it is no backup of metadata, or damaged: {in_words(error)}") from error

    @classmethod
    def _decoded(cls, lines: Iterator[str]) -> MetadataBackup:
        digest = hashlib.sha256()
        first = next(lines, "")
        head = json.loads(first)
        if not isinstance(head, dict) or head.get("kind") != KIND:
            raise MetadataFormatError("it is no backup of metadata")
        if head["version"] != VERSION:
            raise MetadataFormatError(f"it is a backup of version {head['version']}, which this program does not know")
        digest.update(first.encode())
        values: dict[str, bytes] = {}
        end: dict[str, Any] | None = None
        for line in lines:
            if end is not None:
                raise MetadataFormatError("something comes after its end")
            row = json.loads(line)
            if "sha256" in row:
                end = row
                continue
            digest.update(line.encode())
            values[str(row["path"])] = base64.b64decode(row["value"], validate=True)
        if end is None:
            raise MetadataFormatError("its end is missing: it was cut")
        if (end["values"], end["sha256"]) != (len(values), digest.hexdigest()):
            raise MetadataFormatError("its digest is another one: something in it was changed")
        return cls(
            str(head["root"]),
            str(head["instance_id"]),
            int(head["transaction"]),
            int(head["number"]),
            str(head["generator"]),
            int(head["taken_ms"]),
            values,
        )


def instance_of(head: bytes) -> str | None:
    """The cluster of a backup that begins with this line; None if it is no such line."""
    try:
        found = json.loads(head)
        return str(found["instance_id"]) if found["kind"] == KIND else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


async def take_backup(place: ClusterLocation, *, now_ms: int, progress: Progress) -> MetadataBackup:
    """Read all metadata of a cluster, which may be in use. One number of its id generator is used up.

    Raises:
        NoClusterError: there is no cluster. MetadataError: it is being copied or has moved. MetadataUnavailableError.
    """
    store, paths = place.store, place.paths
    await store.sync("/")
    transaction = store.last_transaction
    try:
        instance_id = (await store.get(paths.instance_id)).value.decode()
    except NoSuchKeyError as error:
        raise NoClusterError(f"there is no cluster at {place.name}") from error
    for mark in (MOVED, COPYING):
        if await store.exists(paths.own(mark)) is not None:
            raise MetadataError(f"the cluster at {place.name} has moved, or is being moved: take the backup there")
    layout = await _layout(place)
    generator = paths.root if layout is Layout.FLAT else paths.id_generator
    values: dict[str, bytes] = {}
    for root in (paths.root, paths.own_root, paths.own_root, paths.root):  # what names others between two looks at them
        await _read_below(place, root, values, progress)
    for deleted in list(
        deleted_among(paths, values)
    ):  # it was deleted or brought back meanwhile: it can be brought back
        values.pop(layout.ledger_path(paths.root, deleted), None)
    # the last number is read after all values, so that it is above every id that they name
    number = await probe(store, generator) if await store.exists(generator) is not None else -1
    parents_first = {path: values[path] for path in sorted(values, key=lambda path: (_depth(path), path))}
    return MetadataBackup(paths.root, instance_id, transaction, number, generator, now_ms, parents_first)


async def restore_backup(
    backup: MetadataBackup, target: ClusterLocation, *, new_id: str, progress: Progress, resume: bool = False
) -> CopyReport:
    """Put a backup into an empty store, compare it, and open the cluster there.

    A bookie that has seen more than the backup knows does not start there until the loss is accepted.

    Raises:
        ClusterExistsError: the target is not empty. Others as :meth:`StoreCopy.run`.
    """
    cluster = MemoryCluster()
    found = cluster.snapshot()
    nodes = dict(found.nodes)
    for path in backup.values:
        parts = path.split("/")
        for end in range(2, len(parts)):
            nodes.setdefault("/".join(parts[:end]), _node(b""))
    for path, value in backup.values.items():
        nodes[path] = _node(value, backup.number + 1 if path == backup.generator else 0)
    cluster.restore(MemorySnapshot(nodes, backup.transaction))
    source = ClusterLocation(cluster.connect(), Paths(backup.root), "the backup")
    try:
        copy = StoreCopy(
            source,
            target,
            new_id=new_id,
            progress=progress,
            backup_of=backup.transaction,
            backup_name=f"{backup.transaction}, of {backup.taken_ms} ms after 1970",
        )
        return await copy.run(resume=resume)
    finally:
        await source.store.close()


def _node(value: bytes, children_made: int = 0) -> TreeNode:
    return TreeNode(value, 0, 0, 0, None, children_made)


async def _read_below(place: ClusterLocation, root: str, values: dict[str, bytes], progress: Progress) -> None:
    """Read what is below ``root`` and was not read before. What has another name since, as a stream may, loses the one
    under which it was read: two names would lead to it."""
    listed = [path async for path in walk(place.store, (root,))]
    new = [path for path in listed if path not in values]
    for _, level in groupby(new[::-1], _depth):  # the deepest first: a stream's pages before what names them
        for chunk in chunks(list(level), _AT_ONCE):
            values.update(await _lasting_values(place, chunk))
            progress("reading", len(values), 0)
    gone = values.keys() - set(listed)
    renamed = {(parent_of(path), values[path]): path for path in gone if path.startswith(f"{root}/") and values[path]}
    for path in new:
        if (was := renamed.get((parent_of(path), values.get(path, b"")))) is not None:
            values.pop(was, None)


def _depth(path: str) -> int:
    return path.count("/")


def _packed(value: bytes) -> str:
    return base64.b64encode(value).decode()


async def _layout(place: ClusterLocation) -> Layout:
    try:
        return layouts.decode((await place.store.get(place.paths.layout)).value)
    except NoSuchKeyError:
        return Layout.HIERARCHICAL


async def _lasting_values(place: ClusterLocation, chunk: Sequence[str]) -> dict[str, bytes]:
    """The values of these paths that outlive every session. One that is gone meanwhile is left out."""

    async def one(path: str) -> tuple[str, bytes] | None:
        try:
            value = (await place.store.get(path)).value
            return None if await place.store.owner(path) is not None else (path, value)
        except NoSuchKeyError:
            return None

    return dict(found for found in await asyncio.gather(*(one(path) for path in chunk)) if found is not None)
