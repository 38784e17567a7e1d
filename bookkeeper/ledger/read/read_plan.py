"""Decides how reads are cut and combined: how long a run is, what is read together, which bookie is asked for the rest.

Many readers that each want "the next entry" ask for consecutive entries at the same moment. One batch read costs about
as much as a single read, so consecutive entries become one run. The other entries are shared out among the bookies, and
the share of one bookie is asked for together.

    wanted in one turn    3 4 5      7      30 31                     RunLength says: at most 8192, one fragment's,
                          ─────      │      ─────                     about batch_bytes
                          run of 3   │      run of 2
                                     ▼
                              a share of one bookie
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from bookkeeper.ids import BookieId
from bookkeeper.ledger.metadata import Fragment, LedgerMetadata

RUN_ENTRIES_MAX: Final = 8192
"""The longest run that is asked for at once."""

ENTRY_BYTES_GUESS: Final = 1024
"""The assumed size of an entry while nothing is known of the ledger."""

ENTRY_OVERHEAD: Final = 64
"""About how many bytes an entry takes in a reply besides its payload."""

SAMPLE: Final = 16
"""About how many entries of a run are measured to guess the size of the next ones."""

SHARE_MIN: Final = 8
"""How many entries of one turn one bookie is asked for before another gets a share. A bookie that has them in memory
answers eight in little more time than one."""

LONE_READS: Final = 16
"""After so many turns of a single read that found no other one under way, the next read is sent at once and not at the
end of its turn: a caller that waits for each of its reads has no other to send with it."""


class LoneReads:
    """Notices a caller that waits for each of its reads."""

    __slots__ = ("_in_a_row", "at_once")

    def __init__(self) -> None:
        self.at_once = False
        """Whether the next read is sent at once if none is under way then."""
        self._in_a_row = 0

    def on_turn(self, count: int, *, under_way: bool) -> None:
        """``count`` entries are asked for together; ``under_way``: an earlier read is not answered yet."""
        self._in_a_row = self._in_a_row + 1 if count == 1 and not under_way else 0
        self.at_once = self._in_a_row >= LONE_READS

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self.at_once is (self._in_a_row >= LONE_READS)


class RunLength:
    """Decides how many entries one run asks for, from the sizes of the entries that came."""

    __slots__ = ("_batch_bytes", "entry_bytes")

    def __init__(self, metadata: LedgerMetadata, batch_bytes: int) -> None:
        self._batch_bytes = batch_bytes
        entries = metadata.last_entry + 1
        self.entry_bytes = max(1, metadata.length // entries) if entries else ENTRY_BYTES_GUESS
        """The assumed payload bytes of an entry."""

    def on_payloads(self, payloads: Sequence[bytes]) -> None:
        """Entries came; the next ones are assumed to be as large."""
        some = payloads[:: max(1, len(payloads) // SAMPLE)]
        self.entry_bytes = max(1, sum(map(len, some)) // len(some))

    def of(self, metadata: LedgerMetadata, first: int, last: int, *, batches: bool) -> int:
        """How many entries the run that begins at ``first`` has, if ``first .. last`` are wanted. They lie in one
        fragment, and about fit into a batch. ``batches``: whether any bookie may be asked for more than one."""
        if metadata.spec.is_striped or not batches:
            return 1
        ends = [fragment.first_entry - 1 for fragment in metadata.fragments if fragment.first_entry > first]
        fit = self._batch_bytes // (self.entry_bytes + ENTRY_OVERHEAD)
        return min(last, *ends[:1], first + max(1, min(fit, RUN_ENTRIES_MAX)) - 1) - first + 1

    def fitting(self, size: int) -> int:
        """About how many entries ``size`` bytes hold; at least one."""
        return max(1, size // self.entry_bytes)

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self.entry_bytes >= 1


class ReadShare(NamedTuple):
    """Single entries that ``bookie`` is asked for together. ``order``: the ensemble, in case that bookie fails."""

    bookie: BookieId
    order: Sequence[BookieId]
    entry_ids: list[int]


class ReadPlan(NamedTuple):
    """How the single reads of one turn are performed."""

    runs: list[tuple[int, int]]
    """(first entry, count) of each run of consecutive entries; count > 1."""
    shares: list[ReadShare]


def lone_share(
    entry_id: int, metadata: LedgerMetadata, order: Callable[[Sequence[BookieId]], Sequence[BookieId]]
) -> ReadShare:
    """Who is asked for the only entry of a turn. ``order`` as for :func:`plan_reads`."""
    turn = order(metadata.fragment_of(entry_id).ensemble)
    if metadata.spec.is_striped:
        (share,) = _shares(metadata, turn, [entry_id])
        return share
    return ReadShare(turn[0], turn, [entry_id])


def plan_reads(
    wanted: Mapping[int, object],
    metadata: LedgerMetadata,
    order: Callable[[Sequence[BookieId]], Sequence[BookieId]],
    run_length: Callable[[int, int], int],
) -> ReadPlan:
    """The plan for the entries that are the keys of ``wanted``. ``order`` says whose turn it is in an ensemble, and
    ``run_length(first, last)`` how many entries make one run."""
    if len(wanted) == 1:
        (entry_id,) = wanted
        return ReadPlan([], [lone_share(entry_id, metadata, order)])
    ids = alone = sorted(wanted)
    runs: list[tuple[int, int]] = []
    if not wanted.keys().isdisjoint([entry + 1 for entry in ids]):
        alone = []
        for first, count in _stretches(ids, run_length):
            if count == 1:
                alone.append(first)
            else:
                runs.append((first, count))
    shares: list[ReadShare] = []
    for fragment, some in _by_fragment(metadata, alone):
        shares += _share_out(metadata, fragment, some, order)
    return ReadPlan(runs, shares)


def _stretches(ids: list[int], run_length: Callable[[int, int], int]) -> Iterator[tuple[int, int]]:
    """Stretches of consecutive entries, no longer than a run may be."""
    index = 0
    while index < len(ids):
        end = index + 1
        while end < len(ids) and ids[end] == ids[end - 1] + 1:
            end += 1
        count = 1 if end == index + 1 else min(end - index, run_length(ids[index], ids[end - 1]))
        yield ids[index], count
        index += count


def _by_fragment(metadata: LedgerMetadata, ids: list[int]) -> list[tuple[Fragment, list[int]]]:
    if len(metadata.fragments) == 1:
        return [(metadata.fragments[0], ids)]
    found: dict[Fragment, list[int]] = {}
    for entry_id in ids:
        found.setdefault(metadata.fragment_of(entry_id), []).append(entry_id)
    return list(found.items())


def _share_out(
    metadata: LedgerMetadata,
    fragment: Fragment,
    ids: list[int],
    next_order: Callable[[Sequence[BookieId]], Sequence[BookieId]],
) -> Iterator[ReadShare]:
    """Give each bookie its share. A few entries go to one bookie together."""
    ensemble = fragment.ensemble
    parts = min(len(ensemble), -(-len(ids) // SHARE_MIN))
    for part in range(parts):
        some = ids[len(ids) * part // parts : len(ids) * (part + 1) // parts]
        yield from _shares(metadata, next_order(ensemble), some)


def _shares(metadata: LedgerMetadata, order: Sequence[BookieId], ids: list[int]) -> list[ReadShare]:
    """The shares of bookies that are asked in this order; each has the entries of which it is the first."""
    if not metadata.spec.is_striped:
        return [ReadShare(order[0], order, ids)]
    shares: dict[BookieId, list[int]] = {}
    for entry_id in ids:
        write_set = metadata.write_set(entry_id)
        shares.setdefault(next(one for one in order if one in write_set), []).append(entry_id)
    return [ReadShare(bookie, order, share) for bookie, share in shares.items()]
