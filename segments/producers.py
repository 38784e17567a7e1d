"""What a stream remembers of its idempotent producers, and its answer to records that may be there already (pure).

    open(name)              a new epoch; the former holder of the name is fenced
    judge(...)              is this record new, there already, on its way, or refused?
    push, confirm, settle   a batch is sent; it is durable; it will never be
    apply                   a batch that was found in the stream
    encode, decode          a snapshot of all producers, which the stream's writer puts into the stream

A producer numbers its records from 0. Sequence numbers go on over epochs. What was forgotten is said to be too old to
tell; it is never guessed. A name that may be that of a forgotten producer is in doubt from its opening until its first
record is durable, over openings, snapshots and owners: nobody knows which numbers it has used before.
"""

from __future__ import annotations

import struct
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple

from segments.config import ProducerPolicy
from segments.entries.layout import BODY_MAX
from segments.entries.sections import EntryBatch
from segments.errors import EntryCorruptError, ProducerFencedError, UnsupportedStreamFormatError
from segments.position import Position

SNAPSHOT_VERSION: Final = 2
NOTHING_FORGOTTEN: Final = 1
"""The format of a snapshot of a stream that has forgotten no producer."""
NO_SEQUENCE: Final = -1
EPOCHS_UNKNOWN: Final = 1 << 32
"""Above every epoch that openings have given by counting. It stands for the greatest epoch of the forgotten producers
where nobody has noted that."""

_HEAD: Final = struct.Struct("<HHIQ")
"""Of a snapshot: version, nothing, producers, forgotten producers."""
_FORGOTTEN: Final = struct.Struct("<q")
"""In format 2: the greatest epoch of the forgotten producers."""
_PRODUCER: Final = struct.Struct("<HHqqq")
"""Bytes of the name, remembered batches, epoch, last sequence number, time of the last record."""
_FLAGS: Final = struct.Struct("<H")
"""In format 2, of each producer."""
_DOUBTFUL: Final = 1
_RECENT: Final = struct.Struct("<qIIqq")
"""First sequence number, records, slot, segment, entry."""


class SequenceVerdict(Enum):
    """What is to be done with records of a producer."""

    NEW = "new"
    DUPLICATE = "duplicate"
    """They are in the stream, at ``position``."""
    IN_FLIGHT = "in flight"
    """They were sent before, and are not durable yet: wait for ``token``."""
    TOO_OLD = "too old to tell"
    """Nobody remembers where they are, or whether they are there. If ``last_is_there``, the last one is."""
    GAP = "gap"
    """Records before them are missing: ``expected`` comes next."""
    OVERLAP = "overlap"
    """Some are there already, or on their way, and of the others that is not known: ``expected`` comes next."""
    FENCED = "fenced"
    """The name was opened again, with a higher ``epoch``."""


class Judgement(NamedTuple):
    """A verdict, and what belongs to it."""

    verdict: SequenceVerdict
    position: Position | None = None
    """Of the first record, if it is there."""
    last: Position | None = None
    """Of the last record, if it is there."""
    token: object = None
    epoch: int = 0
    """That the producer has now."""
    expected: int = 0
    last_is_there: bool = False
    """Where they are is not remembered, but the last record is the producer's last durable one."""


class ProducerOpening(NamedTuple):
    """What a producer learns when it is opened."""

    epoch: int
    last_sequence: int
    """Of its last durable record; NO_SEQUENCE if none is remembered."""
    maybe_forgotten: bool
    """The name was not known when it was opened first, and producers had been forgotten: it may be one of them."""


class _Recent(NamedTuple):
    first: int
    records: int
    position: Position
    """Of the first; the others follow slot by slot."""

    @property
    def end(self) -> int:
        return self.first + self.records

    def at(self, sequence: int) -> Position:
        segment, entry, slot = self.position
        return Position(segment, entry, slot + sequence - self.first)


class _PushedRun(NamedTuple):
    first: int
    records: int
    token: object


