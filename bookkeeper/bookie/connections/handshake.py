"""What a client may send before it is admitted (X2, X10). Pure: it takes bytes and events, and returns steps.

::

    CLEAR --START_TLS--> ENCRYPTING --encrypted--> AUTHENTICATING --the provider accepts the client--> OPEN
      |  \\                                            ^
      |   `-- TLS is only offered, or off ------------'  (without a provider there is no AUTHENTICATING)
      `-- anything else where TLS is required: one error, SHUT

Until the handshake is done only START_TLS and AUTH are decoded. Of other frames only the envelope is read, to answer
them.

Apache's clients with SASL do not wait for the answer to START_TLS: right behind it, in clear, they send their first
AUTH message, and on a busy machine now and then right before it. It is always the same: it names the plugin and has no
payload. A bookie with that plugin accepts this one message in clear, once, and nothing else (behind START_TLS: state
EARLY), and answers it when the connection is encrypted. So an attacker in between can insert only what the client sends
anyway. The answer to START_TLS waits for the message for a short time, because TLS must begin behind it, and other
clients send none. Where TLS is offered and not required, an AUTH message before START_TLS begins an exchange in clear.
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
"""The largest frame, in bytes, that may come in clear beside START_TLS; that of Apache's clients has 19."""

_LENGTH: Final = Struct(">I")


class HandshakeState(Enum):
    """How far a connection has come."""

    CLEAR = "before the first message"
    EARLY = "after START_TLS, before a first message that may follow in clear"
    ENCRYPTING = "in the TLS handshake"
    AUTHENTICATING = "in the authentication exchange"
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
    """Drop ``used`` bytes. If nothing follows soon, call :meth:`Handshake.on_no_early_message`."""

    used: int


@dataclass(frozen=True, slots=True)
class AwaitTls:
    """Drop ``used`` bytes: the early message has come, and START_TLS must follow."""

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


Step = NeedBytes | BeginTls | AwaitEarly | AwaitTls | AskProvider | Admit | Reject


