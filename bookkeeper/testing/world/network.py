"""A network by seed: delays, split and merged chunks, resets, silent peers, links that are cut in one direction.

Every node is a host of its own name; streams keep their bytes and their order, as TCP does, and nothing else is
promised. Bytes sent over a cut link arrive after it is mended, or the connection is reset: whatever chance
says. Protocols are driven exactly as asyncio drives them.
"""

from __future__ import annotations

import asyncio
import contextvars
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeVar, cast

from bookkeeper.ids import Address
from bookkeeper.seams import Listener, Tls, TlsFiles
from bookkeeper.testing.world.loop import SimLoop
from bookkeeper.testing.world.trace import Trace

P = TypeVar("P", bound=asyncio.BaseProtocol)

PIECE = 256 * 1024
"""Bytes handed over at once, as asyncio reads from a socket."""

_LOOPBACK = {"127.0.0.1", "::1", "localhost", "0.0.0.0", "::"}


@dataclass(slots=True, kw_only=True)
class Weather:
    """How the network behaves; change it any time."""

    delay_s: float = 0.0002
    """Least time a chunk takes."""
    jitter_s: float = 0.0005
    """Up to this much is added, evenly distributed."""
    slow_share: float = 0.01
    """Share of chunks that take up to ``slow_s`` more."""
    slow_s: float = 0.02
    split_share: float = 0.2
    """Share of chunks that arrive in pieces."""
    reset_share: float = 0.0
    """Share of chunks whose sending resets the connection, their bytes arriving in part."""
    mend_reset_share: float = 0.3
    """Share of connections that are reset, not continued, when a cut link is mended."""
    window: int = 256 * 1024
    """Bytes on the way that the system takes from a sender before it must wait."""
    tells_silence: bool = False
    """The system tells of peers whose systems acknowledge nothing."""


class Host(Protocol):
    """What the network knows of a node."""

    @property
    def name(self) -> str: ...

    @property
    def alive(self) -> bool: ...

    @property
    def context(self) -> contextvars.Context:
        """Callbacks run as this node in it."""


class _Pipe:
    """One direction of a connection."""

    def __init__(self, network: SimNetwork, source: SimTransport, sink: SimTransport) -> None:
        self.network = network
        self.source = source
        self.sink = sink
        self.chunks: deque[tuple[float, bytes | BaseException | None]] = deque()
        """(arrives at, bytes); None is the end of the stream, an exception a reset."""
        self.size = 0
        self.last = 0.0
        self.armed = False

    def send(self, item: bytes | BaseException | None) -> None:
        weather, rng, now = self.network.weather, self.network.rng, self.network.now()
        pieces: list[bytes | BaseException | None] = [item]
        if isinstance(item, bytes):
            self.size += len(item)
            if len(item) > 1 and rng.random() < weather.split_share:
                cut = rng.randrange(1, len(item))
                pieces = [item[:cut], item[cut:]]
        for piece in pieces:
            self.last = max(self.last, now + self.network.draw_delay(self.source.node, self.sink.node))
            self.chunks.append((self.last, piece))
        self.arm()

    def arm(self) -> None:
        if self.armed or not self.chunks or self.sink.lost or self.sink.reading_paused:
            return
        if self.network.is_cut(self.source.node, self.sink.node):
            return  # mend() arms again
        self.armed = True
        loop = self.network.loop
        loop.call_at(max(self.chunks[0][0], loop.time()), self.deliver, context=self.sink.node.context)

    def deliver(self) -> None:
        self.armed = False
        now = self.network.now()
        if self.network.is_cut(self.source.node, self.sink.node) or self.sink.reading_paused or self.sink.lost:
            return
        data = bytearray()
        while self.chunks and self.chunks[0][0] <= now and isinstance(self.chunks[0][1], bytes):
            data += cast(bytes, self.chunks.popleft()[1])
        if data:
            rest = self.sink.received(bytes(data))
            self.size -= len(data) - len(rest)
            if rest:
                self.chunks.appendleft((now, rest))
            self.source.drained()
        elif self.chunks and self.chunks[0][0] <= now:
            item = self.chunks.popleft()[1]
            if item is None:
                self.sink.ended()
            elif isinstance(item, BaseException):
                self.sink.lose(cast(Exception, item))
        self.arm()