@dataclass(slots=True)
class ProducerState:
    """One producer."""

    name: str
    epoch: int = 0
    last_sequence: int = NO_SEQUENCE
    """Of its last durable record."""
    last_ms: int = 0
    """When it was appended, or the producer opened."""
    recent: deque[_Recent] = field(default_factory=deque)
    pushed: deque[_PushedRun] = field(default_factory=deque)
    doubtful: bool = False
    """It may be a forgotten producer of this name: numbers may be used of which nobody knows. Then no record of it is
    known."""

    @property
    def next_sequence(self) -> int:
        """The number behind its last record that was sent."""
        return self.pushed[-1].first + self.pushed[-1].records if self.pushed else self.last_sequence + 1

    def find(self, sequence: int) -> Position | None:
        """Where the record stands, if that is remembered."""
        for each in reversed(self.recent):
            if each.first <= sequence < each.end:
                return each.at(sequence)
        return None

    def remember(self, first: int, records: int, position: Position, most: int) -> None:
        """Note where durable records stand."""
        last = self.recent[-1] if self.recent else None
        if last is not None and last.end == first and last.at(first) == position:
            self.recent[-1] = _Recent(last.first, last.records + records, last.position)
        else:
            self.recent.append(_Recent(first, records, position))
        while len(self.recent) > most:
            self.recent.popleft()
        self.note_last(first + records - 1)

    def note_last(self, sequence: int) -> None:
        """Note the number of a durable record, or of the one before that which comes next."""
        self.last_sequence = max(self.last_sequence, sequence)
        self.doubtful = self.doubtful and self.last_sequence == NO_SEQUENCE

    def overlaps(self, first: int, last: int) -> bool:
        """Whether any of these records is remembered."""
        return any(each.first <= last and first < each.end for each in self.recent)

    @property
    def size(self) -> int:
        """The bytes of it in a snapshot, at most."""
        return _PRODUCER.size + _FLAGS.size + len(self.name.encode()) + _RECENT.size * len(self.recent)


