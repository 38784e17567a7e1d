"""A disk that remembers what was done to it, and can say what may be left after a crash at any moment.

Only what POSIX gives is assumed: until a file is synced any of its writes may be lost, reordered, torn at 512 bytes;
until a directory is synced so may its creations, renames and unlinks.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from posixpath import dirname
from typing import TypeVar

from bookkeeper.seams import Buffer, Disk, File, Lock, Space, Worker

T = TypeVar("T")
SECTOR = 512
BLOCK = 4096


@dataclass(slots=True)
class Inode:
    number: int
    data: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class Op:
    """One thing done to the disk. ``inode`` -1: to a directory."""

    kind: str
    """write, truncate, sync | create, rename, unlink, sync_directory"""
    path: str
    inode: int = -1
    offset: int = 0
    data: bytes = b""
    target: str = ""
    through: bool = False
    """A write that is durable when it returns."""


class RecordingFile:
    def __init__(self, disk: RecordingDisk, path: str, inode: Inode, direct: bool) -> None:
        self.path, self.direct = path, direct
        self._disk, self.inode = disk, inode
        self.is_open = True

    def pwrite(self, data: Buffer, offset: int) -> None:
        assert self.is_open, f"{self.path} is closed"
        if self.direct:
            assert offset % 4096 == 0 and len(data) % 4096 == 0, "direct writes are aligned"
        self._disk.before("write", self.path)
        if (fits := self._disk.fitting(self.inode, offset, len(data))) < len(data):
            write(self.inode.data, bytes(data)[:fits], offset)
            raise OSError(errno.ENOSPC, "no space left", self.path)
        write(self.inode.data, bytes(data), offset)
        self._disk.note(Op("write", self.path, self.inode.number, offset, bytes(data), through=self.direct))

    def pread(self, size: int, offset: int) -> bytes:
        assert self.is_open, f"{self.path} is closed"
        self._disk.before("read", self.path)
        return bytes(self.inode.data[offset : offset + size])

    def pread_into(self, buffer: Buffer, offset: int) -> int:
        data = self.pread(len(buffer), offset)
        memoryview(buffer)[: len(data)] = data
        return len(data)

    def pread_cached(self, size: int, offset: int) -> bytes | None:
        return self.pread(size, offset) if self._disk.cached else None

    def pread_cached_into(self, buffer: Buffer, offset: int) -> int | None:
        return self.pread_into(buffer, offset) if self._disk.cached else None

    def expect(self, offset: int, size: int) -> None:
        self._disk.expected.append((self.path, offset, size))

    def forget(self, offset: int, size: int) -> None:
        self._disk.forgotten.append((self.path, offset, size))

    def sync(self) -> None:
        assert self.is_open, f"{self.path} is closed"
        self._disk.before("sync", self.path)
        self._disk.note(Op("sync", self.path, self.inode.number))

    def size(self) -> int:
        return len(self.inode.data)

    def truncate(self, size: int) -> None:
        self._disk.before("write", self.path)
        resize(self.inode.data, size)
        self._disk.note(Op("truncate", self.path, self.inode.number, size))

    def close(self) -> None:
        self.is_open = False


class RecordingLock:
    def __init__(self, disk: RecordingDisk, path: str) -> None:
        self._disk, self._path = disk, path

    @property
    def in_force(self) -> bool:
        return self._path in self._disk.locks

    def release(self) -> None:
        self._disk.locks.discard(self._path)


class RecordingDisk:
    """Files in memory, and the trace of what was done."""

    def __init__(self, files: dict[str, bytes] | None = None, *, direct: bool = False) -> None:
        self._next = 0
        self.names: dict[str, Inode] = {}
        self.ops: list[Op] = []
        self.locks: set[str] = set()
        self.expected: list[tuple[str, int, int]] = []
        self.forgotten: list[tuple[str, int, int]] = []
        """(path, offset, size): what the page cache was told to let go."""
        self.cached = True
        self.free = 1 << 40
        self.capacity: int | None = None
        """Bytes for files, in blocks of 4096; None: ``free`` says what is free, and every write has room."""
        self.faults: dict[tuple[str, str], OSError] = {}
        """(call, part of a path) -> what it raises."""
        self._direct = direct
        self._handles: list[RecordingFile] = []
        for path, data in (files or {}).items():
            self.names[path] = self._inode(data)

    def _inode(self, data: bytes = b"") -> Inode:
        self._next += 1
        return Inode(self._next, bytearray(data))

    def before(self, call: str, path: str) -> None:
        for (wanted, part), error in self.faults.items():
            if call == wanted and part in path:
                raise error

    def note(self, op: Op) -> None:
        self.ops.append(op)

    def files(self) -> dict[str, bytes]:
        return {path: bytes(inode.data) for path, inode in self.names.items()}

    # -- the seam -----------------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False, write: bool = True, direct: bool = False) -> File:
        self.before("open", path)
        if create:
            if path in self.names:
                raise FileExistsError(errno.EEXIST, "exists", path)
            self.names[path] = self._inode()
            self.note(Op("create", path, self.names[path].number))
        elif path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "missing", path)
        file = RecordingFile(self, path, self.names[path], direct and self._direct)
        self._handles.append(file)
        return file

    @property
    def left_open(self) -> list[str]:
        """What was opened and not closed."""
        return [file.path for file in self._handles if file.is_open]

    def read_file(self, path: str) -> bytes:
        return bytes(self.names[path].data)

    def exists(self, path: str) -> bool:
        return path in self.names

    def list(self, path: str) -> Sequence[str]:
        return sorted(name[len(path) + 1 :] for name in self.names if dirname(name) == path)

    def make_directories(self, path: str) -> None:
        pass

    def rename(self, source: str, target: str) -> None:
        self.before("rename", source)
        inode = self.names.pop(source)
        self.names[target] = inode
        self.note(Op("rename", source, inode.number, target=target))

    def unlink(self, path: str) -> None:
        self.before("unlink", path)
        inode = self.names.pop(path)
        self.note(Op("unlink", path, inode.number))

    def make_private(self, path: str) -> None:
        assert path in self.names

    def sync_directory(self, path: str) -> None:
        self.before("sync_directory", path)
        self.note(Op("sync_directory", path))

    def space(self, path: str) -> Space:
        if self.capacity is not None:
            return Space(self.capacity, self.capacity - self.used())
        return Space(1 << 41, self.free)

    def used(self) -> int:
        """Bytes that files take, also removed ones that are open."""
        inodes = {inode.number: len(inode.data) for inode in self.names.values()}
        inodes |= {file.inode.number: len(file.inode.data) for file in self._handles if file.is_open}
        return sum(-(-size // BLOCK) * BLOCK for size in inodes.values())

    def fitting(self, inode: Inode, offset: int, size: int) -> int:
        """How many bytes of a write have room."""
        if self.capacity is None or offset + size <= (has := -(-len(inode.data) // BLOCK) * BLOCK):
            return size
        room = has + max(self.capacity - self.used(), 0) // BLOCK * BLOCK
        return min(size, max(room - offset, 0))

    def lock(self, path: str) -> Lock:
        if path in self.locks:
            raise BlockingIOError(errno.EAGAIN, "locked", path)
        self.locks.add(path)
        return RecordingLock(self, path)


def write(data: bytearray, new: bytes, offset: int) -> None:
    if offset > len(data):
        data.extend(bytes(offset - len(data)))
    data[offset : offset + len(new)] = new


def resize(data: bytearray, size: int) -> None:
    del data[size:]
    data.extend(bytes(size - len(data)))


class QueueWorkers:
    """Workers whose jobs run when the test says so, in the order in which they were submitted."""

    def __init__(self) -> None:
        self.jobs: list[tuple[str, Callable[[], object], Callable[..., None]]] = []

    def worker(self, name: str) -> Worker:
        return QueueWorker(self, name)

    def step(self) -> bool:
        if not self.jobs:
            return False
        _, job, done = self.jobs.pop(0)
        try:
            result = job()
        except Exception as error:
            done(None, error)
        else:
            done(result, None)
        return True

    def pump(self) -> None:
        while self.step():
            pass


class QueueWorker:
    def __init__(self, owner: QueueWorkers, name: str) -> None:
        self._owner, self._name = owner, name

    def submit(self, job: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        self._owner.jobs.append((self._name, job, done))

    def call(self, job: Callable[[], T]) -> Awaitable[T]:
        raise NotImplementedError

    def close(self) -> None:
        pass


# -- what a crash may leave ------------------------------------------------------------------------------------


class Image:
    """Durable files and names, to which pending operations are applied."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.inodes: dict[int, bytearray] = {}
        self.names: dict[str, int] = {}
        for number, (path, data) in enumerate(files.items(), 1):  # as RecordingDisk numbers them
            self.inodes[number] = bytearray(data)
            self.names[path] = number

    def copy(self) -> Image:
        other = Image({})
        other.inodes = {number: bytearray(data) for number, data in self.inodes.items()}
        other.names = dict(self.names)
        return other

    def apply(self, op: Op) -> None:
        if op.kind == "write":
            write(self.inodes.setdefault(op.inode, bytearray()), op.data, op.offset)
        elif op.kind == "truncate":
            resize(self.inodes.setdefault(op.inode, bytearray()), op.offset)
        elif op.kind == "create":
            self.names[op.path] = op.inode
            self.inodes.setdefault(op.inode, bytearray())
        elif op.kind == "rename":
            if self.names.get(op.path) == op.inode:
                del self.names[op.path]
            self.names[op.target] = op.inode
        elif op.kind == "unlink" and self.names.get(op.path) == op.inode:
            del self.names[op.path]

    def files(self) -> dict[str, bytes]:
        return {path: bytes(self.inodes.get(number, b"")) for path, number in self.names.items()}


