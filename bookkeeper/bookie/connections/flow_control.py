"""When to stop reading from a client's connection, and when its client is too slow.

Three parts of this machine can hold a connection; each changes on its own. While none holds it, it is read.

Replies: how many bytes of replies the client is owed: unread ones, and those that still wait for the disk; and how many
of its requests were taken without a pause.

                    requests wait for the disk
    FLOWING ──▶ owed > UNSENT_HIGH ──▶ AWAITING_ANSWERS ──▶ owed <= UNSENT_HIGH, or none waits ──▶ FLOWING
                    │
                    │ all requests are answered, or enough are taken for this turn
                    └────────────────▶ AWAITING_FLUSH ────▶ the next turn of the loop ──────────▶ FLOWING

Admission: what the whole bookie has in progress (:mod:`~bookkeeper.bookie.connections.admission`).

    IDLE ──▶ a request without reserve is taken ──▶ CHARGED ──▶ end of the chunk, the bookie is crowded ──▶ QUEUED
     ▲                                                 │                                                       │
     │◀────── end of the chunk, there is room ─────────┘                                                       │
     └◀────── there is room again ─────────────────────────────────────────────────────────────────────────────┘

Client: whether it reads the replies that are sent.

    READING ──▶ the system's buffers are full ──▶ STALLED since a time ──▶ they are half empty ──▶ READING

A fourth part holds nothing. It only keeps the time since which the rest of a frame is missing.

    WHOLE ──▶ a part of a frame is left over ──▶ PARTIAL since a time ──▶ bytes are used, or reading stops ──▶ WHOLE

Rules
    X32a A client that sends many small requests is not read for longer than it takes to answer a thousand: then the
         other connections have their turn.
    X32  What one client may have in progress and unread is bounded in bytes. Above the bound its connection is not
         read, and TCP slows the client down.
    X33  A chunk that brought only requests with a reserve (fences, recovery) never holds the connection for admission.
    X34  A client is too slow when the rest of a frame, or room for replies, is missing for too long. Time during which
         the connection is not read does not count against the sender of a frame. A client is silent as long as nothing
         comes from it and nothing is owed to it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

UNSENT_HIGH: Final = 4 * 1024 * 1024
"""Bytes of replies a client may leave unread before the bookie takes no more of its requests."""

TURN_REQUESTS: Final = 1000
"""Requests of one connection in a row before the other connections have a turn. A run of adds counts as one, and so
does a run of reads that is answered from memory; each takes about ten microseconds."""

TYPICAL_REPLY: Final = 64 * 1024
"""The assumed bytes of a reply before the first reply. It bounds how many requests may wait for the disk at once."""

TYPICAL_REPLY_MIN: Final = 1024
"""The least assumed size of a reply in bytes."""


class ReplyFlow(Enum):
    """The part *replies*."""

    FLOWING = "flowing"
    AWAITING_ANSWERS = "awaiting answers"
    AWAITING_FLUSH = "awaiting flush"


class AdmissionFlow(Enum):
    """The part *admission*."""

    IDLE = "idle"
    CHARGED = "charged"
    QUEUED = "queued"


class Slowness(Enum):
    """Why a client is too slow."""

    FRAME = "frame"
    REPLIES = "replies"


# As a global: to look a member up in its class costs ten times as much (CPython 3.11).
_FLOWING: Final = ReplyFlow.FLOWING
_IDLE: Final = AdmissionFlow.IDLE
_CHARGED: Final = AdmissionFlow.CHARGED
_QUEUED: Final = AdmissionFlow.QUEUED


class FlowControl:
    """The flow control of one connection. A method that returns True asks to pause, or to resume, reading."""

    __slots__ = (
        "_silent_since",
        "admission",
        "has_received",
        "partial_since",
        "replies",
        "stalled_since",
        "taken",
        "typical",
        "waiting",
    )

    def __init__(self) -> None:
        self.replies = _FLOWING
        self.admission = _IDLE
        self.stalled_since: float | None = None
        """Since when the client reads no replies; None while it reads them."""
        self.partial_since: float | None = None
        """Since when a frame is incomplete; None if there is none, or the connection is not read."""
        self.waiting = 0
        """Requests that will be answered later, not counting long polls."""
        self.taken = 0
        """Requests since the other connections had their turn."""
        self.typical = TYPICAL_REPLY
        """The assumed bytes of a reply to one of them, estimated from the latest replies."""
        self.has_received = True
        """Whether bytes have come since :meth:`silence_s` was last called."""
        self._silent_since = 0.0

    def __repr__(self) -> str:
        stalled = "stalled" if self.stalled_since is not None else "reading"
        return f"<{self.replies.value}, {self.admission.value}, {stalled}, {self.waiting} waiting>"

    @property
    def held(self) -> bool:
        """Whether any part holds the connection."""
        return self.replies is not _FLOWING or self.admission is _QUEUED or self.stalled_since is not None

    # -- replies ------------------------------------------------------------------------------------------

    def pause_for_replies(self, unsent: int) -> bool:
        """Before the next request is taken: whether to pause first, because too many bytes of replies are unread or due
        (``unsent`` are written and not sent), or enough requests were taken for this turn.

        In the state AWAITING_FLUSH the caller calls :meth:`on_flushed` on the next turn of the loop.
        """
        if unsent + self.waiting * self.typical <= UNSENT_HIGH:
            return self.taken >= TURN_REQUESTS and self.pause_for_turn()
        self.taken = 0
        assert self.replies is _FLOWING, "a request is taken from a connection that is not read"
        self.replies = ReplyFlow.AWAITING_ANSWERS if self.waiting else ReplyFlow.AWAITING_FLUSH
        self.partial_since = None
        return True

    def on_taken(self, requests: int = 1) -> None:
        """The connection took requests, or runs of them."""
        self.taken += requests

    def pause_for_turn(self) -> bool:
        """Whether to pause, because enough requests were taken for this turn. Then the caller calls :meth:`on_flushed`
        on the next turn of the loop."""
        if self.taken < TURN_REQUESTS or self.replies is not _FLOWING:
            return False
        self.taken = 0
        self.replies = ReplyFlow.AWAITING_FLUSH
        self.partial_since = None
        return True

    def on_flushed(self) -> bool:
        """A turn of the loop has passed: the replies are sent, or the client has stalled. Returns True to resume."""
        if self.replies is not ReplyFlow.AWAITING_FLUSH:
            return False
        self.replies = _FLOWING
        return True

    def on_request_waits(self) -> None:
        """The connection took a request that may be answered later."""
        self.waiting += 1

    def on_answered(self, size: int, unsent: int) -> bool:
        """A waiting request is answered with ``size`` bytes, which ``unsent`` includes. Returns True to resume."""
        self.waiting -= 1
        self.on_answered_at_once(size)
        if self.replies is not ReplyFlow.AWAITING_ANSWERS:
            return False
        if self.waiting and unsent + self.waiting * self.typical > UNSENT_HIGH:
            return False
        self.replies = _FLOWING
        return True

    def on_answered_at_once(self, size: int) -> None:
        """Adapt the assumed size to a reply of ``size`` bytes: it rises at once and falls slowly."""
        fallen = self.typical - self.typical // 8
        least = fallen if fallen > TYPICAL_REPLY_MIN else TYPICAL_REPLY_MIN
        self.typical = size if size > least else least

    def on_run_answered(self, size: int) -> None:
        """The connection took a run of requests without reserve, and answered it at once, by ``size`` bytes each."""
        self.taken += 1
        if self.admission is _IDLE:
            self.admission = _CHARGED
        typical = self.typical
        if size != typical:
            self.on_answered_at_once(size)

    # -- admission ----------------------------------------------------------------------------------------

    def on_charged(self) -> None:
        """The connection took a request without reserve from the present chunk."""
        if self.admission is _IDLE:
            self.admission = _CHARGED

    def on_chunk_end(self, *, crowded: bool) -> bool:
        """The present chunk is done; ``crowded`` is the bookie's. Returns True to pause and wait for room."""
        if self.admission is not _CHARGED:
            return False
        self.admission = _IDLE
        if crowded:
            self.admission = _QUEUED
            self.partial_since = None
        return crowded

    def on_room(self) -> bool:
        """The bookie has room again. Returns True to resume."""
        if self.admission is not _QUEUED:
            return False
        self.admission = _IDLE
        return True

    # -- the client ---------------------------------------------------------------------------------------

    def on_stalled(self, now: float) -> bool:
        """The client reads no replies any more. Returns True to pause."""
        if self.stalled_since is not None:
            return False
        self.stalled_since = now
        self.partial_since = None
        return True

    def on_unstalled(self) -> bool:
        """The client reads again. Returns True to resume."""
        if self.stalled_since is None:
            return False
        self.stalled_since = None
        return True

    # -- frames -------------------------------------------------------------------------------------------

    def on_partial_frame(self, now: float, *, progress: bool) -> None:
        """A part of a frame is left over; ``progress`` if bytes before it were used."""
        if not self.held and (progress or self.partial_since is None):
            self.partial_since = now

    def on_no_partial_frame(self) -> None:
        """No frame is incomplete, or the connection is not read from now on."""
        self.partial_since = None

    def silence_s(self, now: float) -> float:
        """Seconds of silence, by the calls of this method: since the last one before which bytes had come, or at which
        a request waited or the connection was not read."""
        if self.has_received or self.waiting or self.held:
            self.has_received, self._silent_since = False, now
        return now - self._silent_since

    def slowness(self, partial_before: float, stalled_before: float) -> Slowness | None:
        """Why the client is too slow; None if it is not. The arguments are the times since before which a frame must
        have been incomplete, or replies unread."""
        if self.partial_since is not None and self.partial_since < partial_before:
            return Slowness.FRAME
        if self.stalled_since is not None and self.stalled_since < stalled_before:
            return Slowness.REPLIES
        return None

    def validate_state(self) -> None:
        """Check what must hold between any two calls. For tests."""
        assert self.waiting >= 0, "a request was answered twice"
        assert self.typical >= TYPICAL_REPLY_MIN
        assert self.waiting or self.replies is not ReplyFlow.AWAITING_ANSWERS, "nothing will end the wait for answers"
        assert self.partial_since is None or not self.held, "time counts against a sender that is not read"