class SimTransport(asyncio.Transport):
    """One end of a simulated connection."""

    def __init__(self, network: SimNetwork, node: Host, protocol: asyncio.BaseProtocol, local: Address) -> None:
        super().__init__()
        self.info: dict[str, Any] = {"sockname": tuple(local)}
        self.network = network
        self.node = node
        self.protocol = protocol
        self.out: _Pipe
        self.back: _Pipe
        self.lost = False
        self.closing = False
        self.reading_paused = False
        self.high = 64 * 1024
        self.writing_paused = False

    # -- asyncio.Transport --------------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.info.get(name, default)

    def is_closing(self) -> bool:
        return self.closing or self.lost

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def is_reading(self) -> bool:
        return not self.reading_paused

    def pause_reading(self) -> None:
        self.reading_paused = True

    def resume_reading(self) -> None:
        self.reading_paused = False
        self.back.arm()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = 64 * 1024 if high is None else high

    def get_write_buffer_size(self) -> int:
        return max(0, self.out.size - self.network.weather.window)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.lost or self.closing or not len(data):
            return
        weather, rng = self.network.weather, self.network.rng
        chunk = bytes(data)
        if weather.reset_share and rng.random() < weather.reset_share:
            self.network.note("reset", self)
            self.out.send(chunk[: rng.randrange(0, len(chunk) + 1)])
            self.reset()
            return
        self.network.note("send", self, len(chunk))
        self.out.send(chunk)
        if not self.writing_paused and self.get_write_buffer_size() > self.high:
            self.writing_paused = True
            self.protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        if not self.closing and not self.lost:
            self.closing = True
            self.out.send(None)
            self.network.loop.call_soon(self.lose, None, context=self.node.context)

    def abort(self) -> None:
        if not self.lost:
            self.closing = True
            self.out.chunks.clear()
            self.out.send(ConnectionResetError("reset by peer"))
            self.network.loop.call_soon(self.lose, None, context=self.node.context)

    # -- what happens to it -------------------------------------------------------------------------------

    def reset(self) -> None:
        """Both ends lose the connection, each when it hears of it."""
        self.out.send(ConnectionResetError("reset by peer"))
        loop = self.network.loop
        loop.call_soon(self.lose, ConnectionResetError("reset"), context=self.node.context)

    def received(self, data: bytes) -> bytes:
        """Hand ``data`` over in pieces, as from a socket. What is left when the protocol stops reading in the middle;
        nothing, if it ends its side: that is lost."""
        self.network.note("receive", self, len(data))
        at = 0
        while at < len(data) and not self.reading_paused and not self.is_closing():
            if isinstance(self.protocol, asyncio.BufferedProtocol):
                room = cast(memoryview, self.protocol.get_buffer(len(data) - at))
                n = min(len(room), len(data) - at)
                room[:n] = data[at : at + n]
                at += n
                self.protocol.buffer_updated(n)
            else:
                piece = data[at : at + PIECE]
                at += len(piece)
                cast(asyncio.Protocol, self.protocol).data_received(piece)
        return b"" if self.is_closing() else data[at:]

    def drained(self) -> None:
        if self.writing_paused and self.get_write_buffer_size() <= self.high // 4:
            self.writing_paused = False
            self.network.loop.call_soon(self._resume, context=self.node.context)

    def _resume(self) -> None:
        if not self.lost:
            self.protocol.resume_writing()

    def ended(self) -> None:
        if not self.closing and not cast(asyncio.Protocol, self.protocol).eof_received():
            self.close()

    def lose(self, error: Exception | None) -> None:
        if self.lost:
            return
        self.lost = self.closing = True
        self.back.chunks.clear()
        self.back.size = 0
        self.network.forget(self)
        self.network.note("lost", self, "" if error is None else type(error).__name__)
        self.protocol.connection_lost(error)