def crash_images(
    before: dict[str, bytes], ops: Sequence[Op], rng: random.Random, per_point: int
) -> Iterator[tuple[int, str, dict[str, bytes]]]:
    """(how many operations were done, what was kept of the pending ones, the files), for every prefix of a trace."""
    durable, pending = Image(before), list[Op]()
    for done in range(len(ops) + 1):
        if done:
            op = ops[done - 1]
            pending.append(op)
            yield from _images(done, durable, pending, rng, per_point)
            _settle(durable, pending, op)
        else:
            yield 0, "all", durable.files()


def image_of_a_crash(before: dict[str, bytes], ops: Sequence[Op], rng: random.Random) -> dict[str, bytes]:
    """The files after a crash at the end of a trace: of what was not durable any part is left. Of a torn write each
    sector is as it was before or as it was written."""
    durable, pending = Image(before), list[Op]()
    for op in ops:
        pending.append(op)
        _settle(durable, pending, op)
    share = rng.choice([0.0, 0.5, 0.9, 1.0])
    for op in pending:
        if op.kind in ("sync", "sync_directory") or rng.random() >= share:
            continue
        if op.kind == "write" and rng.random() < 0.3:
            cuts = [0, *range(SECTOR - op.offset % SECTOR, len(op.data), SECTOR), len(op.data)]
            for begin, end in pairwise(cuts):
                if rng.random() < 0.5:
                    durable.apply(replace(op, offset=op.offset + begin, data=op.data[begin:end]))
        else:
            durable.apply(op)
    return durable.files()


