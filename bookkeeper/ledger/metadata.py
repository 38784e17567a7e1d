"""What the metadata store knows about a ledger, and the only legal ways it may change.

    create -> OPEN --begin_recovery--> IN_RECOVERY --close_recovered--> CLOSED
               |  `--change_ensemble (stays OPEN)                         ^
               `------------------------close-----------------------------'

    M2  CLOSED is final.
    M3  After CLOSED the last id, length, digest type, password, quorums and first ids of fragments stay; only bookies
        inside fragments are swapped (:meth:`LedgerMetadata.swap_bookie`, by repair).
    M4  First fragment at 0, first ids strictly rising, E distinct bookies each, last first id <= last id + 1.
    M7  Fields this program does not know survive every change (``unknown``).

Every method returns the next value. It is written by a compare-and-set on the version that was read (M1).
:mod:`bookkeeper.meta` encodes it.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.errors import (
    LedgerClosedError,
    LedgerFencedError,
    MetadataFormatError,
    check,
)
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger.digest import DigestType
from bookkeeper.ledger.quorum import QuorumSpec

CURRENT_FORMAT: Final = 3
"""The format version in which new ledgers are written."""


class LedgerState(IntEnum):
    """Numbers as in the stored format."""

    OPEN = 1
    IN_RECOVERY = 2
    CLOSED = 3


# As a global: to look a member up in its class costs ten times as much (CPython 3.11).
_CLOSED: Final = LedgerState.CLOSED


@dataclass(frozen=True, slots=True)
class Fragment:
    """A run of entries with the same ensemble: from ``first_entry`` to where the next fragment begins."""

    first_entry: EntryId
    ensemble: tuple[BookieId, ...]
    unknown: bytes = field(default=b"", repr=False)
    """The stored fields of this fragment that this program does not know, unchanged (M7)."""


def _no_custom() -> Mapping[str, bytes]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMetadata:
    """One ledger's metadata. Immutable; compare values with ``==``.

    Raises:
        MetadataFormatError: the fragments or the end make no sense (M4).
    """

    spec: QuorumSpec
    state: LedgerState
    fragments: tuple[Fragment, ...]
    length: int = 0
    """Payload bytes; 0 unless CLOSED."""
    last_entry: EntryId = NO_ENTRY
    """-1 unless CLOSED and not empty."""
    digest_type: DigestType | None = DigestType.CRC32C
    """None where the stored format had none (version 1, or no password)."""
    password: bytes | None = field(default=b"", repr=False)
    """None where the stored format had none; see :attr:`has_password`."""
    ctime_ms: int | None = None
    """When it was created, milliseconds since 1970, if its creator stored that."""
    custom: Mapping[str, bytes] = field(default_factory=_no_custom)
    creator_token: int = 0
    """A random number from the creation. After a lost reply it tells our own create from another client's (M5)."""
    format_version: int = CURRENT_FORMAT
    """An update keeps the version that the ledger has."""
    unknown: bytes = b""
    """The stored fields that this program does not know, unchanged (M7)."""
    unknown_of_custom: Mapping[str, bytes] = field(default_factory=_no_custom, repr=False)
    """The unknown fields of single entries of :attr:`custom`, by their key; only of entries that have any."""

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem:
            raise MetadataFormatError(f"the metadata of a ledger make no sense: {problem}")

    def _problem(self) -> str:
        firsts = [f.first_entry for f in self.fragments]
        if not firsts or firsts[0] != 0:
            begins = ", ".join(map(str, firsts)) or "no entry"
            return f"the first fragment must begin at entry 0, but fragments begin at {begins}"
        if len(firsts) > 1 and any(b <= a for a, b in itertools.pairwise(firsts)):
            return f"fragments must be in ascending order, but they begin at {', '.join(map(str, firsts))}"
        size = self.spec.ensemble_size
        for fragment in self.fragments:
            if len(fragment.ensemble) != size or len(set(fragment.ensemble)) != size:
                names = ", ".join(fragment.ensemble)
                return f"a fragment must have {counted(self.spec.ensemble_size, 'distinct bookie')}, but has {names}"
        if self.state is LedgerState.CLOSED:
            if self.last_entry < NO_ENTRY or self.length < 0:
                return f"the ledger is closed at entry {self.last_entry} with {self.length} bytes"
            if firsts[-1] > self.last_entry + 1:
                return f"the ledger is closed at entry {self.last_entry}, before its last fragment at {firsts[-1]}"
        elif self.last_entry != NO_ENTRY or self.length != 0:
            return f"the ledger is {self.state.name}, but ends at entry {self.last_entry} with {self.length} bytes"
        return ""

    @classmethod
    def create(
        cls,
        spec: QuorumSpec,
        ensemble: Sequence[BookieId],
        *,
        digest_type: DigestType = DigestType.CRC32C,
        password: bytes = b"",
        custom: Mapping[str, bytes] | None = None,
        creator_token: int = 0,
        ctime_ms: int | None = None,
    ) -> LedgerMetadata:
        """A new ledger: OPEN, one fragment at 0."""
        return cls(
            spec=spec,
            state=LedgerState.OPEN,
            fragments=(Fragment(EntryId(0), tuple(ensemble)),),
            digest_type=digest_type,
            password=password,
            custom=MappingProxyType(dict(custom or {})),
            creator_token=creator_token,
            ctime_ms=ctime_ms,
        )

    # -- what it says -----------------------------------------------------------------------------------

    @property
    def has_password(self) -> bool:
        """Whether there is a password to compare with; the empty one counts."""
        return self.password is not None

    @property
    def is_closed(self) -> bool:
        return self.state is _CLOSED

    @property
    def last_fragment(self) -> Fragment:
        return self.fragments[-1]

    @property
    def bookies(self) -> frozenset[BookieId]:
        """Every bookie of every fragment."""
        return frozenset(b for f in self.fragments for b in f.ensemble)

    def fragment_of(self, entry_id: int) -> Fragment:
        """The fragment that holds an entry: the one with the greatest first id not above it (Q1)."""
        fragments = self.fragments
        if len(fragments) == 1:
            return fragments[0]
        return fragments[bisect_right(fragments, entry_id, key=lambda f: f.first_entry) - 1]

    def fragment_end(self, index: int) -> EntryId | None:
        """The last entry of fragment ``index``; None for the last fragment of a ledger that is not closed."""
        if index + 1 < len(self.fragments):
            return EntryId(self.fragments[index + 1].first_entry - 1)
        return self.last_entry if self.is_closed else None

    def write_set(self, entry_id: int) -> tuple[BookieId, ...]:
        """The bookies that store an entry, in order."""
        return self.spec.write_set(entry_id, self.fragment_of(entry_id).ensemble)

    # -- the legal changes ------------------------------------------------------------------------------

    def change_ensemble(self, first_entry: int, ensemble: Sequence[BookieId]) -> LedgerMetadata:
        """Entries from ``first_entry`` on go to ``ensemble`` (W5). Replaces the last fragment if that begins there.

        Raises:
            LedgerFencedError, LedgerClosedError: the ledger is not OPEN.
        """
        self._require_open()
        return replace(self, fragments=with_ensemble(self.fragments, first_entry, ensemble))

    def begin_recovery(self) -> LedgerMetadata:
        """OPEN -> IN_RECOVERY. If a recovery is under way this one joins it (R1), and the value stays as it is.

        Raises:
            LedgerClosedError: CLOSED is final (M2).
        """
        if self.is_closed:
            raise LedgerClosedError(f"the ledger is closed at entry {self.last_entry}: there is nothing to recover")
        return replace(self, state=LedgerState.IN_RECOVERY)

    def close(self, last_entry: int, length: int) -> LedgerMetadata:
        """Close the ledger for its writer, only from OPEN (R13). If it is closed with this very end the value stays.

        Raises:
            LedgerFencedError: a recovery is under way, and decides the end.
            LedgerClosedError: the ledger is closed with another end.
        """
        if self.is_closed and (self.last_entry, self.length) == (last_entry, length):
            return self
        self._require_open()
        return replace(self, state=LedgerState.CLOSED, last_entry=EntryId(last_entry), length=length)

    def close_recovered(
        self, last_entry: int, length: int, fragments: Sequence[Fragment] | None = None
    ) -> LedgerMetadata:
        """Close the ledger for a recovery, only from IN_RECOVERY (R10), with its private ensemble changes (R9).

        Raises:
            LedgerClosedError: another recovery closed it first; adopt its end.
        """
        if self.is_closed:
            raise LedgerClosedError(f"the ledger is closed at entry {self.last_entry} already")
        check(self.state is LedgerState.IN_RECOVERY, "R10", f"recovery closes a ledger that is {self.state.name}")
        new = self.fragments if fragments is None else tuple(fragments)
        shared = self.fragments[:-1]
        check(new[: len(shared)] == shared, "R4", f"recovery changes earlier fragments: {shared} to {new}")
        return replace(self, state=LedgerState.CLOSED, last_entry=EntryId(last_entry), length=length, fragments=new)

    def swap_bookie(self, first_entry: int, old: BookieId, new: BookieId) -> LedgerMetadata:
        """Repair: ``new`` takes ``old``'s place in the fragment that begins at ``first_entry``.

        Refused for the last fragment of a ledger that is not closed: entries may still be added to it (A3).

        Raises:
            MetadataFormatError: no such fragment, ``old`` not in it, or ``new`` in it already.
            LedgerFencedError: the last fragment, and the ledger is not closed.
        """
        index = next((i for i, f in enumerate(self.fragments) if f.first_entry == first_entry), None)
        if index is None or old not in self.fragments[index].ensemble:
            raise MetadataFormatError(f"no fragment that begins at entry {first_entry} has bookie {old}")
        if index == len(self.fragments) - 1 and not self.is_closed:
            raise LedgerFencedError(
                f"the fragment that begins at entry {first_entry} may still grow: the ledger is {self.state.name}"
            )
        ensemble = tuple(new if b == old else b for b in self.fragments[index].ensemble)
        fragments = list(self.fragments)
        fragments[index] = replace(fragments[index], ensemble=ensemble)
        return replace(self, fragments=tuple(fragments))

    def _require_open(self) -> None:
        if self.is_closed:
            raise LedgerClosedError(f"the ledger is closed at entry {self.last_entry} with {self.length} bytes")
        if self.state is not LedgerState.OPEN:
            raise LedgerFencedError("the ledger is being recovered by another client")


