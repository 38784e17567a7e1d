"""The streams that calls have named lately: their handles, and who owns them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.client.tasks import Tasks
from bookkeeper.leases.lease import Lease
from bookkeeper.seams import Clock
from segments.errors import SequenceTooOldError, StreamNotFoundError, StreamNotReadyError
from segments.gateway.calls.producer_claims import ProducerClaims
from segments.gateway.calls.stream_room import StreamRoom
from segments.gateway.config import GrpcGatewayConfig
from segments.gateway.gateway_metrics import GatewayMetrics
from segments.gateway.guard.grpc_call import GrpcCall
from segments.gateway.ownership.stream_ownership import StreamOwnership
from segments.names import check_short_name
from segments.namespace import StreamNamespace
from segments.record import ProducerRef
from segments.stream import Stream
from segments.write import Producer, Writer
from segments.write.producer import GapRule
from segments.write.producer_owners import ProducerOwners

FORGET_S: Final = 300.0
"""Seconds after which a stream that this gateway does not own, and that no call named, is forgotten."""


PRODUCERS_KEPT: Final = 1000
"""Producers of a stream that are at hand; another one is made of what the writer knows of it."""


@dataclass(slots=True)
class ServedStream:
    """One stream, as calls use it."""

    stream: Stream
    ownership: StreamOwnership[Writer]
    asked_at: float
    claims: ProducerClaims | None = None
    """Whose its producers are; None: nobody asks."""
    _writer: Writer | None = None
    _producers: dict[tuple[str, bool], Producer] = field(default_factory=dict)

    async def producer(self, writer: Writer, ref: ProducerRef, *, monotonic: bool) -> Producer:
        """The producer with this epoch, on this writer; epoch 0 stands for the one that the name has.

        Raises: as ``Producer.open``. SequenceTooOldError: the name may be that of a forgotten producer, which only an
        opening tells the client. Batches of a producer with an epoch that is too low are refused later.
        """
        known = self.known_producer(writer, ref, monotonic=monotonic)
        if known is not None:
            return known
        if writer.state.producers.is_doubtful(ref.name):
            raise SequenceTooOldError(
                f"stream {self.stream.name} has forgotten producers, and {ref.name} may be one of them, so that nobody "
                f"knows whether record {ref.sequence} is there: open the producer first, which tells",
                stream=self.stream.name,
            )
        gap: GapRule = "monotonic" if monotonic else "strict"
        made = await Producer.open(writer, ref.name, epoch=ref.epoch or None, gap=gap)
        self.keep(writer, made, monotonic=monotonic)
        return made

    def known_producer(self, writer: Writer, ref: ProducerRef, *, monotonic: bool) -> Producer | None:
        """The same without waiting; None if the producer must be opened first."""
        state = writer.state.producers.get(ref.name)
        if state is None or ref.epoch > state.epoch:
            return None
        epoch = ref.epoch or state.epoch
        kept = self._producers.get((ref.name, monotonic)) if writer is self._writer else None
        if kept is not None and kept.epoch == epoch:
            return kept
        made = Producer(writer, ref.name, epoch, state.last_sequence, strict=not monotonic)
        self.keep(writer, made, monotonic=monotonic)
        return made

    async def require_producer(self, writer: Writer, name: str, call: GrpcCall) -> None:
        """Check that a caller may append under this name. Raises: as ``ProducerClaims.require``."""
        if self.claims is None or self.claims.allows(name, call):
            return
        check_short_name(name, "producer")
        table = writer.state.producers
        most = table.policy.max_producers
        await self.claims.require(name, self.stream.name, call, lambda name: table.get(name) is not None, most)

    def keep(self, writer: Writer, producer: Producer, *, monotonic: bool) -> None:
        """Have a producer of this writer at hand."""
        if writer is not self._writer:
            self._writer = writer
            self._producers.clear()
        self._producers.pop((producer.name, monotonic), None)
        self._producers[producer.name, monotonic] = producer
        if len(self._producers) > PRODUCERS_KEPT:
            del self._producers[next(iter(self._producers))]


class ServedStreams:
    """All streams of one gateway, by name and by id."""

    def __init__(
        self,
        namespace: StreamNamespace,
        make_lease: Callable[[Stream], Lease],
        location: str,
        clock: Clock,
        config: GrpcGatewayConfig,
        metrics: GatewayMetrics,
    ) -> None:
        """``location`` is the address at which this gateway answers; it stands in the records of streams it owns."""
        self.namespace = namespace
        self.room = StreamRoom(namespace)
        self._make_lease = make_lease
        self._location = location
        self._clock = clock
        self._config = config
        self._metrics = metrics
        self._tasks = Tasks("streams of the gateway")
        self._finds = Tasks("names of streams", _ignore)
        self._names: dict[str, tuple[str, float]] = {}
        """Name -> id, and when it was looked up."""
        self._streams: dict[str, ServedStream] = {}
        self._finding: dict[str, asyncio.Task[ServedStream]] = {}
        self._ended = False

    @property
    def owned(self) -> int:
        """How many streams this gateway owns."""
        return sum(served.ownership.is_here for served in self._streams.values())

    @property
    def resolve_s(self) -> float:
        """Seconds for which a name leads to the stream to which it has led."""
        return self._config.resolve_s

    async def get(self, name: str) -> ServedStream:
        """The stream of this name.

        Raises:
            StreamNotFoundError, StreamNameError, StreamMetadataError.
        """
        now = self._clock.monotonic()
        found = self._names.get(name)
        if found is not None and now - found[1] < self._config.resolve_s:
            served = self._streams[found[0]]
            served.asked_at = now
            return served
        looking = self._finding.get(name)
        if looking is None:
            looking = self._finding[name] = self._finds.start(self._find(name), f"look for stream {name}")
            looking.add_done_callback(lambda _: self._on_found(name))
        return await asyncio.shield(looking)

    async def get_fresh(self, name: str) -> ServedStream:
        """The stream that has this name now, for calls that hide, end or remove something: another one may have had it
        a moment ago. Raises: as ``get``."""
        return await self._find(name)

    def _on_found(self, name: str) -> None:
        del self._finding[name]

    async def _find(self, name: str) -> ServedStream:
        if self._ended:
            raise StreamNotReadyError("this gateway is being stopped: use another one", stream=name)
        try:
            stream = await self.namespace.open(name)
        except StreamNotFoundError:
            self._names.pop(name, None)
            raise
        return self.add(name, stream)

    def add(self, name: str, stream: Stream) -> ServedStream:
        """Keep a stream that was just made or opened, under the name that it has now."""
        now = self._clock.monotonic()
        served = self._streams.get(stream.id)
        if served is None:
            owners = ProducerOwners(stream.client.metadata_store, stream.id, name)
            claims = ProducerClaims(owners, self._clock, self._finds)
            served = self._streams[stream.id] = ServedStream(stream, self._ownership(stream), now, claims)
        served.stream.found_as(name)
        served.asked_at = now
        self._names[name] = (stream.id, now)
        return served

    def forget(self, name: str) -> None:
        """Look the name up again with the next call."""
        self._names.pop(name, None)

    def _ownership(self, stream: Stream) -> StreamOwnership[Writer]:
        async def open_writer() -> Writer:
            return await stream.writer(location=self._location)

        return StreamOwnership(
            stream.name,
            lambda: self._make_lease(stream),
            open_writer,
            self._clock,
            self._config,
            self._tasks,
            self._metrics.ownership,
        )

    async def sweep(self) -> None:
        """Give up streams that nobody appends to, and forget those that nobody names. Nothing waits between the look
        at a stream and what is done about it: a call that comes meanwhile finds it as it was, or makes it anew."""
        for served in list(self._streams.values()):
            if served.ownership.idle_s >= self._config.idle_s:
                await served.ownership.release()
        before = self._clock.monotonic() - max(FORGET_S, self._config.idle_s)
        for name, (_, looked_at) in list(self._names.items()):
            if looked_at < before:
                del self._names[name]
        named = {stream_id for stream_id, _ in self._names.values()}
        forgotten = [
            stream_id
            for stream_id, served in self._streams.items()
            if stream_id not in named and served.asked_at < before and not served.ownership.is_here
        ]
        for served in [self._streams.pop(stream_id) for stream_id in forgotten]:
            await served.ownership.end()

    async def close(self) -> None:
        """Take no stream any more; close the writers in good order, and release the leases. Idempotent."""
        self._ended = True
        ends = [asyncio.ensure_future(served.ownership.end()) for served in self._streams.values()]
        if ends:
            await asyncio.wait(ends)
        await self._finds.close()
        await self._tasks.close()


def _ignore(error: BaseException) -> None:
    """Those who wait for the look have its error."""
