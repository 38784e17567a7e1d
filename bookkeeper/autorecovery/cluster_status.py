"""One look at a cluster: its bookies, its ledgers, what is lost, short or stuck, and what autorecovery does.

What is lost or short is judged by metadata and registrations: nobody is asked for entries. ``bk ledger explain`` asks.
Each registered bookie is asked how full it is; one that does not answer is named, and the cluster is not well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from bookkeeper.access import Mode
from bookkeeper.autorecovery.status import AutorecoveryStatus, status_of
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.operators import Operator
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata, LedgerState
from bookkeeper.meta.access_coverage import not_following, policy_mode

LEDGERS_EVERY_S: Final = 30.0
"""The metadata of all ledgers are read again after so long, at the earliest."""
ABSENT: Final = "absent"
"""The state of a bookie that is known and not registered."""
SHARE: Final = 10
"""They are not read for more than one part of so many of the time, as long as bookies neither come nor go."""


class LedgerHealth(StrEnum):
    """What metadata and registrations say of a ledger."""

    WELL = "well"
    """Every bookie that it names is registered."""
    SHORT = "short"
    """It names a bookie that is not registered; every entry has another one that is."""
    LOST = "lost"
    """Of some of its entries no bookie is registered: they cannot be read now."""


def judge(metadata: LedgerMetadata, up: AbstractSet[BookieId]) -> LedgerHealth:
    """Judge one ledger by the bookies that are registered. Pure.

    Of the last fragment of a ledger that is not closed every write set counts, as if each had an entry.
    """
    if metadata.bookies <= up:
        return LedgerHealth.WELL
    spec, short = metadata.spec, False
    for index, fragment in enumerate(metadata.fragments):
        end = metadata.fragment_end(index)
        for entry in spec.one_turn(fragment.first_entry, None if end is None else end + 1):
            write_set = set(spec.write_set(entry, fragment.ensemble))
            if not write_set & up:
                return LedgerHealth.LOST
            short = short or not write_set <= up
    last_names_absent = not metadata.is_closed and not set(metadata.last_fragment.ensemble) <= up
    return LedgerHealth.SHORT if short or last_names_absent else LedgerHealth.WELL


@dataclass(frozen=True, slots=True)
class BookieStatus:
    """One bookie."""

    bookie: BookieId
    state: str
    """``writable``, ``read-only`` or ``absent`` (known, but not registered)."""
    total: int | None = None
    """The size of its ledger directories in bytes; None: it does not say."""
    free: int | None = None
    problem: str = ""
    """Why it does not say how full it is."""
    answered_s: float | None = None
    """Seconds that its answer took; None: it was not asked, or did not answer."""


@dataclass(slots=True)
class LedgersStatus:
    """All ledgers, by their metadata."""

    count: int = 0
    by_state: dict[LedgerState, int] = field(default_factory=dict)
    size: int = 0
    """Payload bytes of the closed ledgers."""
    short: set[LedgerId] = field(default_factory=set)
    lost: set[LedgerId] = field(default_factory=set)
    unreadable: dict[LedgerId, str] = field(default_factory=dict)
    """Ledgers whose metadata cannot be read, with the reasons. They count as lost until somebody knows better."""

    def add(
        self, ledger_id: LedgerId, found: LedgerMetadata | BookKeeperError, up: AbstractSet[BookieId]
    ) -> LedgerHealth | None:
        """Count one more ledger. Returns what was judged; None: its metadata cannot be read."""
        self.count += 1
        if isinstance(found, BookKeeperError):
            self.unreadable[ledger_id] = in_words(found)
            return None
        self.by_state[found.state] = self.by_state.get(found.state, 0) + 1
        self.size += found.length
        health = judge(found, up)
        if health is LedgerHealth.SHORT:
            self.short.add(ledger_id)
        elif health is LedgerHealth.LOST:
            self.lost.add(ledger_id)
        return health


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A cluster at one moment."""

    bookies: tuple[BookieStatus, ...]
    ledgers: LedgersStatus
    autorecovery: AutorecoveryStatus
    access: Mode | None = Mode.OFF
    """The mode of the access policy; None: it cannot be read."""
    not_enforcing: tuple[BookieId, ...] = ()
    """With a policy that is not off: the registered bookies that do not follow it."""

    @property
    def lost(self) -> list[LedgerId]:
        """Ledgers with entries that cannot be read now, and those whose metadata cannot be read."""
        return sorted(self.ledgers.lost | set(self.ledgers.unreadable))

    @property
    def short(self) -> list[LedgerId]:
        """Ledgers that lack copies: they are marked, or name a bookie that is absent."""
        return sorted((self.ledgers.short | set(self.autorecovery.marked)) - set(self.lost))

    @property
    def stuck(self) -> dict[LedgerId, str]:
        """Ledgers that could not be repaired, with the reasons."""
        return self.autorecovery.stuck

    @property
    def silent(self) -> list[BookieId]:
        """Bookies that are registered and did not answer who looked: nobody knows whether their copies can be read."""
        return [each.bookie for each in self.bookies if each.state != ABSENT and each.problem]

    @property
    def is_well(self) -> bool:
        """Whether nothing is lost, short or stuck, and every registered bookie answers."""
        return not (self.lost or self.short or self.stuck or self.silent)


