"""Checkpoints that PySpark made, in memory: what they hold can be changed before they are checked."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from spark_wal.checkpoint_copy.contents import FileStamp
from spark_wal.checkpoint_copy.stores import CheckpointStoreError, Parts
from spark_wal.checkpoints.checkpoint import Checkpoint
from spark_wal.checkpoints.fsck import CheckpointVerdict, check
from spark_wal.checkpoints.reader import check_state, load

ROOT = Path(__file__).parents[2] / "vectors" / "spark-checkpoints"
NAMES = sorted(path.stem for path in ROOT.glob("*.zip"))
WITH_STATE = [name for name in NAMES if name != "asynchronous"]


class SampleStore:
    """A store with the files of a sample."""

    def __init__(self, name: str) -> None:
        self.uri = f"webhdfs://gw.example.org:9870/{name}"
        with zipfile.ZipFile(ROOT / f"{name}.zip") as archive:
            self.files = {each: archive.read(each) for each in archive.namelist()}

    def listing(self) -> dict[str, FileStamp]:
        return {path: FileStamp(len(data), 1, 1, "etl") for path, data in self.files.items()}

    def read(self, path: str) -> Iterator[bytes]:
        if path not in self.files:
            raise CheckpointStoreError(f"{self.uri}: no {path}")
        yield self.files[path]

    def write(self, path: str, parts: Parts) -> None:
        self.files[path] = b"".join(parts())

    def sync(self) -> None: ...

    def close(self) -> None: ...

    def flip(self, path: str, at: int) -> None:
        """Change one byte."""
        data = bytearray(self.files[path])
        data[at] ^= 0xFF
        self.files[path] = bytes(data)

    def cut(self, path: str, to: int) -> None:
        self.files[path] = self.files[path][:to]

    def file(self, directory: str, beginning: str, end: str) -> str:
        """The one path of a file, of whose name the middle is an id."""
        above = f"{directory}/{beginning}"
        (found,) = (path for path in self.files if path.startswith(above) and path.endswith(end))
        return found

    def checkpoint(self) -> Checkpoint:
        return load(self)

    def verdict(self) -> CheckpointVerdict:
        found = load(self)
        return check(found, check_state(self, found))


def after(name: str, change: Callable[[SampleStore], object]) -> CheckpointVerdict:
    """The verdict on a sample that was changed."""
    store = SampleStore(name)
    change(store)
    return store.verdict()
