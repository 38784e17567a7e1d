"""What is asked of the cluster's bookies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.bookkeeper.http_api.served import Served, story
from tests.bookkeeper.http_api.waiting import until


def test_the_list_and_the_sum_follow_bookies_that_go(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        await served.furnish()

        async def told(target: str) -> Any:
            return json.loads((await served.ask("GET", f"/api/v1/bookie/{target}")).body)

        bookie, other = served.names["bookie"], served.names["other"]
        assert await told("list_bookies?print_hostnames=true") == {bookie: "127.0.0.1", other: "127.0.0.1"}
        info = await told("cluster_info")
        assert (info["totalBookiesCount"], info["writableBookiesCount"]) == (2, 2)
        spaces = await told("list_bookie_info")
        assert set(spaces) == {bookie, other, "ClusterInfo: "}
        assert (await served.ask("PUT", "/api/v1/bookie/state/readonly", '{"readOnly": true}')).status == 200

        async def is_listed() -> bool:
            return bool(await told("list_bookies?type=ro") == {bookie: None})

        await until(is_listed)
        await served.other.stop()
        info = await told("cluster_info")
        assert info == {
            "auditorElected": False,
            "auditorId": "",
            "clusterUnderReplicated": False,
            "ledgerReplicationEnabled": True,
            "totalBookiesCount": 2,
            "writableBookiesCount": 0,
            "readonlyBookiesCount": 1,
            "unavailableBookiesCount": 1,
        }
        assert set(await told("list_bookie_info")) == {bookie, "ClusterInfo: "}, "a read-only one has space, too"

    story(tmp_path, work, auditor=False)