class SimListener:
    """See :class:`bookkeeper.seams.Listener`."""

    def __init__(self, network: SimNetwork, node: Host, address: Address, factory: Callable[[], Any]) -> None:
        self._network = network
        self.node = node
        self.address = address
        self.factory = factory

    def close(self) -> None:
        self._network.listeners.pop((self.node.name, self.address.port), None)


class SimTls:
    """A stand-in: streams of the simulator are encrypted in name only. See :class:`bookkeeper.seams.Tls`."""

    certificate: bytes | None = None
    trusted = ""

    def __init__(self, files: TlsFiles) -> None:
        self.files = files

    def refresh(self) -> bool:
        return False


class NodeNet:
    """The Net seam of one node."""

    def __init__(self, network: SimNetwork, node: Host) -> None:
        self._network = network
        self._node = node

    async def connect(
        self, address: Address, factory: Callable[[], P], *, timeout_s: float, tls: ssl.SSLContext | None = None
    ) -> P:
        """See :class:`bookkeeper.seams.Net`."""
        network, node = self._network, self._node
        loop = network.loop
        established: asyncio.Future[P] = loop.create_future()
        target = network.node_at(address, node)

        def refuse() -> None:
            if not established.done():
                established.set_exception(ConnectionRefusedError(f"nobody listens at {address}"))

        def arrive() -> None:
            """At the other side; a dead host cannot answer, its neighbours do."""
            listener = network.listeners.get((target.name, address.port)) if target is not None else None
            if target is None or listener is None or not target.alive:
                if target is None or not network.is_cut(target, node):
                    loop.call_later(network.draw_delay(node, node), refuse, context=node.context)
                return
            if network.is_cut(node, target) or network.is_cut(target, node):
                return  # silence: the caller's time limit ends it
            loop.call_soon(accept, listener, context=target.context)

        def accept(listener: SimListener) -> None:
            theirs = SimTransport(network, listener.node, listener.factory(), listener.address)
            ours = SimTransport(network, node, factory(), Address(node.name, network.next_port()))
            network.join(ours, theirs)
            theirs.protocol.connection_made(theirs)
            loop.call_later(network.draw_delay(listener.node, node), establish, ours, context=node.context)

        def establish(ours: SimTransport) -> None:
            if established.done() or ours.lost:  # the caller gave up
                ours.abort()
                return
            ours.protocol.connection_made(ours)
            established.set_result(cast(P, ours.protocol))
            ours.back.arm()

        network.trace.add(loop.time(), "connect", node.name, address)
        loop.call_later(network.draw_delay(node, target or node), arrive)
        async with asyncio.timeout(timeout_s):
            return await established

    async def listen(
        self, address: Address, factory: Callable[[], asyncio.BaseProtocol], *, tls: ssl.SSLContext | None = None
    ) -> Listener:
        """See :class:`bookkeeper.seams.Net`."""
        network, node = self._network, self._node
        port = address.port or network.next_port()
        if (node.name, port) in network.listeners:
            raise OSError(98, "Address already in use", str(address))
        host = node.name if address.host in _LOOPBACK else address.host
        listener = SimListener(network, node, Address(host, port), factory)
        network.listeners[node.name, port] = listener
        return listener

    def tls(self, files: TlsFiles) -> Tls | None:
        """See :class:`bookkeeper.seams.Net`; the files are not looked at."""
        return SimTls(files)

    async def upgrade(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.BaseProtocol,
        tls: Tls,
        *,
        server_name: str | None,
        timeout_s: float,
    ) -> asyncio.Transport:
        """The stream goes on as it is: what is simulated is the order of things, not OpenSSL."""
        assert isinstance(transport, SimTransport)
        return transport

    @property
    def tells_silence(self) -> bool:
        """See :class:`bookkeeper.seams.Net`."""
        return self._network.weather.tells_silence

    def silence_s(self, transport: asyncio.BaseTransport) -> float | None:
        """See :class:`bookkeeper.seams.Net`."""
        assert isinstance(transport, SimTransport)
        way, back = transport.out, transport.back
        if not way.chunks:
            return None
        network, there = self._network, way.sink
        is_heard = not (there.lost or network.is_cut(self._node, there.node) or network.is_cut(there.node, self._node))
        return 0.0 if is_heard else max(0.0, network.now() - max(way.chunks[0][0], back.last))


