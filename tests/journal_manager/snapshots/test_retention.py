"""What may go: the newest snapshots and every edit after the oldest of them stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager import SegmentInfo, TxId
from journal_manager.snapshots.retention import RetentionPolicy, plan_retention


def segments(*ends: tuple[int, int | None]) -> list[SegmentInfo]:
    return [SegmentInfo(TxId(a), None if b is None else TxId(b), 1, 1, f"{a}") for a, b in ends]


SEGMENTS = segments((1, 100), (101, 200), (201, 300), (301, 400), (401, None))
SNAPSHOTS = [TxId(n) for n in (100, 200, 300, 400)]


@pytest.mark.parametrize(
    ("policy", "snapshots", "deleted", "below"),
    [
        (RetentionPolicy(snapshots=2), SNAPSHOTS, [100, 200], 301),
        (RetentionPolicy(snapshots=9), SNAPSHOTS, [], 101),
        (RetentionPolicy(snapshots=0), SNAPSHOTS, [100, 200, 300], 401),
        (RetentionPolicy(), [], [], 1),
        (RetentionPolicy(snapshots=2, extra_txns=50), SNAPSHOTS, [100, 200], 251),
        (RetentionPolicy(snapshots=1, extra_txns=1000), SNAPSHOTS, [100, 200, 300], 1),
        (RetentionPolicy(snapshots=1, extra_txns=150, extra_segments=1), SNAPSHOTS, [100, 200, 300], 301),
        (RetentionPolicy(snapshots=1, extra_txns=150, extra_segments=0), SNAPSHOTS, [100, 200, 300], 401),
    ],
)
def test_examples(policy: RetentionPolicy, snapshots: list[TxId], deleted: list[int], below: int) -> None:
    plan = plan_retention(policy, snapshots, SEGMENTS)
    assert (list(plan.snapshots), plan.purge_below) == (deleted, below)


@pytest.mark.rule("C6")
@given(
    st.builds(RetentionPolicy, st.integers(0, 4), st.integers(0, 500), st.integers(0, 4)),
    st.lists(st.integers(0, 400).map(TxId)),
)
def test_every_edit_after_the_oldest_kept_snapshot_stays(policy: RetentionPolicy, snapshots: list[TxId]) -> None:
    plan = plan_retention(policy, snapshots, SEGMENTS)
    kept = sorted(set(snapshots) - set(plan.snapshots))
    assert len(kept) >= min(len(set(snapshots)), max(1, policy.snapshots))
    assert plan.purge_below <= (kept[0] + 1 if kept else 1)
