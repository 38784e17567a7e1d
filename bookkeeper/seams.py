"""What the system gives us, as protocols: Clock, Rng, Net, Disk, Worker.

Everything that touches time, chance, sockets, files or threads comes in through one of these, so that
the whole production cluster also runs inside one deterministic simulation. :mod:`bookkeeper.real` binds
them to the operating system, :mod:`bookkeeper.testing` to one seeded event queue. The sixth seam, the
metadata store, is :class:`bookkeeper.meta.store.MetadataStore`.

Timers and sleeping belong to the running asyncio loop (``loop.time()``, ``loop.call_later``): the
simulator is a loop whose clock jumps to the next thing due.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableSequence, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bookkeeper.ids import Address

if TYPE_CHECKING:
    import asyncio
    import ssl

Buffer = bytes | bytearray | memoryview
"""Bytes that are only passed on."""

T = TypeVar("T")
P = TypeVar("P", bound="asyncio.BaseProtocol")


class Clock(Protocol):
    """Time as an argument. Decisions use ``monotonic`` only."""

    def monotonic(self) -> float:
        """Seconds since some moment; never steps, goes on while the machine sleeps."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, for stamps that people read; never for a decision."""


class Rng(Protocol):
    """Chance as an argument: the part of :class:`random.Random` that is used."""

    def random(self) -> float: ...
    def randrange(self, start: int, stop: int) -> int: ...
    def getrandbits(self, k: int) -> int: ...
    def shuffle(self, x: MutableSequence[Any]) -> None: ...
    def choice(self, seq: Sequence[T]) -> T: ...


class Listener(Protocol):
    """A listening socket. ``address`` is where it really listens (port 0 resolved)."""

    @property
    def address(self) -> Address: ...
    def close(self) -> None:
        """Accept nothing more; connections that are open stay open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Where keys and trust lie, as PEM files."""

    server: bool
    """Our side accepts connections."""
    cert: str | None = None
    """Our certificate and its chain."""
    key: str | None = None
    """Its private key, if it is not in ``cert``."""
    ca: str | None = None
    """Who vouches for the other side; a server that has it demands a certificate. Revocations in it are heeded."""
    crl: str | None = None
    """Revocations, and nothing else, if they are not in ``ca``; only with it."""
    anonymous: bool = False
    """A server's: clients without a certificate are let in too, to prove themselves in another way."""
    verify_host: bool = True
    """A client's: the server's certificate must be for the name that is connected to."""


class Tls(Protocol):
    """Keys and trust that were read from files; made by :meth:`Net.tls`."""

    @property
    def certificate(self) -> bytes | None:
        """Our own certificate (DER), as it is used for new connections."""

    @property
    def trusted(self) -> str:
        """Authorities and revocation lists (PEM) that judge the other side in new connections; empty if none do."""

    def refresh(self) -> bool:
        """Read the files again if they have changed; True if they had. Connections that stand are not touched.

        Raises:
            ConfigError: the new files are not good; the old ones are used on.
        """