class SimNetwork:
    """The wires between all nodes of a world."""

    def __init__(self, loop: SimLoop, trace: Trace, hosts: Mapping[str, Host], rng: Random) -> None:
        self.loop = loop
        self.trace = trace
        self._hosts = hosts
        self.rng = rng
        self.weather = Weather()
        self.listeners: dict[tuple[str, int], SimListener] = {}
        self.transports: dict[int, SimTransport] = {}
        self._cut: set[tuple[str, str]] = set()
        self._port = 40000

    def of(self, node: Host) -> NodeNet:
        return NodeNet(self, node)

    # -- faults -------------------------------------------------------------------------------------------

    def cut(self, source: str, target: str, *, both: bool = True) -> None:
        """Nothing gets from ``source`` to ``target`` any more (``both``: nor back). Connections stay, silently."""
        self._cut.add((source, target))
        if both:
            self._cut.add((target, source))
        self.trace.add(self.now(), "cut", source, target, both)

    def mend(self, source: str | None = None, target: str | None = None) -> None:
        """Undo ``cut`` for these two, or all of them. Waiting bytes arrive, or the connection is reset."""
        mended = [link for link in sorted(self._cut) if source is None or {*link} == {source, target}]
        self._cut.difference_update(mended)
        self.trace.add(self.now(), "mend", *mended)
        for transport in list(self.transports.values()):
            pipe = transport.out
            if (pipe.source.node.name, pipe.sink.node.name) not in mended:
                continue
            if pipe.chunks and self.rng.random() < self.weather.mend_reset_share:
                pipe.chunks.clear()
                transport.reset()
            pipe.last = max(pipe.last, self.now())
            pipe.arm()

    def is_cut(self, source: Host, target: Host) -> bool:
        return bool(self._cut) and (source.name, target.name) in self._cut

    def crashed(self, node: Host, silent: bool) -> None:
        """The node's process is gone. Its peers get resets: soon, or (``silent``, power lost) after a long time."""
        for key in [key for key in self.listeners if key[0] == node.name]:
            del self.listeners[key]
        for transport in list(self.transports.values()):
            if transport.node is node:
                transport.lost = transport.closing = True
                self.forget(transport)
                peer = transport.out.sink
                transport.out.chunks.clear()
                delay = self.rng.uniform(5.0, 60.0) if silent else self.draw_delay(node, peer.node)
                self.loop.call_later(
                    delay, peer.lose, ConnectionResetError("the peer is gone"), context=peer.node.context
                )

    # -- inside -------------------------------------------------------------------------------------------

    def now(self) -> float:
        return self.loop.time()

    def next_port(self) -> int:
        self._port += 1
        return self._port

    def draw_delay(self, source: Host, target: Host) -> float:
        weather, rng = self.weather, self.rng
        delay = weather.delay_s + weather.jitter_s * rng.random()
        if source is not target and rng.random() < weather.slow_share:
            delay += weather.slow_s * rng.random()
        return delay

    def node_at(self, address: Address, asking: Host) -> Host | None:
        if address.host in _LOOPBACK:
            return asking
        return self._hosts.get(address.host)

    def join(self, one: SimTransport, other: SimTransport) -> None:
        one.out = other.back = _Pipe(self, one, other)
        other.out = one.back = _Pipe(self, other, one)
        for transport, peer in ((one, other), (other, one)):
            transport.info["peername"] = peer.get_extra_info("sockname")
            self.transports[len(self.transports) and max(self.transports) + 1] = transport

    def forget(self, transport: SimTransport) -> None:
        for number, other in list(self.transports.items()):
            if other is transport:
                del self.transports[number]

    def note(self, kind: str, transport: SimTransport, *details: object) -> None:
        peer = transport.out.sink.node.name
        self.trace.add(self.now(), kind, transport.node.name, peer, *details)
