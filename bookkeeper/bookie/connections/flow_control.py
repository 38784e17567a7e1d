"""When a client's connection is not read, and when its client is too slow.

Three parts of this machine can hold a connection. It is read while none of them does; each changes on its own.

Replies: how many bytes the client is owed, sent and unread ones together with those that still wait for the disk.

                    requests wait for the disk
    FLOWING ──▶ owed > UNSENT_HIGH ──▶ AWAITING_ANSWERS ──▶ owed <= UNSENT_HIGH, or none waits ──▶ FLOWING
                    │
                    │ all requests are answered
                    └────────────────▶ AWAITING_FLUSH ────▶ the next turn of the loop ──────────▶ FLOWING

Admission: what the whole bookie has in progress (:mod:`~bookkeeper.bookie.connections.admission`).

    IDLE ──▶ a request without reserve is taken ──▶ CHARGED ──▶ end of the chunk, the bookie is crowded ──▶ QUEUED
     ▲                                                 │                                                       │
     │◀────── end of the chunk, there is room ─────────┘                                                       │
     └◀────── there is room again ─────────────────────────────────────────────────────────────────────────────┘

Client: whether it takes the replies that are sent.

    TAKING ──▶ the system's buffers are full ──▶ STALLED since a time ──▶ they are half empty ──▶ TAKING

A fourth part holds nothing and only keeps a time: since when the rest of a frame is missing.

    WHOLE ──▶ a part of a frame is left over ──▶ PARTIAL since a time ──▶ bytes are used, or reading stops ──▶ WHOLE

Rules
    X32  What one client may have in progress and unread is bounded in bytes; beyond that its connection is not read,
         and the client feels it by TCP.
    X33  A chunk that brought only requests with a reserve (fences, recovery, high priority) never holds the connection
         for admission.
    X34  A client is too slow when the rest of a frame, or room for replies, is missing for too long. Time during which
         the connection is not read does not count against the sender of a frame.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

UNSENT_HIGH: Final = 4 * 1024 * 1024
"""Bytes of replies a client may leave unread before its requests are no longer looked at."""

TYPICAL_REPLY: Final = 64 * 1024
"""The assumed size of a reply in bytes before the first one tells; it bounds what may wait for the disk at once."""

TYPICAL_REPLY_MIN: Final = 1024
"""The least assumed size of a reply."""


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


class FlowControl:
    """Of one connection. Methods that return True say: pause reading once, or resume it once."""

    __slots__ = ("admission", "partial_since", "replies", "stalled_since", "typical", "waiting")

    def __init__(self) -> None:
        self.replies = ReplyFlow.FLOWING
        self.admission = AdmissionFlow.IDLE
        self.stalled_since: float | None = None
        """None: the client takes its replies."""
        self.partial_since: float | None = None
        """None: no frame is incomplete, or the connection is not read."""
        self.waiting = 0
        """Requests (long polls apart) that will be answered later."""
        self.typical = TYPICAL_REPLY
        """Bytes that a reply to one of them is assumed to have, going by the latest."""

    def __repr__(self) -> str:
        stalled = "stalled" if self.stalled_since is not None else "taking"
        return f"<{self.replies.value}, {self.admission.value}, {stalled}, {self.waiting} waiting>"

    @property
    def held(self) -> bool:
        """Is the connection held by any part?"""
        return (
            self.replies is not ReplyFlow.FLOWING
            or self.admission is AdmissionFlow.QUEUED
            or self.stalled_since is not None
        )

    # -- replies ------------------------------------------------------------------------------------------

    def owes_too_much(self, unsent: int) -> bool:
        """A request is next, and ``unsent`` bytes of replies are not taken yet. True: pause; do not take it.

        In the state AWAITING_FLUSH call :meth:`on_flushed` on the next turn of the loop.
        """
        if unsent + self.waiting * self.typical <= UNSENT_HIGH:
            return False
        assert self.replies is ReplyFlow.FLOWING, "a request is taken from a connection that is not read"
        self.replies = ReplyFlow.AWAITING_ANSWERS if self.waiting else ReplyFlow.AWAITING_FLUSH
        self.partial_since = None
        return True

    def on_flushed(self) -> bool:
        """A turn of the loop has passed: what was written is sent, or the client has stalled. True: resume."""
        if self.replies is not ReplyFlow.AWAITING_FLUSH:
            return False
        self.replies = ReplyFlow.FLOWING
        return True

    def on_request_waits(self) -> None:
        """A request was taken that may be answered later."""
        self.waiting += 1

    def on_answered(self, size: int, unsent: int) -> bool:
        """One of those that waited is answered with ``size`` bytes; ``unsent`` includes them. True: resume."""
        self.waiting -= 1
        self.on_answered_at_once(size)
        if self.replies is not ReplyFlow.AWAITING_ANSWERS:
            return False
        if self.waiting and unsent + self.waiting * self.typical > UNSENT_HIGH:
            return False
        self.replies = ReplyFlow.FLOWING
        return True

    def on_answered_at_once(self, size: int) -> None:
        """A reply of ``size`` bytes: the assumed size follows a larger one at once, a smaller one slowly."""
        self.typical = max(size, self.typical - self.typical // 8, TYPICAL_REPLY_MIN)

    # -- admission ----------------------------------------------------------------------------------------

    def on_charged(self) -> None:
        """A request without reserve was taken from the present chunk."""
        if self.admission is AdmissionFlow.IDLE:
            self.admission = AdmissionFlow.CHARGED

    def on_chunk_end(self, *, crowded: bool) -> bool:
        """The present chunk is done; ``crowded``: who brings more should wait. True: pause, and wait for room."""
        if self.admission is not AdmissionFlow.CHARGED:
            return False
        self.admission = AdmissionFlow.IDLE
        if crowded:
            self.admission = AdmissionFlow.QUEUED
            self.partial_since = None
        return crowded

    def on_room(self) -> bool:
        """The bookie has room again. True: resume."""
        if self.admission is not AdmissionFlow.QUEUED:
            return False
        self.admission = AdmissionFlow.IDLE
        return True

    # -- the client ---------------------------------------------------------------------------------------

    def on_stalled(self, now: float) -> bool:
        """The client no longer takes what is sent. True: pause."""
        if self.stalled_since is not None:
            return False
        self.stalled_since = now
        self.partial_since = None
        return True

    def on_taking(self) -> bool:
        """The client takes it again. True: resume."""
        if self.stalled_since is None:
            return False
        self.stalled_since = None
        return True

    # -- frames -------------------------------------------------------------------------------------------

    def on_partial(self, now: float, *, progress: bool) -> None:
        """A part of a frame is left over; ``progress``: something before it was used."""
        if not self.held and (progress or self.partial_since is None):
            self.partial_since = now

    def on_whole(self) -> None:
        """No frame is incomplete, or the connection is not read from now on."""
        self.partial_since = None

    def slowness(self, partial_before: float, stalled_before: float) -> Slowness | None:
        """Is the client too slow? Its frame is incomplete, or it takes no replies, since before these times."""
        if self.partial_since is not None and self.partial_since < partial_before:
            return Slowness.FRAME
        if self.stalled_since is not None and self.stalled_since < stalled_before:
            return Slowness.REPLIES
        return None

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self.waiting >= 0, "a request was answered twice"
        assert self.typical >= TYPICAL_REPLY_MIN
        assert self.waiting or self.replies is not ReplyFlow.AWAITING_ANSWERS, "nothing will end the wait for answers"
        assert self.partial_since is None or not self.held, "a sender's time runs while it is not read"