def with_ensemble(
    fragments: Sequence[Fragment], first_entry: int, ensemble: Sequence[BookieId]
) -> tuple[Fragment, ...]:
    """``fragments`` with ``ensemble`` from ``first_entry`` on: appended, or in place of the last one (W5)."""
    last = fragments[-1]
    begins = last.first_entry
    check(first_entry >= begins, "W5", f"a fragment at {first_entry} before the last one, which begins at {begins}")
    if first_entry == begins:
        return (*fragments[:-1], replace(last, ensemble=tuple(ensemble)))
    return (*fragments, Fragment(EntryId(first_entry), tuple(ensemble)))


def broken_rule(old: LedgerMetadata, new: LedgerMetadata) -> str:
    """Which rule forbids that ``new`` follows ``old`` in the store; "" if none does. For tests and simulations."""
    if new.state < old.state:
        return f"M2: {old.state.name} -> {new.state.name}"
    if (new.spec, new.digest_type, new.password) != (old.spec, old.digest_type, old.password):
        return "Q5/M3: quorums, digest type or password changed"
    if old.is_closed and (old.last_entry, old.length) != (new.last_entry, new.length):
        return f"M3: end {old.last_entry} ({old.length} bytes) became {new.last_entry} ({new.length} bytes)"
    firsts = [[f.first_entry for f in m.fragments] for m in (old, new)]
    if old.is_closed and firsts[0] != firsts[1]:
        return f"M3: first ids {firsts[0]} became {firsts[1]}"
    if firsts[0] != firsts[1][: len(firsts[0])]:
        return f"W5: first ids {firsts[0]} became {firsts[1]}"
    return ""