@dataclass(frozen=True, slots=True)
class BookiesStatus:
    """The bookies of a cluster at one moment."""

    bookies: tuple[BookieStatus, ...]
    """By name."""

    @property
    def up(self) -> frozenset[BookieId]:
        """Those that are registered."""
        return frozenset(each.bookie for each in self.bookies if each.state != ABSENT)


async def bookies_status(client: BookKeeper) -> BookiesStatus:
    """Which bookies there are, and how full those that are registered say they are. Raises: MetadataError."""
    bookies, operator = client.metadata_store.bookies, Operator(client)
    writable, read_only = set(await bookies.writable()), set(await bookies.read_only())
    up = writable | read_only
    absent = set(await bookies.known()) - up
    asked = await asyncio.gather(
        *(_bookie_status(operator, bookie, "writable" if bookie in writable else "read-only") for bookie in up)
    )
    found = [*asked, *(BookieStatus(bookie, ABSENT) for bookie in absent)]
    return BookiesStatus(tuple(sorted(found, key=lambda each: each.bookie)))


async def _bookie_status(operator: Operator, bookie: BookieId, state: str) -> BookieStatus:
    clock = operator.client.services.seams.clock
    began = clock.monotonic()
    try:
        info = await operator.bookie_info(bookie)
    except BookKeeperError as error:
        return BookieStatus(bookie, state, problem=in_words(error))
    return BookieStatus(bookie, state, info.total, info.free, answered_s=clock.monotonic() - began)


class ClusterObserver:
    """Looks at a cluster again and again."""

    def __init__(self, client: BookKeeper) -> None:
        self._client = client
        self._ledgers: LedgersStatus | None = None
        self._up: AbstractSet[BookieId] = frozenset()
        """The bookies by which the ledgers were judged."""
        self._read_again_at = 0.0

    async def observe(self) -> ClusterStatus:
        """Look now. The ledgers are read again when bookies have come or gone, and every half a minute, or less often
        where reading them takes long.

        Raises: MetadataError.
        """
        metadata, loop = self._client.metadata_store, asyncio.get_running_loop()
        found = await bookies_status(self._client)
        if self._ledgers is None or found.up != self._up or loop.time() >= self._read_again_at:
            began, ledgers = loop.time(), LedgersStatus()
            async for ledger_id, read in Operator(self._client).all_metadata():
                ledgers.add(ledger_id, read, found.up)
            self._ledgers, self._up = ledgers, found.up
            self._read_again_at = began + next_reading_s(loop.time() - began)
        mode = await policy_mode(metadata)
        return ClusterStatus(
            found.bookies,
            self._ledgers,
            await status_of(metadata),
            mode,
            () if mode is Mode.OFF else tuple(await not_following(metadata)),
        )


def next_reading_s(took_s: float) -> float:
    """After how many seconds all ledgers are read again, if that took so long. Pure."""
    return max(LEDGERS_EVERY_S, took_s * SHARE)
