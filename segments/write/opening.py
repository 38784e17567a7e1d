"""Opens the writer of a stream, and producers that share one."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from bookkeeper.access import ResourceKind
from bookkeeper.access.ownership import owner_text
from bookkeeper.client.tasks import Tasks
from segments.chain import StreamHead, ledger_tags
from segments.config import StreamConfig
from segments.entries.compression import Compression, require_library
from segments.errors import StreamCorruptError, UnsupportedStreamFormatError
from segments.write.ledgers.ledger_allocator import LedgerAllocator
from segments.write.output.changed_settings import ReadConfig
from segments.write.producer import GapRule, Producer
from segments.write.state.stream_owner import StreamOwner, claim_nonce
from segments.write.take_over import find_end
from segments.write.writer import Writer

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, WriteHandle


class Closable(Protocol):
    """What ``async with`` closes."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


Opened = TypeVar("Opened", bound=Closable, covariant=True)

_log = logging.getLogger(__name__)
_names: Final = itertools.count(1)


class PendingOpen(Generic[Opened]):
    """``await`` it for an object to close yourself, or ``async with`` it."""

    def __init__(self, opened: Callable[[], Awaitable[Opened]]) -> None:
        self._open = opened
        self._object: Opened | None = None

    def __await__(self) -> Generator[Any, None, Opened]:
        return self._open().__await__()

    async def __aenter__(self) -> Opened:
        self._object = await self._open()
        return self._object

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._object is not None
        await self._object.__aexit__(kind, error, trace)


async def open_writer(
    client: BookKeeper,
    node: StreamHead,
    read_config: ReadConfig,
    *,
    owner: str | None = None,
    location: str = "",
) -> Writer:
    """Take the stream over: claim it, recover what the former writer left open, start a segment.

    Raises:
        StreamNotFoundError, StreamSealedError, UnsupportedStreamFormatError.
        StreamUnavailableError: too few bookies answer, or the metadata store does not; nothing is lost.
        OwnershipLostError: another writer took it over meanwhile.
        MissingLibraryError: this process cannot compress as the stream's settings say; nothing was changed.
    """
    config = await read_config()
    require_library(Compression.named(config.compression))
    monotonic = client.services.seams.clock.monotonic
    began = monotonic()
    name = owner or f"{os.uname().nodename}-{os.getpid()}-{next(_names)}"
    owned = await StreamOwner.claim(node, name, claim_nonce(client), reads_with=client)
    current = _WriterSettings(config, read_config)
    config = await current.read()  # as they are behind the claim: a change before it was confirmed
    require_library(Compression.named(config.compression))
    tasks = Tasks(f"writer of stream {node.name}")
    allocator = LedgerAllocator(client, owned, current.ledger_maker(client, owned), tasks)
    making = tasks.start(allocator.obtain(), "make the first ledger", awaited=True)  # beside the recovery below
    try:
        found = await find_end(client, owned, config.producers)
        writer = Writer(client, owned, allocator, found.state, config, tasks, location, current.read)
        await writer.begin(await making, found.recovered)
        writer.metrics.took_over(monotonic() - began)
        return writer
    except BaseException:
        await asyncio.wait([making])
        if not making.cancelled() and making.exception() is None:
            allocator.give_back()
        await allocator.close(discard=True)
        await tasks.close()
        raise


class _WriterSettings:
    """The stream's settings as they were last read."""

    def __init__(self, config: StreamConfig, read: ReadConfig) -> None:
        self.config = config
        self._read = read

    async def read(self) -> StreamConfig:
        try:
            self.config = await self._read()
        except (StreamCorruptError, UnsupportedStreamFormatError) as error:
            _log.warning(
                "the stream's settings cannot be read, so its writer goes on with those that it has: %s", error
            )
        return self.config

    def ledger_maker(self, client: BookKeeper, owner: StreamOwner) -> Callable[[], Awaitable[WriteHandle]]:
        password, tags = owner.chain.password, ledger_tags(owner.node.stream_id, owner.epoch)
        owned_by = owner_text(ResourceKind.STREAMS, owner.node.name)

        async def new_ledger() -> WriteHandle:
            config = self.config
            return await client.create_ledger(
                ensemble=config.ensemble,
                write_quorum=config.write_quorum,
                ack_quorum=config.ack_quorum,
                digest=config.ledger_digest,
                password=password,
                custom_metadata=tags,
                owner=owned_by,
                when_short="name_absent" if config.ack_quorum > 1 else "fail",
            )

        return new_ledger


class SharedWriter:
    """The writer that all producers of one Stream object use. It is opened for the first, and closed with the last."""

    def __init__(self, opened: Callable[[], Awaitable[Writer]]) -> None:
        self._open = opened
        self._changing = asyncio.Lock()
        self._writer: Writer | None = None
        self._users = 0

    async def producer(self, name: str, *, epoch: int | None, gap: GapRule) -> Producer:
        """A producer on it. Raises: as open_writer, and as Producer.open."""
        writer = await self._use()
        try:
            return await Producer.open(writer, name, epoch=epoch, gap=gap, on_closed=partial(self.release, writer))
        except BaseException:
            await self.release(writer)
            raise

    async def _use(self) -> Writer:
        async with self._changing:
            if self._writer is None or self._writer.closed:
                self._writer, self._users = await self._open(), 0
            self._users += 1
            return self._writer

    async def release(self, writer: Writer) -> None:
        """One user less."""
        async with self._changing:
            if writer is not self._writer:
                return  # it was lost, and another one is in use
            self._users -= 1
            if not self._users:
                self._writer = None
                await writer.close()