def _settle(durable: Image, pending: list[Op], op: Op) -> None:
    """What the last operation made durable."""
    if op.kind == "sync":
        flushed = [one for one in pending if one.inode == op.inode and one.kind in ("write", "truncate")]
    elif op.kind == "sync_directory":
        flushed = [
            one for one in pending if one.kind in ("create", "rename", "unlink") and dirname(one.path) == op.path
        ]
    elif op.through:
        flushed = [op]
    else:
        return
    for one in flushed:
        durable.apply(one)
    pending[:] = [one for one in pending if one not in flushed and one is not op]


def _images(
    done: int, durable: Image, pending: list[Op], rng: random.Random, per_point: int
) -> Iterator[tuple[int, str, dict[str, bytes]]]:
    effective = [op for op in pending if op.kind not in ("sync", "sync_directory")]
    choices: list[tuple[str, list[Op]]] = [("all", effective), ("none", [])]
    more = [(f"first {n}", effective[:n]) for n in range(1, len(effective))]
    more += [(f"all but {n}", effective[:n] + effective[n + 1 :]) for n in range(len(effective))]
    last = next((n for n in range(len(effective) - 1, -1, -1) if effective[n].kind == "write"), None)
    if last is not None:
        for name, parts in _torn(effective[last], rng):
            more.append((f"write {last} {name}", effective[:last] + parts + effective[last + 1 :]))
            more.append((f"only write {last} {name}", parts))
    rng.shuffle(more)
    for name, kept in (choices if effective else choices[:1]) + more[: max(per_point - 2, 0)]:
        image = durable.copy()
        for op in kept:
            image.apply(op)
        yield done, name, image.files()


def _torn(op: Op, rng: random.Random) -> Iterator[tuple[str, list[Op]]]:
    """Parts of a write: the head, the tail, both without a middle, zeros in place of all of it."""

    def part(begin: int, end: int) -> Op:
        return Op("write", op.path, op.inode, op.offset + begin, op.data[begin:end])

    size = len(op.data)
    cuts = list(range(SECTOR - op.offset % SECTOR, size, SECTOR))
    for cut in cuts if len(cuts) <= 12 else rng.sample(cuts, 12):
        yield f"head of {cut}", [part(0, cut)]
        yield f"tail from {cut}", [part(cut, size)]
        zeros = Op("write", op.path, op.inode, op.offset + cut, bytes(min(SECTOR, size - cut)))
        yield f"zeros at {cut}", [op, zeros]
    yield "zeros", [Op("write", op.path, op.inode, op.offset, bytes(size))]


def _check_protocol(disk: RecordingDisk) -> Disk:
    return disk
