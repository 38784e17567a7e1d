"""Streams, journals and Spark's checkpoints for the console's panels, kept by what is described here."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

from bookkeeper import BookKeeper
from journal_manager import EditLog, open_snapshots
from segments.config import RollPolicy, StreamConfig
from segments.namespace import StreamNamespace
from segments.record import StoredRecord
from spark_wal.webhdfs.config import GatewayConfig, OwnerConfig, UploadLimits
from spark_wal.webhdfs.ownership.cluster_backing import backing_on
from spark_wal.webhdfs.ownership.gateway import Gateway
from tests.spark_wal.checkpoints.samples import SampleStore
from tests.spark_wal.webhdfs.ownership.test_cluster_backing import put, temporary

MARKUP: Final = "<b>late</b>"
LIMITS: Final = UploadLimits(inline_size=1024, spill_size=8 * 1024, budget=64 * 1024)


async def furnish_panels(bk: BookKeeper, held: AsyncExitStack) -> None:
    """Make all of it; what must stay open is closed by ``held``."""
    await _streams(bk, held)
    await _journals(bk, held)
    await _checkpoints(bk, held)


async def _streams(bk: BookKeeper, held: AsyncExitStack) -> None:
    """``orders`` with segments, two cursors of which one lags, two producers and a hold; one that nobody writes."""
    namespace = StreamNamespace(bk)
    config = StreamConfig()
    config = replace(
        config,
        retention=replace(config.retention, max_records=100),
        roll=RollPolicy(max_records=40, min_age_s=0),
    )
    stream = await namespace.create("shop/orders", config=config)
    tills = [await stream.producer(f"till-{number}") for number in (1, 2)]
    for number in range(150):
        await tills[number % 2].append(b"an order of a customer %d" % number)
    for name, done in (("billing", 140), ("report", 25)):
        async with stream.cursor(name) as cursor:
            records = [each.position async for each in stream.read() if isinstance(each, StoredRecord)]
            await cursor.ack(*records[:done])
    await stream.hold("audit", note="until the audit of the year is done")
    for till in tills:
        held.push_async_callback(till.close)
    idle = await namespace.create("shop/import")
    producer = await idle.producer("import")
    await producer.append(b"one record")
    await producer.close()


async def _journals(bk: BookKeeper, held: AsyncExitStack) -> None:
    """One that lags behind its snapshot, with an offered snapshot, and one without any."""
    log = await EditLog.open("bk:names/main", owner="nn-1", client=bk)
    held.push_async_callback(log.close)
    for round_ in range(3):
        for number in range(20):
            last = log.log(b"edit %d of round %d" % (number, round_))
        await last
        if round_ < 2:
            await log.roll()
        if round_ == 0:
            await log.save_snapshot(await log.sync(), [b"a state"])
    async with await open_snapshots("bk:names/main", client=bk) as standby:
        await standby.offer(await log.sync(), [b"another state"])
    other = await EditLog.open(f"bk:names/{MARKUP.replace('/', '')}", owner="nn-2", client=bk)
    await other.log(b"an edit")
    await other.close()


async def _checkpoints(bk: BookKeeper, held: AsyncExitStack) -> None:
    """A gateway with a checkpoint that PySpark made, and one whose last batch is not done."""
    clock, rng = bk.services.seams.clock, bk.services.seams.rng
    owner_id = f"{rng.getrandbits(64):016x}"
    backing = backing_on(bk, clock, namespace="spark", owner=owner_id, address="gateway-1:9870")
    config = GatewayConfig(owner=OwnerConfig(limits=LIMITS))
    gateway = Gateway(backing.open_namespace, backing.lease, clock, config)
    held.push_async_callback(gateway.close)
    await gateway.start()
    owner = await gateway.owner()
    sample = SampleStore("hdfs")
    for path, data in sample.files.items():
        await put(owner, f"/checkpoints/orders/{path}", data)
        if path != "commits/8":
            await put(owner, f"/checkpoints/{MARKUP.replace('/', '')}/{path}", data)
    await put(owner, temporary("/checkpoints/orders/offsets/9", 9), b"v1")