class ProducerTable:
    """All producers of a stream. Times are milliseconds since 1970."""

    def __init__(self, policy: ProducerPolicy | None = None) -> None:
        self.policy = policy or ProducerPolicy()
        self.forgotten = 0
        """How many producers were forgotten, ever."""
        self.forgotten_epoch = 0
        """The greatest epoch of them. A name that is not known is opened above it: it may have had this epoch."""
        self._states: OrderedDict[str, ProducerState] = OrderedDict()
        """The one that was idle longest first."""

    def __len__(self) -> int:
        return len(self._states)

    def get(self, name: str) -> ProducerState | None:
        """The producer of this name, if it is known."""
        return self._states.get(name)

    @property
    def states(self) -> Iterable[ProducerState]:
        """All producers, the one that was idle longest first."""
        return self._states.values()

    # -- asking ----------------------------------------------------------------------------------------

    def open(self, name: str, now_ms: int, epoch: int | None = None) -> ProducerOpening:
        """Open a producer in a new epoch, or in ``epoch``; every lower epoch is fenced from now on.

        The epoch is durable with the first record in it, or the next snapshot.

        Raises:
            ProducerFencedError: ``epoch`` is lower than the one that the name has.
        """
        state = self._states.get(name)
        former = self.forgotten_epoch if state is None else state.epoch
        if state is None:
            state = self._make(name)
        taken = former + 1 if epoch is None else epoch
        if taken < state.epoch:
            raise ProducerFencedError(f"producer {name} was opened with epoch {state.epoch}", epoch=state.epoch)
        state.epoch = taken
        self._touch(state, now_ms)
        self._bound(now_ms)
        return ProducerOpening(taken, state.last_sequence, state.doubtful)

    def is_doubtful(self, name: str) -> bool:
        """Whether a producer of this name may have been forgotten, so that nobody knows which numbers it has used."""
        state = self._states.get(name)
        return self.forgotten > 0 if state is None else state.doubtful

    def judge(self, name: str, epoch: int, first: int, records: int, *, strict: bool = True) -> Judgement:
        """Tell what is to be done with records ``first`` to ``first + records - 1``. Changes nothing.

        ``strict``: a number that is left out is a gap; otherwise numbers need only rise. The first record of a producer
        that is in doubt may have any number.
        """
        state = self._states.get(name)
        if state is None:
            if self.forgotten:
                return Judgement(SequenceVerdict.TOO_OLD)
            state = ProducerState(name, epoch)
        if epoch < state.epoch:
            return Judgement(SequenceVerdict.FENCED, epoch=state.epoch)
        last, end, expected = first + records - 1, state.next_sequence, state.last_sequence + 1
        if first >= end:
            if strict and first > end and (state.pushed or not state.doubtful):
                return Judgement(SequenceVerdict.GAP, epoch=state.epoch, expected=end)
            return Judgement(SequenceVerdict.NEW, epoch=state.epoch, expected=end)
        if last < expected:
            begin, finish = state.find(first), state.find(last)
            if begin is None or finish is None:
                if state.overlaps(first, last):
                    return Judgement(SequenceVerdict.OVERLAP, epoch=state.epoch, expected=end)
                is_last = last == state.last_sequence
                return Judgement(SequenceVerdict.TOO_OLD, epoch=state.epoch, expected=expected, last_is_there=is_last)
            return Judgement(SequenceVerdict.DUPLICATE, begin, finish, epoch=state.epoch, expected=expected)
        for each in state.pushed:
            if each.first <= first and last < each.first + each.records:
                return Judgement(SequenceVerdict.IN_FLIGHT, token=each.token, epoch=state.epoch, expected=end)
        return Judgement(SequenceVerdict.OVERLAP, epoch=state.epoch, expected=end if first >= expected else expected)

    # -- telling ---------------------------------------------------------------------------------------

    def push(self, name: str, epoch: int, first: int, records: int, token: object = None) -> None:
        """Note that new records were sent. ``token`` is given to a caller that sends them again."""
        state = self._states.get(name)
        if state is None:
            state = self._states[name] = ProducerState(name)
        state.epoch = max(state.epoch, epoch)
        state.pushed.append(_PushedRun(first, records, token))

    def confirm(self, name: str, first: int, position: Position, now_ms: int) -> None:
        """Note that the records pushed with this first number are durable, the first of them at ``position``.

        Batches of a producer are confirmed in the order in which they were pushed.
        """
        state = self._states[name]
        pushed = state.pushed.popleft()
        assert pushed.first == first, f"{name} pushed {pushed.first} before {first}"
        state.remember(first, pushed.records, position, self.policy.positions_each)
        self._touch(state, now_ms)

    def settle(self, name: str) -> None:
        """Note that what was pushed and not confirmed will never be in the stream: the producer may send it again."""
        if (state := self._states.get(name)) is not None:
            state.pushed.clear()

    def apply(self, batch: EntryBatch, position: Position, append_ms: int) -> None:
        """Note a batch that was found in the stream, the first of its records at ``position``."""
        if batch.producer is None:
            return
        state = self._states.get(batch.producer)
        if state is None:
            state = self._make(batch.producer)
        state.epoch = max(state.epoch, batch.epoch)
        if not batch.records:  # it says the epoch, and which number comes next
            state.note_last(batch.last_sequence)
        elif batch.last_sequence > state.last_sequence:
            state.remember(batch.first_sequence, batch.records, position, self.policy.positions_each)
        self._touch(state, append_ms)
        self._bound(append_ms)

    def apply_entry(self, batches: Iterable[EntryBatch], segment: int, entry: int, append_ms: int) -> None:
        """``apply`` for all batches of an entry."""
        slot = 0
        for batch in batches:
            self.apply(batch, Position(segment, entry, slot), append_ms)
            slot += batch.records

    def forget_before(self, start: Position) -> None:
        """Forget positions before the stream's beginning: those records are too old to tell."""
        for state in self._states.values():
            while state.recent and state.recent[0].position < start:
                state.recent.popleft()

    def forget_unknown(self) -> None:
        """Note that producers were forgotten of whom nothing is known, not even how many they were."""
        self.forgotten += 1
        self.forgotten_epoch = max(self.forgotten_epoch, EPOCHS_UNKNOWN)

    def _make(self, name: str) -> ProducerState:
        """A producer of a name that is not known."""
        state = self._states[name] = ProducerState(name, doubtful=self.forgotten > 0)
        return state

    def _touch(self, state: ProducerState, now_ms: int) -> None:
        state.last_ms = max(state.last_ms, now_ms)
        self._states.move_to_end(state.name)

    def _bound(self, now_ms: int) -> None:
        if len(self._states) > self.policy.max_producers:
            self._forget(len(self._states) - self.policy.max_producers)

    def _forget(self, count: int) -> int:
        """Forget the ``count`` producers that were idle longest and have nothing on its way. Returns their bytes."""
        idle = list(islice((state for state in self._states.values() if not state.pushed), count))
        for state in idle:
            del self._states[state.name]
            self.forgotten_epoch = max(self.forgotten_epoch, state.epoch)
        self.forgotten += len(idle)
        return sum(state.size for state in idle)

    # -- snapshots -------------------------------------------------------------------------------------

    def encode(self, limit: int = BODY_MAX) -> bytes:
        """A snapshot of at most ``limit`` bytes.

        Where it would be larger, positions are forgotten first, and producers if that is not enough; the ones that
        were idle longest first, and here as in the snapshot. Records that are on their way are not in it.
        """
        size = _HEAD.size + _FORGOTTEN.size + sum(state.size for state in self._states.values())
        for state in self._states.values():
            if size <= limit:
                break
            size -= _RECENT.size * len(state.recent)
            state.recent.clear()
        while size > limit and (freed := self._forget(1)):
            size -= freed
        known = list(self._states.values())
        version = SNAPSHOT_VERSION if self.forgotten else NOTHING_FORGOTTEN
        parts = [_HEAD.pack(version, 0, len(known), self.forgotten)]
        if version > NOTHING_FORGOTTEN:
            parts.append(_FORGOTTEN.pack(self.forgotten_epoch))
        for state in known:
            name = state.name.encode()
            parts.append(_PRODUCER.pack(len(name), len(state.recent), state.epoch, state.last_sequence, state.last_ms))
            if version > NOTHING_FORGOTTEN:
                parts.append(_FLAGS.pack(_DOUBTFUL if state.doubtful else 0))
            parts.append(name)
            parts += (_RECENT.pack(r.first, r.records, r.position.slot, *r.position[:2]) for r in state.recent)
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes, policy: ProducerPolicy | None = None) -> ProducerTable:
        """The table of which this is a snapshot.

        Raises:
            UnsupportedStreamFormatError: a newer format. EntryCorruptError: no snapshot.
        """
        table = cls(policy)
        try:
            version, _, count, table.forgotten = _HEAD.unpack_from(data)
            if version > SNAPSHOT_VERSION:
                raise UnsupportedStreamFormatError(
                    f"a snapshot of producers has format {version}, and this program reads up to {SNAPSHOT_VERSION}"
                )
            at = _HEAD.size
            if version > NOTHING_FORGOTTEN:
                (table.forgotten_epoch,) = _FORGOTTEN.unpack_from(data, at)
                at += _FORGOTTEN.size
            elif table.forgotten:  # an earlier version noted neither this, nor who is in doubt
                table.forgotten_epoch = EPOCHS_UNKNOWN
            for _ in range(count):
                size, recents, epoch, sequence, last_ms = _PRODUCER.unpack_from(data, at)
                at += _PRODUCER.size
                doubtful = table.forgotten > 0 and sequence == NO_SEQUENCE
                if version > NOTHING_FORGOTTEN:
                    doubtful = bool(_FLAGS.unpack_from(data, at)[0] & _DOUBTFUL)
                    at += _FLAGS.size
                name = data[at : at + size].decode()
                at += size
                state = table._states[name] = ProducerState(name, epoch, sequence, last_ms, doubtful=doubtful)
                for _ in range(recents):
                    first, records, slot, segment, entry = _RECENT.unpack_from(data, at)
                    state.recent.append(_Recent(first, records, Position(segment, entry, slot)))
                    at += _RECENT.size
        except (struct.error, UnicodeDecodeError) as error:
            raise EntryCorruptError(f"a snapshot of producers is damaged: {error}") from error
        if at != len(data):
            raise EntryCorruptError(f"a snapshot of producers has {len(data)} bytes, and {at} are announced")
        return table
