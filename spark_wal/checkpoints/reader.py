"""Reads checkpoints from a store: the shell of this room. It only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from spark_wal.checkpoint_copy.contents import FileStamp
from spark_wal.checkpoint_copy.stores import CheckpointStore
from spark_wal.checkpoints.changes import changes_digest
from spark_wal.checkpoints.checkpoint import SMALL, Checkpoint, read_checkpoint
from spark_wal.checkpoints.difference import steps_of
from spark_wal.checkpoints.layout import Kind, StatePartition, meaning
from spark_wal.checkpoints.state_files import FileCheck, check_state_file

T = TypeVar("T")

WORKERS: Final = 8
"""Files that are read at a time."""

LARGE: Final = 64 << 20
"""Bytes above which a file of state is read alone, because it is in memory as a whole."""


def load(store: CheckpointStore) -> Checkpoint:
    """Read a checkpoint's listing and its logs.

    Raises:
        CheckpointStoreError: the store failed.
    """
    listing = store.listing()
    wanted = [path for path in listing if meaning(path).kind in SMALL]
    return read_checkpoint(store.uri, listing, _read_all(store, wanted))


def check_state(store: CheckpointStore, checkpoint: Checkpoint) -> dict[str, FileCheck]:
    """Read and check each file of state; of a large state that takes a while.

    Raises:
        CheckpointStoreError: the store failed.
    """

    def check(path: str) -> FileCheck:
        file = checkpoint.meanings[path].state
        assert file is not None
        beside = f"{path}.crc"
        sidecar = b"".join(store.read(beside)) if beside in checkpoint.listing else None
        return check_state_file(file, b"".join(store.read(path)), sidecar)

    paths = [path for path, each in checkpoint.meanings.items() if each.kind is Kind.STATE]
    large = [path for path in paths if checkpoint.listing[path].size > LARGE]
    found = _for_all([path for path in paths if path not in set(large)], check)
    return found | {path: check(path) for path in large}


def read_changes(store: CheckpointStore, checkpoint: Checkpoint) -> dict[tuple[StatePartition, int], str | None]:
    """Read the deltas and changelogs of committed versions: a digest of what each changed.

    Raises:
        CheckpointStoreError: the store failed.
    """
    steps = {file.path: file for file in steps_of(checkpoint)}
    digests = _for_all(list(steps), lambda path: changes_digest(b"".join(store.read(path))))
    return {(steps[path].partition, steps[path].version): digest for path, digest in digests.items()}


def checkpoint_paths(listing: Mapping[str, FileStamp]) -> list[str]:
    """The directories of a listing that hold a checkpoint: those with ``metadata`` beside ``offsets``."""
    with_metadata = {path.removesuffix("metadata") for path in listing if f"/{path}".endswith("/metadata")}
    found = {path[: path.rfind("offsets/")] for path in listing if "/offsets/" in f"/{path}"}
    return sorted(place.rstrip("/") for place in with_metadata & found)


def _read_all(store: CheckpointStore, paths: Iterable[str]) -> dict[str, bytes]:
    return _for_all(list(paths), lambda path: b"".join(store.read(path)))


def _for_all(paths: list[str], do: Callable[[str], T]) -> dict[str, T]:
    with ThreadPoolExecutor(WORKERS, thread_name_prefix="checkpoint reader") as pool:
        return dict(zip(paths, pool.map(do, paths), strict=True))
