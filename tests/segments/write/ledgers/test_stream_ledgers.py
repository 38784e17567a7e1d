"""Deleting ledgers that nothing needs."""

from __future__ import annotations

from bookkeeper.errors import BookieUnavailableError
from segments.write.ledgers.stream_ledgers import delete_all, delete_quietly
from tests.segments.fake import Cluster
from tests.spark_wal.webhdfs.virtual import in_virtual_time


@in_virtual_time
async def test_what_is_gone_is_gone_and_what_fails_stays_for_the_next_sweep() -> None:
    cluster = Cluster()
    client = cluster.client()
    ids = [cluster.new(b"", {}).id for _ in range(2)]
    assert await delete_all(client, [*ids, 99]) == [*ids, 99]  # type: ignore[arg-type]
    kept = cluster.new(b"", {}).id
    cluster.fail_at = ("delete_ledger", BookieUnavailableError("away"))
    assert not await delete_quietly(client, kept)  # type: ignore[arg-type]
    assert list(cluster.ledgers) == [kept]
