"""Every seed is another world, and the same one each time."""

from __future__ import annotations

import pytest

from bookkeeper.testing.sim_plan import (
    DAMAGES,
    DECAY,
    FAULTS,
    FIRST_OF_LATER,
    FIRST_WITH_DAMAGE,
    FIRST_WITH_HEALERS,
    FIRST_WITH_ROLLBACK,
    FIRST_WITH_SCRUB,
    LATER_FAULTS,
    SHAPES,
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
