"""Every seed is another world, and the same one each time."""

from __future__ import annotations

import pytest

from tests.simulation.plan import (
    DAMAGES,
    DECAY,
    FAULTS,
    FIRST_OF_LATER,
    FIRST_WITH_COLLECTION,
    FIRST_WITH_DAMAGE,
    FIRST_WITH_HEALERS,
    FIRST_WITH_RACKS,
    FIRST_WITH_ROLLBACK,
    FIRST_WITH_SCRUB,
    FIRST_WITH_UNDELETION,
    FIRST_WITH_VOLUMES,
    LATER_FAULTS,
    SHAPES,
    VOLUME_FAULTS,
    plan,
)


def test_a_plan_depends_on_its_seed_alone() -> None:
    assert [str(plan(seed)) for seed in range(50)] == [str(plan(seed)) for seed in range(50)]
    assert len({str(plan(seed)) for seed in range(50)}) == 50


def test_swarms_have_and_lack_every_fault_and_draw_every_shape() -> None:
    plans = [plan(seed) for seed in range(300)]
    for fault in FAULTS:
        assert 30 < sum(fault in p.faults for p in plans) < 270
    drawn = {(s.ensemble_size, s.write_quorum, s.ack_quorum) for p in plans for s in p.shapes}
    assert drawn == set(SHAPES)


@pytest.mark.rule("F3")
def test_no_more_is_destroyed_than_copies_allow() -> None:
    for seed in range(300):
        made = plan(seed)
        assert all(shape.ensemble_size <= made.bookies for shape in made.shapes)
        if "lose_bookie" in made.faults or "reborn" in made.faults:
            assert all(shape.ack_quorum >= 2 for shape in made.shapes), "F3"


def test_younger_faults_leave_the_first_worlds_as_they_are() -> None:
    assert not any(fault in plan(seed).faults for seed in range(FIRST_OF_LATER) for fault in LATER_FAULTS)
    assert 10 < sum("reborn" in plan(seed).faults for seed in range(FIRST_OF_LATER, FIRST_WITH_DAMAGE)) < 100
    assert not any({"reborn", "lose_bookie"} <= set(plan(seed).faults) for seed in range(600))


@pytest.mark.rule("F3")
def test_damage_comes_late_and_alone() -> None:
    """One bookie's copies at most are hurt: where files are damaged no bookie is lost besides (F3)."""
    assert not any(fault in plan(seed).faults for seed in range(FIRST_WITH_DAMAGE) for fault in DAMAGES)
    later = [plan(seed) for seed in range(FIRST_WITH_DAMAGE, FIRST_WITH_DAMAGE + 100)]
    assert all(set(DAMAGES) & set(made.faults) for made in later)
    assert not any({"reborn", "lose_bookie"} & set(made.faults) for made in later)
    for kind in DAMAGES:
        assert 25 < sum(kind in made.faults for made in later) < 75


def test_metadata_are_put_back_in_every_second_world_of_high_seeds_to_a_moment_of_the_chaos() -> None:
    assert not any(plan(seed).rollback_after_s for seed in range(0, FIRST_WITH_ROLLBACK, 7))
    later = [plan(seed) for seed in range(FIRST_WITH_ROLLBACK, FIRST_WITH_ROLLBACK + 100)]
    put_back = [made for made in later if made.rollback_after_s]
    assert len(put_back) == 50
    assert all(made.rollback_after_s < made.chaos_s for made in put_back)
    assert not any({"reborn", "lose_bookie", *DAMAGES} & set(made.faults) for made in put_back)
    assert "put back to" in str(put_back[0])
    assert all(set(DAMAGES) & set(made.faults) for made in later if made not in put_back), "damage as before"


@pytest.mark.rule("F3")
def test_worlds_with_healers_lose_bookies_and_keep_a_second_copy_of_everything() -> None:
    for seed in range(FIRST_WITH_HEALERS, FIRST_WITH_HEALERS + 100):
        made = plan(seed)
        assert made.healers >= 1 and "lose_bookie" in made.faults
        assert all(shape.ack_quorum >= 2 and shape.ensemble_size <= made.bookies for shape in made.shapes)
    assert not any(plan(seed).healers for seed in range(400))


