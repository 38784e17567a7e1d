"""A cursor's node: who may move it, what is done, and what was (pure).

Each method returns the next record, for one compare-and-set:

    claim(owner)              any owner --> the next epoch; former owners can change nothing more
    release()                 the owner --> nobody
    acknowledge(changes)      marks records done; never moves back
    reset(mark)               begins anew at a position, also an earlier one
    restore(version)          becomes what an earlier version was
    with_properties(changes)  sets and removes properties

A change keeps what was before it in the history. The history has a bound, and so have the acknowledged ranges and the
properties. Of the history the versions that lie closest together go first. Ranges and properties are refused instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from segments.cursors.acked_ranges import NO_RANGES, AckedRanges, FrozenRanges, Mark
from segments.errors import CursorFullError, CursorVersionError, StreamConfigError

RANGES_MAX: Final = 10_000
"""How many ranges above its mark a cursor may have."""

UNSAVED_PER_RANGE: Final = 10
"""So many acknowledgements may wait to be stored for each range that a cursor may have; more are refused."""

HISTORY_MAX: Final = 40
"""How many earlier versions a cursor remembers."""

HISTORY_RANGES_MAX: Final = 10_000
"""How many ranges these versions may have together."""

HISTORY_EVERY_MS: Final = 1_000
"""Acknowledgements that follow each other faster than this share one version of the history."""

PROPERTIES_BYTES_MAX: Final = 64 * 1024

UNCLAIMED: Final = "a client of a gateway"
"""The owner's name in cursors that were moved through gateways without a claim; each call takes them over from the one
before. Nobody holds such a cursor."""


BY_PROPERTY: Final = "bookkeeper.by"
"""The property in which a node keeps ``CursorState.by``: programs that know no such field carry it on."""


class CursorChange(Enum):
    """What made a version of a cursor."""

    CREATED = 0
    ACKNOWLEDGED = 1
    RESET = 2
    RESTORED = 3


@dataclass(frozen=True, slots=True)
class CursorVersion:
    """A cursor at one time."""

    number: int
    """Counts the changes of the cursor's position, from 1."""
    changed_ms: int
    """When this version was made, by the clock of who made it; milliseconds since 1970."""
    change: CursorChange
    mark: Mark
    ranges: FrozenRanges = NO_RANGES


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Records ``first .. end - 1`` are done; ``first`` None: all before ``end``."""

    mark: Mark
    """The record behind the last one that is done, and the position behind that."""
    first: int | None = None


@dataclass(frozen=True, slots=True)
class CursorState:
    """The node. Its changes raise what they say and change nothing then."""

    version: CursorVersion
    epoch: int = 0
    """Counts the owners."""
    owner: str = ""
    nonce: str = ""
    """What tells apart two claims of one epoch."""
    properties: Mapping[str, str] = field(default_factory=dict)
    history: tuple[CursorVersion, ...] = ()
    """Earlier versions, oldest first."""
    by: str = ""
    """Whose it is: the name of who had a gateway make it. Empty: of nobody, or nobody was asked who he is."""

    @classmethod
    def create(cls, mark: Mark, now_ms: int, nonce: str = "", by: str = "") -> CursorState:
        """A cursor that has done nothing since ``mark``. ``nonce`` tells its maker apart, ``by`` says whose it is."""
        return cls(CursorVersion(1, now_ms, CursorChange.CREATED, mark), nonce=nonce, by=by)

    @property
    def mark(self) -> Mark:
        return self.version.mark

    @property
    def ranges(self) -> FrozenRanges:
        return self.version.ranges

    @property
    def is_free(self) -> bool:
        """Nobody holds the cursor, as far as its node says."""
        return self.owner in ("", UNCLAIMED)

    @property
    def is_repositioned(self) -> bool:
        """The cursor's last change was a reset: it may need records that it did not need before."""
        return self.version.change is not CursorChange.ACKNOWLEDGED

    def claim(self, owner: str, nonce: str) -> CursorState:
        """The same cursor in the next epoch, owned by ``owner``."""
        return replace(self, epoch=self.epoch + 1, owner=owner, nonce=nonce)

    def release(self) -> CursorState:
        """Say that nobody uses the cursor now. The epoch stays used."""
        return replace(self, owner="")

    def acknowledge(
        self, changes: Sequence[Acknowledgement], now_ms: int, *, limit: int = RANGES_MAX
    ) -> tuple[CursorState, list[bool]]:
        """Mark records done. Returns also which of the changes were made; the others would exceed ``limit``."""
        acked = AckedRanges(self.mark, self.ranges, limit=limit)
        made = [
            acked.add(acked.mark.seq_no if each.first is None else each.first, each.mark.seq_no, each.mark.position)
            for each in changes
        ]
        if not acked.changed:
            return self, made
        return self._changed(CursorChange.ACKNOWLEDGED, acked.mark, acked.freeze(), now_ms), made

    def reset(self, mark: Mark, now_ms: int) -> CursorState:
        """Begin anew at ``mark``; nothing behind it is done."""
        return self._changed(CursorChange.RESET, mark, NO_RANGES, now_ms)

    def restore(self, number: int, now_ms: int) -> CursorState:
        """Become what version ``number`` was.

        Raises:
            CursorVersionError: the history does not have this version (any more).
        """
        if number == self.version.number:
            return self
        old = next((each for each in self.history if each.number == number), None)
        if old is None:
            kept = ", ".join(str(each.number) for each in (*self.history, self.version))
            raise CursorVersionError(f"version {number} of the cursor is not in its history; there are: {kept}")
        return self._changed(CursorChange.RESTORED, old.mark, old.ranges, now_ms)

    def with_properties(self, changes: Mapping[str, str | None]) -> CursorState:
        """Set properties; None removes one.

        Raises:
            CursorFullError: they are more than ``PROPERTIES_BYTES_MAX`` bytes together. StreamConfigError: one of them
            says whose the cursor is.
        """
        if BY_PROPERTY in changes:
            raise StreamConfigError(
                f"the property {BY_PROPERTY} says whose the cursor is, and is not changed: choose another name"
            )
        merged = {k: v for k, v in (dict(self.properties) | dict(changes)).items() if v is not None}
        size = sum(len(k.encode()) + len(v.encode()) for k, v in merged.items())
        if size > PROPERTIES_BYTES_MAX:
            raise CursorFullError(
                f"the properties of a cursor may have {PROPERTIES_BYTES_MAX} bytes together, and these have {size}"
            )
        return replace(self, properties=merged)

    def _changed(self, change: CursorChange, mark: Mark, ranges: FrozenRanges, now_ms: int) -> CursorState:
        before, history = self.version, self.history
        steady = change is before.change is CursorChange.ACKNOWLEDGED
        if not (steady and history and before.changed_ms - history[-1].changed_ms < HISTORY_EVERY_MS):
            history = thinned((*history, before), now_ms)
        return replace(self, version=CursorVersion(before.number + 1, now_ms, change, mark, ranges), history=history)


def thinned(history: tuple[CursorVersion, ...], now_ms: int) -> tuple[CursorVersion, ...]:
    """The history within its bounds. The oldest and the newest version stay as long as anything does; the version that
    goes first is that whose neighbours lie close together, for its age."""
    kept = list(history)
    ranges = sum(len(each.ranges) for each in kept)
    while len(kept) > 1 and (len(kept) > HISTORY_MAX or ranges > HISTORY_RANGES_MAX):
        inner = range(1, len(kept) - 1) or range(1)
        victim = min(inner, key=lambda i: _spacing(kept, i, now_ms))
        ranges -= len(kept.pop(victim).ranges)
    return tuple(kept)


def _spacing(kept: Sequence[CursorVersion], i: int, now_ms: int) -> float:
    before, after = kept[max(i - 1, 0)], kept[min(i + 1, len(kept) - 1)]
    return (after.changed_ms - before.changed_ms) / max(1, now_ms - kept[i].changed_ms)