class Handshake:
    """The handshake of one connection."""

    __slots__ = (
        "_authenticates",
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

    def __init__(self, mode: str, *, authenticates: bool, early: str | None = None) -> None:
        """``mode`` is that of :class:`bookkeeper.net.tls.ServerTls`. With ``authenticates`` clients must send AUTH
        messages; ``early`` is the plugin whose first one may come in clear beside START_TLS."""
        assert early is None or authenticates, "an early message, and nobody to answer it"
        self._mode = mode
        self._early = early
        self._reply = b""
        self.early: wire.RequestHeader | None = None
        """The header of the early message, to be answered when the connection is encrypted."""
        self._authenticates = authenticates
        self._denied = False
        self._identified = False
        self._tls_done = False
        self._v2 = False
        self.state = HandshakeState.CLEAR

    def next_step(self, buffer: Buffer, start: int, end: int) -> Step:
        """What to do about the received bytes ``buffer[start:end]``. Not called during a TLS handshake, or while the
        provider works."""
        assert self.state in (HandshakeState.CLEAR, HandshakeState.EARLY, HandshakeState.AUTHENTICATING), self.state
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
            return self._refuse_clear_bytes()
        if self.state is HandshakeState.CLEAR and not self._begins_tls(header):
            if self._may_be_early(header, length):
                if end - begin < length:
                    return NeedBytes()
                body = bytes(memoryview(buffer)[begin : begin + length])
                if (early := self._early_message(body)) is not None:
                    self.early = early
                    return AwaitTls(_LENGTH.size + length)
            if self._mode == "required":
                return self._refuse(header, head, "it sent an unencrypted request, and the bookie requires TLS")
            if not self._authenticates:
                self.state = HandshakeState.OPEN
                return Admit()
            self.state = HandshakeState.AUTHENTICATING
        if self._denied:
            return self._refuse(header, head, "tls.allow and tls.roles do not admit its certificate")
        if header is None or header.op not in (Operation.AUTH, Operation.START_TLS):
            return self._refuse(header, head, "it sent a request before it authenticated")
        if length > FRAME_MAX:
            return self._refuse(header, head, f"it sent a frame of {length} bytes before it authenticated")
        if end - begin < length:
            return NeedBytes()
        return self._decode(bytes(memoryview(buffer)[begin : begin + length]), header, head)

    def on_encrypted(self, *, admitted: bool) -> bool:
        """The TLS handshake is done. Returns whether requests may come now.

        A client whose certificate is not ``admitted`` gets an error for its first request (X5).
        """
        if self.state is not HandshakeState.ENCRYPTING:  # it was shut meanwhile
            return False
        self._tls_done = True
        self._denied = not admitted
        opens = admitted and not self._authenticates
        self.state = HandshakeState.OPEN if opens else HandshakeState.AUTHENTICATING
        return opens

    def on_no_early_message(self) -> BeginTls:
        """No message has followed START_TLS in clear."""
        assert self.state is HandshakeState.EARLY, self.state
        self.state = HandshakeState.ENCRYPTING
        return BeginTls(self._reply, 0)

    def on_authenticated(self) -> None:
        """The provider has authenticated the client."""
        assert self.state is HandshakeState.AUTHENTICATING, self.state
        self._identified = True
        self.state = HandshakeState.OPEN

    def shut(self) -> None:
        """Accept nothing more."""
        self.state = HandshakeState.SHUT

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        state, mode = self.state, self._mode
        assert mode != "off" or not (self._tls_done or state is HandshakeState.ENCRYPTING), "TLS where there is none"
        assert not self._tls_done or state not in (HandshakeState.CLEAR, HandshakeState.ENCRYPTING), "TLS a second time"
        assert not self._denied or state in (HandshakeState.AUTHENTICATING, HandshakeState.SHUT), (
            "a denied client is served"
        )
        assert self._early is not None or (state is not HandshakeState.EARLY and self.early is None), "too early"
        if state in (HandshakeState.AUTHENTICATING, HandshakeState.OPEN):
            assert mode != "required" or self._tls_done, "served in clear where TLS is required"
        if state is HandshakeState.AUTHENTICATING:
            assert self._authenticates or self._denied, "no provider will admit this client"
        if state is HandshakeState.OPEN:
            assert self._identified or not self._authenticates, "served before it is authenticated"

    def _may_be_early(self, header: wire.RequestHeader | None, length: int) -> bool:
        """Whether a frame before START_TLS may be the early message."""
        if self._early is None or self._mode != "required" or self.early is not None:
            return False
        return header is not None and header.op is Operation.AUTH and length <= EARLY_MAX

    def _early_message(self, body: bytes) -> wire.RequestHeader | None:
        """The header of the early message; None: it is something else. START_TLS has its dialect, whatever this has."""
        try:
            decoded = wire.DialectDetector(self._v2).decode(body)
        except MalformedFrameError:
            return None
        if isinstance(decoded, wire.RefusedFrame):
            return None
        header, request = decoded
        is_early = isinstance(request, wire.Auth) and request.plugin == self._early and not request.payload
        return header if is_early else None

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
            return self._refuse_clear_bytes()
        if isinstance(decoded, wire.RefusedFrame):
            return self._refuse(header, head, "it sent a message without content")
        self._v2 = detector.v2
        header, request = decoded
        used = _LENGTH.size + len(body)
        match request:
            case wire.StartTls() if self.state is HandshakeState.CLEAR:
                reply = wire.encode_reply(header, wire.StartTlsReply(Status.OK))
                if self._early is not None and self.early is None:
                    self.state, self._reply = HandshakeState.EARLY, reply
                    return AwaitEarly(used)
                self.state = HandshakeState.ENCRYPTING
                return BeginTls(reply, used)
            case wire.Auth() if self.state is HandshakeState.EARLY:
                if request.plugin != self._early or request.payload:
                    return self._refuse_clear_bytes()
                self.state, self.early = HandshakeState.ENCRYPTING, header
                return BeginTls(self._reply, used)
            case wire.Auth() if self.state is HandshakeState.AUTHENTICATING:
                return AskProvider(header, request.plugin, request.payload, used)
            case wire.StartTls():
                self.state = HandshakeState.SHUT
                bad = wire.encode_reply(header, wire.BareReply(Status.BAD_REQUEST))
                return Reject(bad, "it sent START_TLS to a bookie without TLS, or not as its first message")
            case _:
                return self._refuse(header, head, f"it sent {header.op.name} at the wrong time")

    def _refuse_clear_bytes(self) -> Reject:
        """Refuse without a reply: nothing is sent in clear after START_TLS."""
        self.state = HandshakeState.SHUT
        return Reject(None, "unencrypted bytes came after START_TLS, where TLS must begin")

    def _refuse(self, header: wire.RequestHeader | None, head: bytes, reason: str) -> Reject:
        """Refuse with one error in the client's dialect. The error is the same whatever the reason (X11)."""
        self.state = HandshakeState.SHUT
        return Reject(None if header is None else envelope.refusal(header, head), reason)


def refusal_of(header: wire.RequestHeader) -> bytes | None:
    """The reply to a failed AUTH message; None in v2, which has no such reply."""
    return envelope.refusal(header, b"")
