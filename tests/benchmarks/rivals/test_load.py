"""Our load generator, in small: what is measured really happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rivals.load import obey


async def test_it_appends_reads_and_follows(tmp_path: Path) -> None:
    metadata = f"embedded://{tmp_path}/bk?bookies=3"
    append = {"op": "append", "topic": "a", "window": 10, "size": 1024, "seconds": 0.1}
    assert (await obey(metadata, "", append))["per_s"] > 0
    batched = {"op": "append", "topic": "b", "window": 10, "size": 100, "batch": 50, "seconds": 0.1}
    assert (await obey(metadata, "", batched))["p99_ms"] > 0
    catch_up = {"op": "catch_up", "topic": "c", "window": 100, "records": 500, "seconds": 0.1}
    assert (await obey(metadata, "", catch_up))["per_s"] > 0


@pytest.mark.parametrize("op", ["end_to_end", "end_to_end_inside"])
async def test_a_latency_counts_from_the_time_at_which_the_record_was_due(op: str, tmp_path: Path) -> None:
    command = {"op": op, "topic": "e", "window": 10, "rate": 100, "seconds": 0.2}
    seen = await obey(f"embedded://{tmp_path}/bk?bookies=3", "", command)
    assert 0 < seen["p50_ms"] <= seen["p99_ms"]


async def test_an_unknown_command_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown command 'dance'"):
        await obey("memory:", "", {"op": "dance"})
