"""Which volume has which ledger: what each record does, and that the records say everything."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper.volumes.map.ledger_map import PlacementKind, PlacementRecord, Placements, least_used

PLACED, LOST, WHOLE, GONE, VOLUME_LOST = PlacementKind


def known(placements: Placements) -> tuple[dict[int, int | None], set[int], dict[int, int]]:
    where = {ledger: placements.volume_of(ledger) for ledger in range(12)}
    return where, set(placements.lost), {volume: placements.count(volume) for volume in range(5)}


@pytest.mark.parametrize("seed", range(200))
def test_the_fewest_records_say_the_same_again(seed: int) -> None:
    rng = Random(seed)
    placements = Placements()
    for _ in range(rng.randrange(60)):
        kind = rng.choice(list(PlacementKind))
        ledger = -1 if kind is VOLUME_LOST else rng.randrange(12)
        volume = rng.randrange(1, 5) if kind in (PLACED, VOLUME_LOST) else 0
        placements.take(PlacementRecord(kind, ledger, volume))
        again = Placements(placements.records())
        assert known(again) == known(placements)
        assert len(again) == len(placements) == len(list(placements.records()))
        where, _, counts = known(placements)
        assert counts == {volume: sum(each == volume for each in where.values()) for volume in counts}
        assert placements.volumes == {each for each in where.values() if each is not None}
        for number in counts:
            assert placements.ledgers_on(number) == sorted(key for key, at in where.items() if at == number)


def test_a_ledger_is_on_one_volume_and_moves_with_its_next_record() -> None:
    placements = Placements([PlacementRecord(PLACED, 7, 1), PlacementRecord(PLACED, 7, 2)])
    assert placements.volume_of(7) == 2
    assert (placements.count(1), placements.count(2), placements.count(9)) == (0, 1, 0)
    assert placements.volume_of(8) is None


def test_a_volume_that_is_lost_takes_its_ledgers_and_no_others() -> None:
    placements = Placements([PlacementRecord(PLACED, ledger, 1 + ledger % 2) for ledger in range(6)])
    placements.take(PlacementRecord(VOLUME_LOST, volume=1))
    assert set(placements.lost) == {0, 2, 4}
    assert placements.ledgers_on(2) == [1, 3, 5] and placements.count(1) == 0


def test_a_lost_ledger_that_is_placed_again_stays_lost_until_it_is_whole() -> None:
    placements = Placements([PlacementRecord(PLACED, 7, 1), PlacementRecord(VOLUME_LOST, volume=1)])
    placements.take(PlacementRecord(PLACED, 7, 2))
    assert 7 in placements.lost and placements.volume_of(7) == 2
    placements.take(PlacementRecord(WHOLE, 7))
    assert 7 not in placements.lost and placements.volume_of(7) == 2


def test_each_loss_of_a_ledger_has_a_greater_number() -> None:
    """Proof that a ledger was whole before it was lost once more is no proof."""
    placements = Placements([PlacementRecord(PLACED, 7, 1), PlacementRecord(VOLUME_LOST, volume=1)])
    first = placements.lost[7]
    placements.take(PlacementRecord(PLACED, 7, 2))
    placements.take(PlacementRecord(VOLUME_LOST, volume=2))
    second = placements.lost[7]
    placements.take(PlacementRecord(LOST, 7))
    assert 0 < first < second < placements.lost[7]


def test_a_deleted_ledger_is_neither_placed_nor_lost() -> None:
    placements = Placements([PlacementRecord(PLACED, 7, 1), PlacementRecord(LOST, 7), PlacementRecord(GONE, 7)])
    assert list(placements.records()) == [] and len(placements) == 0 and placements.count(1) == 0
    placements.take(PlacementRecord(WHOLE, 8))
    placements.take(PlacementRecord(GONE, 8))
    assert list(placements.records()) == []
    assert placements.retired == set()


def test_the_numbers_of_the_kinds_are_stored() -> None:
    assert [(kind.name, int(kind)) for kind in PlacementKind] == [
        ("PLACED", 1),
        ("LOST", 2),
        ("WHOLE", 3),
        ("GONE", 4),
        ("VOLUME_LOST", 5),
    ]


@pytest.mark.parametrize(
    ("placed", "free", "chosen"),
    [
        ({1: 0, 2: 0, 3: 0}, {1: 100, 2: 100, 3: 100}, 1),
        ({1: 1, 2: 0, 3: 0}, {1: 100, 2: 100, 3: 100}, 2),
        ({2: 5, 1: 5}, {1: 100, 2: 100}, 1),
        ({1: 3, 2: 3}, {1: 100, 2: 101}, 2),
        ({1: 9, 2: 4}, {1: 200, 2: 100}, 1),
        ({1: 9, 2: 3}, {1: 200, 2: 100}, 2),
        ({1: 0, 2: 1000}, {1: 0, 2: 1 << 40}, 2),
        ({1: 0, 2: 1}, {}, 1),
        ({4: 17}, {4: 0}, 4),
    ],
)
def test_a_new_ledger_goes_where_fewest_are_for_the_free_space(
    placed: dict[int, int], free: dict[int, int], chosen: int
) -> None:
    assert least_used(placed, free) == chosen


def test_ledgers_spread_in_proportion_to_the_free_space() -> None:
    free, placed = {1: 100, 2: 300}, {1: 0, 2: 0}
    for _ in range(400):
        placed[least_used(placed, free)] += 1
    assert placed == {1: 100, 2: 300}
