"""What a client may send before it is admitted (X2, X10). Pure: it takes bytes and events, and returns steps.

::

    CLEAR --START_TLS--> SHAKING --encrypted--> ASKING --the provider knows who it is--> OPEN
      |  \\                                         ^
      |   `-- TLS is only offered, or off ---------'  (without a provider there is no ASKING)
      `-- anything else where TLS is required: one error, SHUT

Until the handshake is done only START_TLS and AUTH are decoded. Of other frames only the envelope is read, to answer
them.

Apache's clients with SASL do not wait for the answer to START_TLS: right behind it, in clear, they send their first
AUTH message. It is always the same, names the plugin and is otherwise empty. Where that plugin is spoken, this one
message, and nothing else, may stand there (state EARLY); it is answered when the connection is encrypted. So somebody
in between can add no more than what the client sends anyway. The answer to START_TLS waits for it, so that TLS begins
behind it; but not long, since other clients send none.
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
from bookkeeper.wire import Operation, Status, envelope

FRAME_MAX: Final = TOKEN_MAX
"""The largest frame, in bytes, before the handshake is done (X10)."""

EARLY_MAX: Final = 64
"""The largest frame, in bytes, that may follow START_TLS in clear; that of Apache's clients has 19."""

_LENGTH: Final = Struct(">I")


class HandshakeState(Enum):
    """How far a connection has come."""

    CLEAR = "before the first message"
    EARLY = "after START_TLS, before a first message that may follow in clear"
    SHAKING = "in the TLS handshake"
    ASKING = "in the authentication exchange"
    OPEN = "served"
    SHUT = "refused"


@dataclass(frozen=True, slots=True)
class NeedBytes:
    """More bytes are needed."""


@dataclass(frozen=True, slots=True)
class BeginTls:
    """Send ``reply`` unencrypted, drop ``used`` bytes, begin the TLS handshake."""

    reply: bytes
    used: int


@dataclass(frozen=True, slots=True)
class AwaitEarly:
    """Drop ``used`` bytes; look on, and if nothing comes soon, call :meth:`Handshake.go_on`."""

    used: int


@dataclass(frozen=True, slots=True)
class AskProvider:
    """Hand ``payload`` to the provider's exchange, and drop ``used`` bytes."""

    header: wire.RequestHeader
    plugin: str
    payload: bytes
    used: int


@dataclass(frozen=True, slots=True)
class Admit:
    """The client is admitted: these bytes, and all that follow, are requests."""


@dataclass(frozen=True, slots=True)
class Reject:
    """Send ``reply`` (if there is one) and close the connection."""

    reply: bytes | None
    reason: str


Step = NeedBytes | BeginTls | AwaitEarly | AskProvider | Admit | Reject


