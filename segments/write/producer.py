"""Appends under a name, each record once: a record that is sent again is answered with where it stands already.

A producer numbers its records from 0, over all its lives. Its name has an epoch; opening it again fences the former
holder. What a stream remembers of its producers is in the stream itself, so it survives the death of its owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Literal

from bookkeeper.outcome import Outcome
from segments.arguments import check_gap_rule, check_sequence, check_whole
from segments.errors import (
    AppendOutcomeUnknownError,
    OwnershipLostError,
    ProducerFencedError,
    SequenceGapError,
    SequenceTooOldError,
    StreamConfigError,
    StreamError,
    StreamInvariantError,
)
from segments.names import check_short_name
from segments.position import Position
from segments.producers import NO_SEQUENCE, Judgement, SequenceVerdict
from segments.record import AppendResult, Record
from segments.write.writer import Writer
from segments.write.writer_front import ProducerFront

GapRule = Literal["strict", "monotonic"]
EPOCH_MAX: Final = 2**62
"""The highest epoch that a caller may ask for; every opening after that has one more."""


class Producer(ProducerFront):
    """An idempotent producer on an open writer."""

    def __init__(
        self,
        writer: Writer,
        name: str,
        epoch: int,
        last_sequence: int,
        *,
        strict: bool,
        on_closed: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(writer.name, name, epoch)
        self.writer = writer
        self._strict = strict
        self._next = last_sequence + 1
        self._on_closed = on_closed

    @classmethod
    async def open(
        cls,
        writer: Writer,
        name: str,
        *,
        epoch: int | None = None,
        gap: GapRule = "strict",
        on_closed: Callable[[], Awaitable[None]] | None = None,
    ) -> Producer:
        """Open the producer of this name in the next epoch, or in ``epoch``. When this returns the epoch is durable,
        and so is every record that a former holder of the name sent before.

        Raises:
            ProducerFencedError: ``epoch`` is lower than the one that the name has, or the name was opened again
            meanwhile. StreamNameError.
            StreamConfigError: ``epoch`` is no whole number, negative, or so high that later ones would not fit; or
            ``gap`` is no rule.
            And as ``Writer.append``.
        """
        check_short_name(name, "producer")
        check_gap_rule(gap)
        if epoch is not None:
            check_whole(epoch, "the epoch of a producer")
        if epoch is not None and not 0 <= epoch <= EPOCH_MAX:
            raise StreamConfigError(f"the epoch of producer {name} can be from 0 to {EPOCH_MAX}, not {epoch}")
        opening = writer.state.producers.open(name, writer.now_ms(), epoch)
        await writer.announce(name, opening.epoch, opening.last_sequence + 1)
        state = writer.state.producers.get(name)  # read behind the fence: what was on its way before is known by now
        producer = cls(
            writer,
            name,
            opening.epoch,
            opening.last_sequence if state is None else state.last_sequence,
            strict=gap == "strict",
            on_closed=on_closed,
        )
        if state is not None and state.epoch > opening.epoch:
            raise producer._fenced(state.epoch)
        return producer

    @property
    def last_seq(self) -> int | None:
        """The sequence number of its last durable record; None if none is known. A producer that starts again goes on
        behind it."""
        state = self.writer.state.producers.get(self.name)
        return None if state is None or state.last_sequence == NO_SEQUENCE else state.last_sequence

    @property
    def maybe_forgotten(self) -> bool:
        """The stream did not know the name when it was opened, and had forgotten producers: this may be one of them,
        and records that it sends again may be taken for new. So until its first record is durable, however often it is
        opened, and whoever owns the stream."""
        return self.writer.state.producers.is_doubtful(self.name)

    @property
    def next_seq(self) -> int:
        """The number that the next append without ``seq`` gets."""
        return self._next

    # -- appending --------------------------------------------------------------------------------------

    def append_nowait(
        self, record: Record | bytes, *, seq: int | None = None, txid: int | None = None
    ) -> asyncio.Future[AppendResult]:
        """Append without waiting; the future resolves like append(). Raises: as append, and StreamOverloadedError."""
        first = self._next if seq is None else seq
        judgement = self._judge(first, 1)
        if judgement.verdict is not SequenceVerdict.NEW:
            return self._answer_duplicate(judgement, first, 1)
        future = self.writer.appends.submit_one(record, txid, (self.name, self.epoch, first))
        return self._track(first, 1, future)

    def append_batch_nowait(
        self, records: Iterable[Record | bytes], *, seq: int | None = None
    ) -> asyncio.Future[AppendResult]:
        """The same without waiting. Raises: as append_nowait."""
        batch = list(records)
        first = self._next if seq is None else seq
        judgement = self._judge(first, len(batch))
        if judgement.verdict is not SequenceVerdict.NEW:
            return self._answer_duplicate(judgement, first, len(batch))
        future = self.writer.appends.submit_batch(batch, atomic=True, of=(self.name, self.epoch, first))
        return self._track(first, len(batch), future)

    async def outcome(self, seq: int) -> tuple[Outcome, AppendResult | None]:
        """What became of the record with this number, also if it was sent by a former owner that has died. Waits for a
        record that is under way. There is no result for an appended record whose position is not remembered.

        Raises:
            ProducerFencedError: the name was opened again. OwnershipLostError: another writer has the stream, so that
            this one cannot tell. StreamMetadataError: whether one has is not known now. StreamConfigError: no record
            can have this number.
        """
        check_sequence(self.writer.name, self.name, seq)
        is_owner = False
        while True:
            judgement = self.writer.state.producers.judge(self.name, self.epoch, seq, 1, strict=False)
            if judgement.verdict is SequenceVerdict.DUPLICATE:
                return Outcome.APPLIED, _duplicate(judgement)
            if judgement.verdict is SequenceVerdict.FENCED:
                raise self._fenced(judgement.epoch)
            if judgement.verdict is not SequenceVerdict.IN_FLIGHT:
                if judgement.last_is_there:
                    return Outcome.APPLIED, None
                if judgement.verdict is SequenceVerdict.TOO_OLD or self.maybe_forgotten:
                    return Outcome.UNKNOWN, None
                if is_owner:
                    return Outcome.REJECTED, None
                await self.writer.ensure_current()  # a new owner may have the record
                is_owner = True
                continue
            try:
                await self._answer_known(judgement, seq, 1)
            except StreamError as error:
                return error.outcome, None

    async def flush(self) -> Position | None:
        """Wait until everything that the writer was given is settled. Raises: as ``Writer.flush``."""
        return await self.writer.flush()

    async def _in_turn(self, submit: Callable[[], asyncio.Future[AppendResult]]) -> asyncio.Future[AppendResult]:
        return await self.writer.appends.in_turn(submit)

    async def room(self) -> None:
        """Wait until append_nowait() has room again."""
        await self.writer.room()

    async def close(self) -> None:
        """Flush. A writer that was opened for producers only is closed with the last of them. Idempotent."""
        on_closed, self._on_closed = self._on_closed, None
        try:
            await self.writer.flush()
        finally:
            if on_closed is not None:
                await on_closed()

    # -- inside -----------------------------------------------------------------------------------------

    def _judge(self, first: int, records: int) -> Judgement:
        check_sequence(self.writer.name, self.name, first, records)
        judgement = self.writer.state.producers.judge(self.name, self.epoch, first, records, strict=self._strict)
        match judgement.verdict:
            case SequenceVerdict.FENCED:
                raise self._fenced(judgement.epoch)
            case SequenceVerdict.TOO_OLD:
                raise self._too_old(judgement, first, first + records - 1)
            case SequenceVerdict.OVERLAP:
                raise SequenceGapError(
                    f"producer {self.name} of stream {self.writer.name} sent records {first} to {first + records - 1} "
                    "together: they overlap with records that are there, or on their way, and are not the same batch; "
                    f"nothing was appended, and record {judgement.expected} comes next",
                    expected=judgement.expected,
                    stream=self.writer.name,
                )
            case SequenceVerdict.GAP:
                raise SequenceGapError(
                    f"producer {self.name} of stream {self.writer.name} sent record {first}, and record "
                    f"{judgement.expected} comes next",
                    expected=judgement.expected,
                    stream=self.writer.name,
                )
        return judgement

    def _too_old(self, judgement: Judgement, first: int, last: int) -> SequenceTooOldError:
        name, stream = self.name, self.writer.name
        if judgement.last_is_there:
            return SequenceTooOldError(
                f"record {last} of producer {name} was appended to stream {stream}, and its position is not known any "
                f"more: it was removed since, or is too long ago; it is not appended again, and record {last + 1} "
                "comes next",
                stream=stream,
                outcome=Outcome.APPLIED if first == last else Outcome.UNKNOWN,
            )
        if judgement.expected:
            text = f"its last one is record {judgement.expected - 1}"
        else:
            text = "it has forgotten producers, and this may be one of them: open the producer again, which tells"
        return SequenceTooOldError(
            f"stream {stream} does not remember whether it has record {first} of producer {name}; {text}",
            stream=stream,
        )

    def _fenced(self, epoch: int) -> ProducerFencedError:
        return ProducerFencedError(
            f"producer {self.name} of stream {self.writer.name} was opened again, with epoch {epoch}; this one has "
            f"epoch {self.epoch}",
            epoch=epoch,
            stream=self.writer.name,
        )

    def _track(self, first: int, records: int, future: asyncio.Future[AppendResult]) -> asyncio.Future[AppendResult]:
        self.writer.state.producers.push(self.name, self.epoch, first, records, (future, first))
        self._next = max(self._next, first + records)
        return future

    def _answer_duplicate(self, judgement: Judgement, first: int, records: int) -> asyncio.Future[AppendResult]:
        """Records were appended a second time."""
        self.writer.metrics.duplicates.add()
        return self._answer_known(judgement, first, records)

    def _answer_known(self, judgement: Judgement, first: int, records: int) -> asyncio.Future[AppendResult]:
        """The answer for records that are there, or under way."""
        self._next = max(self._next, first + records)
        answer: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
        if judgement.verdict is SequenceVerdict.DUPLICATE:
            answer.set_result(_duplicate(judgement))
            return answer
        token = judgement.token
        if not isinstance(token, tuple):
            raise StreamInvariantError(f"record {first} of producer {self.name} is under way, and nobody waits for it")
        sent, at = token

        def settled(done: asyncio.Future[AppendResult]) -> None:
            if answer.done():
                return
            if done.cancelled():  # its caller has gone; the record has not
                self._answer_after_flush(answer, first, records)
            elif (error := done.exception()) is not None:
                answer.set_exception(_copy_for_caller(error))
            else:
                segment, entry, slot = done.result().position
                begin = Position(segment, entry, slot + first - at)
                last = Position(segment, entry, begin.slot + records - 1)
                number = done.result().seq_no
                seq_no = None if number is None else number + first - at
                answer.set_result(AppendResult(begin, last, seq_no, None, True))

        sent.add_done_callback(settled)
        return answer

    def _answer_after_flush(self, answer: asyncio.Future[AppendResult], first: int, records: int) -> None:
        """Answer when the records are settled, whose own future was cancelled."""

        async def ask() -> AppendResult:
            await self.writer.flush()
            judgement = self.writer.state.producers.judge(self.name, self.epoch, first, records)
            if judgement.verdict is SequenceVerdict.DUPLICATE:
                return _duplicate(judgement)
            raise AppendOutcomeUnknownError(f"what became of record {first} of producer {self.name} is not known")

        def asked(task: asyncio.Task[AppendResult]) -> None:
            if answer.done() or task.cancelled():
                return
            if (error := task.exception()) is not None:
                answer.set_exception(error)
            else:
                answer.set_result(task.result())

        self.writer.start(ask(), "ask for a record").add_done_callback(asked)


def _duplicate(judgement: Judgement) -> AppendResult:
    assert judgement.position is not None and judgement.last is not None
    return AppendResult(judgement.position, judgement.last, None, None, True)


def _copy_for_caller(error: BaseException) -> BaseException:
    """The error for another caller: one object raised in many places would collect all their tracebacks."""
    if not isinstance(error, OwnershipLostError):
        return error
    return OwnershipLostError(str(error), stream=error.stream, owner=error.owner, outcome=error.outcome)
