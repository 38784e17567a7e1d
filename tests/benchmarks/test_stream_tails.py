"""The memory of readers that wait, in small: what is measured really happens."""

from __future__ import annotations

from pathlib import Path

from benchmarks.stream_tails import follow, make


async def test_streams_are_followed_until_all_rest(tmp_path: Path) -> None:
    uri = f"embedded://{tmp_path}/bk?bookies=3"
    seen = await follow(uri, await make(uri, 3))
    assert (seen["streams"], seen["resting"]) == (3, 3)
    assert seen["mb"] > 0
