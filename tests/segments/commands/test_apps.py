"""``bk stream apps``."""

from __future__ import annotations

import asyncio
from pathlib import Path

from segments import BatchKey, connect
from tests.segments.commands.helpers import Streams


def test_list_hand_over_and_forget(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.create()
    assert streams.run("apps", "list", "orders") == "orders remembers no applications\n"

    async def publish() -> None:
        async with connect(streams.uri) as namespace:
            stream = await namespace.open("orders")
            publisher = await stream.publisher()
            await publisher.publish(BatchKey("nightly", "q", 4), [await stream.stage("s").finish()])

    asyncio.run(publish())
    (row,) = streams.json("apps", "list", "orders")
    assert (row["application"], row["query"], row["batch"], row["records"]) == ("nightly", "q", 4, 0)
    assert "nightly" in streams.run("apps", "list", "orders")
    assert row["belongs_to"] == ""
    said = streams.run("apps", "hand-over", "orders", "nightly", "etl")
    assert said == "application nightly of orders belongs to etl\n"
    assert [row["belongs_to"] for row in streams.json("apps", "list", "orders")] == ["etl"]
    said = streams.run("apps", "hand-over", "orders", "nightly", "--nobody")
    assert said == "application nightly of orders belongs to nobody\n"
    assert "name who gets it, or give --nobody" in streams.run("apps", "hand-over", "orders", "a", status=2)
    assert "remembers no application a" in streams.run("apps", "hand-over", "orders", "a", "etl", status=1)
    assert streams.run("apps", "forget", "orders", "nightly") == "application nightly of orders is forgotten\n"
    assert "remembers no application nightly" in streams.run("apps", "forget", "orders", "nightly", status=1)
