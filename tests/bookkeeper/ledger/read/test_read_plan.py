"""How reads are cut and combined."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from bookkeeper.ids import BookieId
from bookkeeper.ledger import LedgerMetadata, QuorumSpec
from bookkeeper.ledger.digest import DigestType
from bookkeeper.ledger.read.read_plan import (
    ENTRY_BYTES_GUESS,
    LONE_READS,
    RUN_ENTRIES_MAX,
    SHARE_MIN,
    LoneReads,
    ReadPlan,
    ReadShare,
    RunLength,
    plan_reads,
)
from tests.bookkeeper.ledger.test_metadata import bookies
from tests.bookkeeper.validated import validated

B1, B2, B3, B4 = bookies("b1 b2 b3 b4")
OPEN = LedgerMetadata.create(
    QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2),
    (B1, B2, B3),
    digest_type=DigestType.CRC32C,
    password=b"",
    ctime_ms=0,
)
STRIPED = LedgerMetadata.create(
    QuorumSpec(ensemble_size=3, write_quorum=2, ack_quorum=2),
    (B1, B2, B3),
    digest_type=DigestType.CRC32C,
    password=b"",
    ctime_ms=0,
)
TWO_FRAGMENTS = OPEN.change_ensemble(100, (B1, B2, B4))


def as_it_is(ensemble: Sequence[BookieId]) -> Sequence[BookieId]:
    return ensemble


def any_length(first: int, last: int) -> int:
    return last - first + 1


def lengths(metadata: LedgerMetadata, batch_bytes: int = 1 << 20) -> RunLength:
    return validated(RunLength)(metadata, batch_bytes)


# -- how long a run is ----------------------------------------------------------------------------------------


def test_a_run_holds_about_as_many_entries_as_fit_into_a_batch() -> None:
    length = lengths(OPEN, 100_000)
    assert length.entry_bytes == ENTRY_BYTES_GUESS
    assert length.of(OPEN, 0, 10_000, batches=True) == 100_000 // (ENTRY_BYTES_GUESS + 64)
    assert length.of(OPEN, 0, 5, batches=True) == 6
    length.on_payloads([b"x" * 100_000])
    assert length.of(OPEN, 0, 5, batches=True) == 1, "at least one"
    length.on_payloads([b""] * 50)
    assert length.entry_bytes == 1
    assert length.of(OPEN, 0, 10_000, batches=True) == 100_000 // 65


def test_a_run_has_a_limit_whatever_its_bytes() -> None:
    length = lengths(OPEN, 1 << 30)
    assert length.of(OPEN, 7, 100_000, batches=True) == RUN_ENTRIES_MAX


def test_a_run_ends_with_its_fragment() -> None:
    length = lengths(TWO_FRAGMENTS)
    assert length.of(TWO_FRAGMENTS, 90, 120, batches=True) == 10
    assert length.of(TWO_FRAGMENTS, 100, 120, batches=True) == 21


def test_where_nobody_answers_batches_or_entries_are_striped_a_run_is_one_entry() -> None:
    assert lengths(OPEN).of(OPEN, 0, 50, batches=False) == 1
    assert lengths(STRIPED).of(STRIPED, 0, 50, batches=True) == 1


def test_a_closed_ledger_tells_how_large_its_entries_are() -> None:
    closed = OPEN.close(9, 500)
    assert lengths(closed).entry_bytes == 50
    assert lengths(closed).fitting(175) == 3
    assert lengths(closed).fitting(0) == 1


def test_a_sample_of_a_long_run_is_enough() -> None:
    length = lengths(OPEN)
    length.on_payloads([b"x" * 10] * 1000 + [b"x" * 30] * 1000)
    assert length.entry_bytes == 20


# -- what becomes of the single reads of one turn --------------------------------------------------------------


def test_neighbours_become_runs_and_the_others_a_share() -> None:
    plan = plan_reads(dict.fromkeys([7, 3, 4, 30, 5, 31]), OPEN, as_it_is, any_length)
    assert plan.runs == [(3, 3), (30, 2)]
    assert plan.shares == [ReadShare(B1, (B1, B2, B3), [7])]


def test_a_lone_entry_is_asked_for_at_the_first_bookie_that_holds_it() -> None:
    alone = plan_reads({100: None}, TWO_FRAGMENTS, as_it_is, any_length)
    assert alone == ReadPlan([], [ReadShare(B1, (B1, B2, B4), [100])])
    striped = plan_reads({1: None}, STRIPED, as_it_is, any_length)
    assert striped == ReadPlan([], [ReadShare(B2, (B1, B2, B3), [1])])


def test_a_run_is_no_longer_than_it_may_be() -> None:
    plan = plan_reads(dict.fromkeys(range(7)), OPEN, as_it_is, lambda first, last: 3)
    assert plan.runs == [(0, 3), (3, 3)]
    assert [share.entry_ids for share in plan.shares] == [[6]]


def test_few_entries_stay_together_and_many_are_shared_out() -> None:
    turns = iter([(B1, B2, B3), (B2, B3, B1), (B3, B1, B2), (B1, B2, B3)])
    some = plan_reads(dict.fromkeys(range(0, 2 * SHARE_MIN, 2)), OPEN, lambda ensemble: next(turns), any_length)
    assert [(share.bookie, len(share.entry_ids)) for share in some.shares] == [(B1, SHARE_MIN)]
    many = plan_reads(dict.fromkeys(range(0, 200, 2)), OPEN, lambda ensemble: next(turns), any_length)
    assert [(share.bookie, len(share.entry_ids)) for share in many.shares] == [(B2, 33), (B3, 33), (B1, 34)]


def test_a_share_lies_in_one_fragment() -> None:
    plan = plan_reads(dict.fromkeys([98, 102]), TWO_FRAGMENTS, as_it_is, any_length)
    assert plan.shares == [ReadShare(B1, (B1, B2, B3), [98]), ReadShare(B1, (B1, B2, B4), [102])]


@pytest.mark.parametrize("metadata", [OPEN, STRIPED, TWO_FRAGMENTS], ids=["whole", "striped", "fragments"])
@pytest.mark.parametrize("seed", range(10))
def test_every_entry_is_asked_for_once_at_a_bookie_that_holds_it(metadata: LedgerMetadata, seed: int) -> None:
    rng = Random(seed)
    wanted = rng.sample(range(200), rng.randrange(1, 120))
    length = lengths(metadata)

    def shuffled(ensemble: Sequence[BookieId]) -> Sequence[BookieId]:
        return rng.sample(ensemble, len(ensemble))

    plan = plan_reads(
        dict.fromkeys(wanted), metadata, shuffled, lambda first, last: length.of(metadata, first, last, batches=True)
    )
    asked = [entry for first, count in plan.runs for entry in range(first, first + count)]
    for share in plan.shares:
        assert share.entry_ids
        assert all(share.bookie in metadata.write_set(entry) for entry in share.entry_ids)
        asked += share.entry_ids
    assert sorted(asked) == sorted(wanted)
    for first, count in plan.runs:
        assert count > 1
        assert metadata.fragment_of(first) == metadata.fragment_of(first + count - 1)


def test_a_caller_that_waits_for_each_read_is_noticed_until_it_asks_for_two() -> None:
    lone = validated(LoneReads)()

    def at_once_after(count: int, *, under_way: bool = False) -> bool:
        lone.on_turn(count, under_way=under_way)
        return lone.at_once

    assert [at_once_after(1) for _ in range(LONE_READS)] == [False] * (LONE_READS - 1) + [True]
    assert at_once_after(1)
    assert not at_once_after(2)
    assert [at_once_after(1) for _ in range(LONE_READS)][-1]
    assert not at_once_after(1, under_way=True)