class Handshake:
    """The handshake of one connection."""

    __slots__ = (
        "_asks",
        "_denied",
        "_early",
        "_identified",
        "_mode",
        "_reply",
        "_tls_done",
        "_v2",
        "early",
        "state",
    )

    def __init__(self, mode: str, *, asks: bool, early: str | None = None) -> None:
        """``mode`` is that of :class:`bookkeeper.net.tls.ServerTls`. With ``asks`` clients must send AUTH messages;
        ``early`` is the plugin whose first one may come in clear behind START_TLS."""
        assert early is None or asks, "who would answer it?"
        self._mode = mode
        self._early = early
        self._reply = b""
        self.early: wire.RequestHeader | None = None
        """The header of such a message, which is to be answered when the connection is encrypted."""
        self._asks = asks
        self._denied = False
        self._identified = False
        self._tls_done = False
        self._v2 = False
        self.state = HandshakeState.CLEAR

    def look(self, buffer: Buffer, start: int, end: int) -> Step:
        """Decide what to do about ``buffer[start:end]``. Not called while a handshake or an answer is awaited."""
        assert self.state in (HandshakeState.CLEAR, HandshakeState.EARLY, HandshakeState.ASKING), self.state
        if end - start < _LENGTH.size:
            return NeedBytes()
        (length,) = _LENGTH.unpack_from(buffer, start)
        begin = start + _LENGTH.size
        head = bytes(memoryview(buffer)[begin : min(end, begin + min(length, envelope.HEAD))])
        if len(head) < min(length, envelope.HEAD):
            return NeedBytes()
        header = envelope.header_of(head, v2_only=self._v2)
        is_early = self.state is HandshakeState.EARLY
        if is_early and (header is None or header.op is not Operation.AUTH or length > EARLY_MAX):
            return self._not_early()
        if self.state is HandshakeState.CLEAR and not self._begins_tls(header):
            if self._mode == "required":
                return self._refuse(header, head, "it sent an unencrypted request, and the bookie requires TLS")
            if not self._asks:
                self.state = HandshakeState.OPEN
                return Admit()
            self.state = HandshakeState.ASKING
        if self._denied:
            return self._refuse(header, head, "tls.allow and tls.roles do not admit its certificate")
        if header is None or header.op not in (Operation.AUTH, Operation.START_TLS):
            return self._refuse(header, head, "it sent a request before it authenticated")
        if length > FRAME_MAX:
            return self._refuse(header, head, f"it sent a frame of {length} bytes before it authenticated")
        if end - begin < length:
            return NeedBytes()
        return self._decode(bytes(memoryview(buffer)[begin : begin + length]), header, head)

    def encrypted(self, *, admitted: bool) -> bool:
        """The TLS handshake is done. Returns whether requests may come now.

        A client whose certificate is not ``admitted`` is told so when it sends a request (X5).
        """
        if self.state is not HandshakeState.SHAKING:  # it was shut meanwhile
            return False
        self._tls_done = True
        self._denied = not admitted
        opens = admitted and not self._asks
        self.state = HandshakeState.OPEN if opens else HandshakeState.ASKING
        return opens

    def go_on(self) -> BeginTls:
        """No message has followed START_TLS in clear."""
        assert self.state is HandshakeState.EARLY, self.state
        self.state = HandshakeState.SHAKING
        return BeginTls(self._reply, 0)

    def known(self) -> None:
        """The provider knows who the client is."""
        assert self.state is HandshakeState.ASKING, self.state
        self._identified = True
        self.state = HandshakeState.OPEN

    def shut(self) -> None:
        """Take nothing more."""
        self.state = HandshakeState.SHUT

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        state, mode = self.state, self._mode
        assert mode != "off" or not (self._tls_done or state is HandshakeState.SHAKING), "TLS where there is none"
        assert not self._tls_done or state not in (HandshakeState.CLEAR, HandshakeState.SHAKING), "TLS a second time"
        assert not self._denied or state in (HandshakeState.ASKING, HandshakeState.SHUT), "a denied client is served"
        assert self._early is not None or (state is not HandshakeState.EARLY and self.early is None), "too early"
        if state in (HandshakeState.ASKING, HandshakeState.OPEN):
            assert mode != "required" or self._tls_done, "let on in clear text where TLS is required"
        if state is HandshakeState.ASKING:
            assert self._asks or self._denied, "nobody asks this client, and nobody will let it in"
        if state is HandshakeState.OPEN:
            assert self._identified or not self._asks, "served before the provider knows who it is"

    def _begins_tls(self, header: wire.RequestHeader | None) -> bool:
        return self._mode != "off" and header is not None and header.op is Operation.START_TLS

    def _decode(self, body: bytes, header: wire.RequestHeader, head: bytes) -> Step:
        """Decode a complete AUTH or START_TLS message."""
        detector = wire.DialectDetector(self._v2)
        try:
            decoded = detector.decode(body)
        except MalformedFrameError as error:
            return self._refuse(None, head, str(error))
        if isinstance(decoded, wire.RefusedFrame) and self.state is HandshakeState.EARLY:
            return self._not_early()
        if isinstance(decoded, wire.RefusedFrame):
            return self._refuse(header, head, "it sent a message without content")
        self._v2 = detector.v2
        header, request = decoded
        used = _LENGTH.size + len(body)
        match request:
            case wire.StartTls() if self.state is HandshakeState.CLEAR:
                reply = wire.encode_reply(header, wire.StartTlsReply(Status.OK))
                if self._early is not None:
                    self.state, self._reply = HandshakeState.EARLY, reply
                    return AwaitEarly(used)
                self.state = HandshakeState.SHAKING
                return BeginTls(reply, used)
            case wire.Auth() if self.state is HandshakeState.EARLY:
                if request.plugin != self._early or request.payload:
                    return self._not_early()
                self.state, self.early = HandshakeState.SHAKING, header
                return BeginTls(self._reply, used)
            case wire.Auth() if self.state is HandshakeState.ASKING:
                return AskProvider(header, request.plugin, request.payload, used)
            case wire.StartTls():
                self.state = HandshakeState.SHUT
                bad = wire.encode_reply(header, wire.BareReply(Status.BAD_REQUEST))
                return Reject(bad, "it sent START_TLS to a bookie without TLS, or not as its first message")
            case _:
                return self._refuse(header, head, f"it sent {header.op.name} at the wrong time")

    def _not_early(self) -> Reject:
        """Nobody is answered in clear after START_TLS."""
        self.state = HandshakeState.SHUT
        return Reject(None, "unencrypted bytes came after START_TLS, where TLS must begin")

    def _refuse(self, header: wire.RequestHeader | None, head: bytes, reason: str) -> Reject:
        """Refuse with one error in the client's dialect. The error is the same whatever the reason (X11)."""
        self.state = HandshakeState.SHUT
        return Reject(None if header is None else envelope.refusal(header, head), reason)


def refusal_of(header: wire.RequestHeader) -> bytes | None:
    """The reply to a failed AUTH message; None in v2, which has no such reply."""
    return envelope.refusal(header, b"")
