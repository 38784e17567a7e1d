"""Batches on their way to a gateway: which are to be sent, which are answered, what becomes of them when a call ends.
Pure.

Batches are sent and answered in order. A producer's batch may be sent again whatever became of it: the stream has it
once. Another batch is sent again only if the gateway has said that it was not applied.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bookkeeper.outcome import Outcome
from segments.errors import (
    AppendOutcomeUnknownError,
    OwnershipLostError,
    StreamError,
    StreamOverloadedError,
)
from segments.protocol.credits import SendWindow
from segments.record import AppendResult


@dataclass(slots=True)
class QueuedBatch:
    """One batch."""

    request: Any
    records: int
    size: int
    answer: Any
    """What the caller waits on; this module only hands it back."""
    was_sent: bool = False
    """In some call, ever, and it is not known that it was not applied."""


Settled = tuple[QueuedBatch, AppendResult | StreamError]
"""A batch, and what to tell its caller."""


class RemoteAppendQueue:
    """The batches of one writer or producer."""

    def __init__(self, *, idempotent: bool) -> None:
        """``idempotent``: batches carry a producer and sequence numbers."""
        self._idempotent = idempotent
        self._again: deque[QueuedBatch] = deque()
        """Answered in this call, and to be sent again in the next one."""
        self._sent: deque[QueuedBatch] = deque()
        """Sent in this call, and not answered."""
        self._waiting: deque[QueuedBatch] = deque()
        """Not sent in this call."""
        self._window = SendWindow(0, 0)
        self.size = 0
        """Bytes of all batches."""

    def __len__(self) -> int:
        return len(self._again) + len(self._sent) + len(self._waiting)

    def add(self, batch: QueuedBatch) -> None:
        """Put a batch behind the others."""
        self._waiting.append(batch)
        self.size += batch.size

    def began(self) -> None:
        """A call began. Nothing is sent before it has told its window."""
        self._window = SendWindow(0, 0)

    def resize(self, records: int, size: int) -> None:
        """The call told its window."""
        self._window.resize(records, size)

    def sendable(self) -> Iterator[QueuedBatch]:
        """The batches that may be sent now, in order. Each counts as sent when the next one is asked for."""
        if not self._window.records_max:
            return
        while self._waiting and not self._again:  # nothing overtakes a batch that must be sent again
            batch = self._waiting[0]
            if not self._window.has_room(batch.records, batch.size):
                return
            batch.was_sent = True
            self._sent.append(self._waiting.popleft())
            self._window.sent(batch.records, batch.size)
            yield batch

    def answered(self, answer: AppendResult | StreamError) -> Settled | None:
        """The gateway answered the first batch that waits for it. Returns what to tell, or None: it is sent again.

        Raises:
            LookupError: nothing waits for an answer.
        """
        if not self._sent:
            raise LookupError("an answer came for nothing")
        batch = self._sent.popleft()
        self._window.answered(batch.records, batch.size)
        if isinstance(answer, StreamError) and self._goes_again(answer):
            batch.was_sent = batch.was_sent and self._idempotent  # who is no producer sends again what was not applied
            self._again.append(batch)
            return None
        self.size -= batch.size
        return batch, answer

    def _goes_again(self, error: StreamError) -> bool:
        if isinstance(error, AppendOutcomeUnknownError | OwnershipLostError):
            return self._idempotent or error.outcome is Outcome.REJECTED
        if isinstance(error, StreamOverloadedError):
            return True
        return error.retryable and (self._idempotent or error.outcome is Outcome.REJECTED)

    def ended(self, error: StreamError, *, rest_not_applied: bool, refuses: bool = False) -> list[Settled]:
        """The call ended. Returns those whose callers are told; the others are sent again in the next call.

        Args:
            error: why it ended.
            rest_not_applied: the gateway said that what it has not answered was not applied.
            refuses: it ended because of one of its messages. If the gateway said so, that is the first that it has not
                answered; otherwise it may be any that was sent, so that none is sent again.
        """
        told: list[Settled] = []
        if refuses and rest_not_applied and self._sent:
            batch = self._sent.popleft()
            self.size -= batch.size
            told.append((batch, error))
        if not rest_not_applied and (refuses or not self._idempotent):
            told = [(batch, _unknown(error)) for batch in self._sent]
            self.size -= sum(batch.size for batch in self._sent)
            self._sent.clear()
        elif not self._idempotent:  # a producer's may have been applied by an earlier call
            for batch in self._sent:
                batch.was_sent = False
        self._waiting = deque((*self._again, *self._sent, *self._waiting))
        self._again.clear()
        self._sent.clear()
        self._window = SendWindow(0, 0)
        return told

    def give_up(self, error: StreamError) -> list[Settled]:
        """Nothing more is sent. Returns all batches with what to tell: unknown for those that were sent."""
        batches = (*self._again, *self._sent, *self._waiting)
        for each in (self._again, self._sent, self._waiting):
            each.clear()
        self.size = 0
        return [(batch, _unknown(error) if batch.was_sent else error) for batch in batches]


def _unknown(error: StreamError) -> AppendOutcomeUnknownError:
    return AppendOutcomeUnknownError(
        f"the gateway did not say whether the records were appended: {error}; a producer can send them again, and they "
        "are there once",
        stream=error.stream,
    )
