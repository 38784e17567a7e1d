"""What several engines have found and counted, as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from bookkeeper.storage.base.results import EngineStats, OpenReport


def merged_report(reports: Sequence[OpenReport]) -> OpenReport:
    """What the starts of all volumes have found."""
    tails = [each.torn_tail for each in reports if each.torn_tail]
    limbo = [each.limbo_reason for each in reports if each.limbo_reason]
    return OpenReport(
        clean=all(each.clean for each in reports),
        last_boot=max((each.last_boot for each in reports), default=0),
        fresh=all(each.fresh for each in reports),
        replayed_groups=sum(each.replayed_groups for each in reports),
        replayed_records=sum(each.replayed_records for each in reports),
        torn_tail="; ".join(tails) or None,
        limbo_reason="; ".join(limbo) or None,
        rebuilt=any(each.rebuilt for each in reports),
        quarantined=[place for each in reports for place in each.quarantined],
    )


def merged_stats(stats: Sequence[EngineStats]) -> EngineStats:
    """The sums; of the slowest sync the maximum."""
    merged = EngineStats()
    for field in fields(EngineStats):
        values = [getattr(each, field.name) for each in stats]
        if values:
            setattr(merged, field.name, max(values) if field.name == "slowest_sync_seconds" else sum(values))
    return merged
