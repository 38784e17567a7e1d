"""State stores, what reads and changes state, and queries that are changed between runs."""

from __future__ import annotations

from pyspark.sql import functions as f

from tests.spark_table.modes.windows import counted
from tests.spark_table.scene import CHANGELOG, FILE_CONTEXT, ROCKSDB, Scene, mode

SECOND_FORMAT = {**CHANGELOG, "spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}
FEW = {"spark.sql.streaming.minBatchesToRetain": "2", "spark.sql.streaming.asyncLogPurge.enabled": "false"}


def counts(scene: Scene) -> None:
    scene.to_batches(counted(scene.rows(), "key"), "update")


@mode("groupBy, update, RocksDB with changelog", conf=CHANGELOG)
def _(scene: Scene) -> None:
    counts(scene)


@mode("groupBy, update, checkpoint format 2", conf=SECOND_FORMAT)
def _(scene: Scene) -> None:
    counts(scene)


@mode("groupBy, update, offset log of version 2", conf={"spark.sql.streaming.offsetLog.formatVersion": "2"})
def _(scene: Scene) -> None:
    counts(scene)


@mode("groupBy, update, two batches are kept", conf=FEW)
def _(scene: Scene) -> None:
    counts(scene)


@mode("the default file manager", conf=FILE_CONTEXT)
def _(scene: Scene) -> None:
    counts(scene)


@mode("state reader: state, metadata, change feed")
def _(scene: Scene) -> None:
    counts(scene)
    if scene.life < 2:
        return
    reader = scene.spark.read.format("statestore").option("path", scene.location)
    scene.see("state", reader.load())
    scene.see("state at batch 1", reader.option("batchId", "1").load())
    feed = scene.spark.read.format("statestore").option("path", scene.location).option("readChangeFeed", "true")
    scene.see("changes", feed.option("changeStartBatchId", "0").load())
    scene.see("metadata", scene.spark.read.format("state-metadata").load(scene.location))


@mode("offline repartition of state", conf=ROCKSDB, again=False)
def _(scene: Scene) -> None:
    if scene.life == 2:
        # PySpark 4.3 has no public name for it
        manager = scene.spark._streamingCheckpointManager
        manager.repartition(scene.location, 3)
        scene.see("state", scene.spark.read.format("statestore").option("path", scene.location).load())
    counts(scene)


@mode("changed code: another filter and another number of shuffle partitions")
def _(scene: Scene) -> None:
    partitions = "2" if scene.life == 0 else "4"
    scene.spark.conf.set("spark.sql.shuffle.partitions", partitions)
    rows = scene.rows()
    try:
        scene.to_batches(counted(rows if scene.life == 0 else rows.where("value % 3 = 0"), "key"), "update")
    finally:
        scene.spark.conf.set("spark.sql.shuffle.partitions", "2")


@mode("changed code: a longer watermark and more files in a batch")
def _(scene: Scene) -> None:
    rows = scene.rows() if scene.life == 0 else scene.rows(maxFilesPerTrigger=2)
    timely = rows.withWatermark("at", "5 seconds" if scene.life == 0 else "20 seconds")
    scene.to_batches(counted(timely, f.window("at", "10 seconds")))


@mode("changed code: another key of groupBy", reason="State cannot be used for another key.")
def _(scene: Scene) -> None:
    key = ("key",) if scene.life == 0 else ("key", "batch")
    scene.to_batches(counted(scene.rows(), *key), "update")
