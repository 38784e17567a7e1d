"""What a connection may say before it is let in (X2, X10). Pure: bytes and events in, steps out.

::

    CLEAR --START_TLS--> SHAKING --encrypted--> ASKING --the provider knows who it is--> OPEN
      |  \\                                         ^
      |   `-- TLS is only offered, or off ---------'  (ASKING is left out where nobody is asked)
      `-- anything else under `required`: one error, SHUT

Until the door is open nothing but START_TLS and AUTH is decoded; of other frames only the envelope is read, to
answer them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import Final

from bookkeeper import wire
from bookkeeper.auth.provider import TOKEN_MAX
from bookkeeper.errors import MalformedFrameError
from bookkeeper.seams import Buffer
from bookkeeper.wire import Op, Status, envelope

FRAME_MAX: Final = TOKEN_MAX
"""Bytes of a frame before the door is open (X10)."""

_LENGTH: Final = Struct(">I")


class State(Enum):
    """How far a connection has come."""

    CLEAR = "nothing said yet"
    SHAKING = "in the TLS handshake"
    ASKING = "in the authentication exchange"
    OPEN = "served"
    SHUT = "refused"


@dataclass(frozen=True, slots=True)
class Wait:
    """More bytes are needed."""


@dataclass(frozen=True, slots=True)
class Encrypt:
    """Send ``reply`` in clear, use ``used`` bytes, begin the handshake."""

    reply: bytes
    used: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Hand ``payload`` to the provider's exchange; use ``used`` bytes."""

    header: wire.Header
    plugin: str
    payload: bytes
    used: int


@dataclass(frozen=True, slots=True)
class Enter:
    """The door is open: these bytes, and all that follow, are requests."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Send ``reply`` (if there is one) and close the connection."""

    reply: bytes | None
    reason: str


Step = Wait | Encrypt | Ask | Enter | Refuse


class Door:
    """One connection's."""

    __slots__ = ("_asks", "_denied", "_mode", "_v2", "state")

    def __init__(self, mode: str, *, asks: bool) -> None:
        """``mode``: of :class:`bookkeeper.net.tls.ServerTls`. ``asks``: clients must authenticate in AUTH messages."""
        self._mode = mode
        self._asks = asks
        self._denied = False
        self._v2 = False
        self.state = State.CLEAR

    def look(self, buffer: Buffer, start: int, end: int) -> Step:
        """What to do about ``buffer[start:end]``. Not called while a handshake or an answer is awaited."""
        assert self.state in (State.CLEAR, State.ASKING), self.state
        if end - start < _LENGTH.size:
            return Wait()
        (length,) = _LENGTH.unpack_from(buffer, start)
        begin = start + _LENGTH.size
        head = bytes(memoryview(buffer)[begin : min(end, begin + min(length, envelope.HEAD))])
        if len(head) < min(length, envelope.HEAD):
            return Wait()
        header = envelope.header_of(head, v2_only=self._v2)
        if self.state is State.CLEAR and not self._begins_tls(header):
            if self._mode == "required":
                return self._refuse(header, head, "clear text where TLS is required (X2)")
            if not self._asks:
                self.state = State.OPEN
                return Enter()
            self.state = State.ASKING
        if self._denied:
            return self._refuse(header, head, "the rules admit no such certificate (X5)")
        if header is None or header.op not in (Op.AUTH, Op.START_TLS):
            return self._refuse(header, head, "a request before authentication (X10)")
        if length > FRAME_MAX:
            return self._refuse(header, head, f"a frame of {length} bytes before authentication (X10)")
        if end - begin < length:
            return Wait()
        return self._decode(bytes(memoryview(buffer)[begin : begin + length]), header, head)

    def encrypted(self, *, admitted: bool) -> bool:
        """The handshake is done; True if the door is open now. One whose certificate is not ``admitted`` hears so when
        it asks for something."""
        if self.state is not State.SHAKING:  # shut meanwhile
            return False
        self._denied = not admitted
        opens = admitted and not self._asks
        self.state = State.OPEN if opens else State.ASKING
        return opens

    def known(self) -> None:
        """The provider knows who it is."""
        assert self.state is State.ASKING, self.state
        self.state = State.OPEN

    def shut(self) -> None:
        """Nothing more is taken."""
        self.state = State.SHUT

    def _begins_tls(self, header: wire.Header | None) -> bool:
        return self._mode != "off" and header is not None and header.op is Op.START_TLS

    def _decode(self, body: bytes, header: wire.Header, head: bytes) -> Step:
        """An AUTH or START_TLS message, whole."""
        detector = wire.Detector(self._v2)
        try:
            decoded = detector.decode(body)
        except MalformedFrameError as error:
            return self._refuse(None, head, str(error))
        if isinstance(decoded, wire.Refused):
            return self._refuse(header, head, "a message without its content")
        self._v2 = detector.v2
        header, request = decoded
        used = _LENGTH.size + len(body)
        match request:
            case wire.StartTls() if self.state is State.CLEAR:
                self.state = State.SHAKING
                return Encrypt(wire.encode_reply(header, wire.StartTlsReply(Status.OK)), used)
            case wire.Auth() if self.state is State.ASKING:
                return Ask(header, request.plugin, request.payload, used)
            case wire.StartTls():
                self.state = State.SHUT
                bad = wire.encode_reply(header, wire.BareReply(Status.BAD_REQUEST))
                return Refuse(bad, "START_TLS where there is no TLS, or not as the first message")
            case _:
                return self._refuse(header, head, f"{header.op.name} out of place")

    def _refuse(self, header: wire.Header | None, head: bytes, reason: str) -> Refuse:
        """One error in the words of its dialect, of the same shape whatever the reason (X11)."""
        self.state = State.SHUT
        return Refuse(None if header is None else envelope.refusal(header, head), reason)


def refusal_of(header: wire.Header) -> bytes | None:
    """What a failed AUTH message is answered with; None: v2 has no such answer."""
    return envelope.refusal(header, b"")