class Net(Protocol):
    """Streams of bytes. Protocol objects are asyncio's: ``asyncio.Protocol`` or ``asyncio.BufferedProtocol``."""

    async def connect(
        self, address: Address, factory: Callable[[], P], *, timeout_s: float, tls: ssl.SSLContext | None = None
    ) -> P:
        """Open a stream, hand its transport to ``factory()``, return that protocol object.

        Raises:
            OSError: refused, unreachable, or not within ``timeout_s`` (TimeoutError is an OSError).
        """

    async def listen(
        self, address: Address, factory: Callable[[], asyncio.BaseProtocol], *, tls: ssl.SSLContext | None = None
    ) -> Listener: ...

    def tls(self, files: TlsFiles) -> Tls | None:
        """Keys and trust for :meth:`upgrade`. None where encryption has no meaning: no stream leaves this process.

        Raises:
            ConfigError: a file that cannot be read or used, by name.
        """

    async def upgrade(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.BaseProtocol,
        tls: Tls,
        *,
        server_name: str | None,
        timeout_s: float,
    ) -> asyncio.Transport:
        """Encrypt an open stream. The next byte each way is TLS; ``protocol`` stays, and is to write through what is
        returned, whose extra info ``peercert`` is the other side's verified certificate. What the peer sent in the same
        breath as the end of the handshake may reach ``protocol`` before this returns.

        Raises:
            OSError: no handshake within ``timeout_s``, or a bad one (``ssl.SSLError``); the stream is closed.
        """

    @property
    def tells_silence(self) -> bool:
        """Whether :meth:`silence_s` can tell anything."""

    def silence_s(self, transport: asyncio.BaseTransport) -> float | None:
        """For how many seconds the peer's system has acknowledged nothing, though what is on its way was sent again
        several times; 0 if that is not so, None if nothing is on its way. A peer that only does not read is not silent:
        its system answers.
        """


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of the file system that holds a directory."""

    total: int
    free: int


class File(Protocol):
    """An open file, read and written at offsets. Errors are OSError with the path in it."""

    path: str
    direct: bool
    """Opened with O_DIRECT|O_DSYNC: a write is durable when it returns; offsets, sizes and buffers are 4096-aligned."""

    def pwrite(self, data: Buffer, offset: int) -> None:
        """Write all of ``data`` (short writes are continued) or raise."""

    def pread(self, size: int, offset: int) -> bytes:
        """Up to ``size`` bytes; fewer only at the end of the file."""

    def pread_into(self, buffer: Buffer, offset: int) -> int:
        """Fill ``buffer``; return how much was there."""

    def pread_cached(self, size: int, offset: int) -> bytes | None:
        """Like pread if it need not wait for the disk; None if it would."""

    def pread_cached_into(self, buffer: Buffer, offset: int) -> int | None:
        """Like pread_into if it need not wait for the disk; None if it would."""

    def expect(self, offset: int, size: int) -> None:
        """These bytes will be read soon: the system may begin to read them now. Advice only; never fails."""

    def forget(self, offset: int, size: int) -> None:
        """These bytes will hardly be read again: memory that holds them, if they are synced, may serve others. Advice
        only; never fails."""

    def sync(self) -> None:
        """fdatasync: every byte written so far is durable when this returns. A failure is final."""

    def size(self) -> int: ...
    def truncate(self, size: int) -> None: ...
    def close(self) -> None:
        """Close, reporting errors. Idempotent."""


class Lock(Protocol):
    """An exclusive lock on a directory, held for the life of the process."""

    @property
    def in_force(self) -> bool:
        """Whether it keeps others out: once its file is removed or replaced, others lock the next one."""

    def release(self) -> None: ...


class Disk(Protocol):
    """A file system: synchronous, called from worker threads, or from the loop where it need not wait."""

    def open(self, path: str, *, create: bool = False, write: bool = True, direct: bool = False) -> File:
        """Open a file. ``create`` makes a new one and refuses an existing one (FileExistsError).

        ``direct`` asks for O_DIRECT|O_DSYNC and falls back to buffered writes where the file system has
        none: look at ``File.direct``.
        """

    def read_file(self, path: str) -> bytes: ...
    def exists(self, path: str) -> bool: ...
    def list(self, path: str) -> Sequence[str]:
        """Names in a directory, sorted."""

    def make_directories(self, path: str) -> None:
        """Create missing directories top-down, syncing each parent.

        Raises:
            OSError: one of them cannot be made. ConfigError: ``path`` belongs to another user.
        """

    def rename(self, source: str, target: str) -> None: ...
    def unlink(self, path: str) -> None: ...
    def make_private(self, path: str) -> None:
        """Let nobody but its owner read or write the file ``path``, who is who runs this.

        Raises:
            OSError: it is no file but a link, a pipe, a directory or a device, or another user's; the text says which.
        """

    def sync_directory(self, path: str) -> None: ...
    def space(self, path: str) -> Space: ...
    def lock(self, path: str) -> Lock:
        """Lock the file ``path`` (created if absent). Raises BlockingIOError if another process holds it."""


class Worker(Protocol):
    """Who runs blocking work: a thread in production, the simulator's queue in tests.

    Jobs of one worker run one after the other in the order in which they were submitted.
    """

    def submit(self, job: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """Run ``job`` elsewhere, then ``done(result, error)`` on the loop's thread, never inside this call."""

    def call(self, job: Callable[[], T]) -> Awaitable[T]:
        """The same for those who can await."""

    def close(self) -> None:
        """Let everything submitted finish, then end. Idempotent."""


class Workers(Protocol):
    """Makes workers."""

    def worker(self, name: str) -> Worker: ...


class Supervisor(Protocol):
    """Who started this process, and waits to hear how it is. Nothing here raises or waits for long."""

    def starting(self, stage: str) -> None:
        """The process has come to a stage of its start."""

    def ready(self, text: str) -> None:
        """The process serves; ``text`` says where."""

    def stopping(self) -> None:
        """The process was told to end, and does."""

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give signs of life as long as the loop turns."""


@dataclass(frozen=True, slots=True)
class Seams:
    """All of them, handed down from the edge of a program."""

    clock: Clock
    rng: Rng
    net: Net
    disk: Disk
    workers: Workers