@pytest.mark.rule("F3", "K30")
def test_entry_logs_rot_where_bookies_scrub_and_every_entry_has_a_second_copy() -> None:
    """One bookie's copies at most are hurt, so none is lost besides. Elsewhere nobody scrubs."""
    for seed in range(FIRST_WITH_SCRUB, FIRST_WITH_SCRUB + 100):
        made = plan(seed)
        assert made.healers >= 1 and set(DECAY) <= set(made.faults)
        assert not {"reborn", "lose_bookie", *DAMAGES} & set(made.faults)
        assert all(shape.ack_quorum >= 2 and shape.ensemble_size <= made.bookies for shape in made.shapes)
        assert 0 < made.storage["scrub_period_s"] < 10
    for seed in range(0, FIRST_WITH_SCRUB, 97):
        assert plan(seed).storage["scrub_period_s"] == 0.0 and not set(DECAY) & set(plan(seed).faults)


@pytest.mark.rule("F3", "G1")
def test_garbage_passes_are_made_where_sessions_see_the_past_and_no_bookie_is_lost() -> None:
    for seed in range(FIRST_WITH_COLLECTION, FIRST_WITH_COLLECTION + 100):
        made = plan(seed)
        assert "lag" in made.faults and not {"reborn", "lose_bookie"} & set(made.faults)
        assert made.bookie["garbage_interval_s"] < 1 and made.bookie["garbage_grace_s"] < 2
    assert not any("garbage_interval_s" in plan(seed).bookie for seed in range(0, FIRST_WITH_COLLECTION, 97))


@pytest.mark.rule("F3", "G8")
def test_ledgers_are_brought_back_where_garbage_passes_are_made_and_no_bookie_is_lost() -> None:
    worlds = [plan(seed) for seed in range(FIRST_WITH_UNDELETION, FIRST_WITH_UNDELETION + 100)]
    for made in worlds:
        assert made.undeleters == 1 and "1 undeleters" in str(made) and made.bookie["garbage_interval_s"] < 1
        assert "lag" in made.faults and not {"reborn", "lose_bookie"} & set(made.faults)
    assert sum(made.directories > 0 for made in worlds) == 25
    assert sum("minor_compaction_interval_s" in made.storage for made in worlds) == 50
    assert not any(plan(seed).undeleters for seed in range(0, FIRST_WITH_UNDELETION, 97))


@pytest.mark.rule("F3", "B12")
def test_bookies_have_several_directories_where_nothing_else_takes_copies() -> None:
    for seed in range(FIRST_WITH_VOLUMES, FIRST_WITH_VOLUMES + 100):
        made = plan(seed)
        assert made.directories in (2, 3) and made.healers >= 1
        assert set(VOLUME_FAULTS) & set(made.faults)
        assert not {"reborn", "lose_bookie", "fsync_error", *DECAY, *DAMAGES} & set(made.faults)
        assert all(shape.ack_quorum >= 2 and shape.ensemble_size <= made.bookies for shape in made.shapes)
        assert "ledger directories" in str(made)
    for seed in range(0, FIRST_WITH_VOLUMES, 97):  # later: where ledgers are brought back
        assert not plan(seed).directories and not set(VOLUME_FAULTS) & set(plan(seed).faults)


@pytest.mark.rule("F3", "Q6")
def test_bookies_stand_in_racks_where_one_is_lost_and_every_second_world_enforces_it() -> None:
    worlds = [plan(seed) for seed in range(FIRST_WITH_RACKS, FIRST_WITH_RACKS + 100)]
    for made in worlds:
        assert made.racks in (2, 3) and made.healers >= 1 and "lose_bookie" in made.faults and "racks" in str(made)
        assert made.client.placement == "rack"
        assert all(s.ack_quorum >= 2 and s.ensemble_size <= made.bookies - 2 for s in made.shapes)
    assert sum(made.client.racks_enforced for made in worlds) == 50
    assert not any(plan(seed).racks for seed in range(0, FIRST_WITH_RACKS, 97))
