"""Projections, aggregations, windows and duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import functions as f

from tests.spark_table.scene import ROCKSDB, Scene, mode


def counted(rows: Any, *by: Any) -> Any:
    return rows.groupBy(*by).agg(f.count("*").alias("n"), f.sum("value").alias("s"))


def timely(scene: Scene, delay: str = "10 seconds") -> Any:
    return scene.rows().withWatermark("at", delay)


@mode("projection and filter")
def _(scene: Scene) -> None:
    scene.to_batches(scene.rows().where("value % 2 = 0").select("key", f.expr("value * 2").alias("double")))


@mode("mapInPandas")
def _(scene: Scene) -> None:
    def doubled(frames: Iterator[Any]) -> Iterator[Any]:
        for frame in frames:
            yield frame.assign(value=frame["value"] * 2)[["key", "value"]]

    scene.to_batches(scene.rows().mapInPandas(doubled, "key STRING, value BIGINT"))


@mode("groups of each batch with applyInPandas (as mapGroups)")
def _(scene: Scene) -> None:
    def longest(frame: Any) -> Any:
        return frame.nlargest(1, "value")[["key", "value"]]

    scene.to_batches(scene.rows().groupBy("key").applyInPandas(longest, "key STRING, value BIGINT"))


@mode("union of two streams with watermarks")
def _(scene: Scene) -> None:
    both = timely(scene).union(scene.rows("right").withWatermark("at", "4 seconds"))
    scene.to_batches(counted(both, f.window("at", "10 seconds")))


@mode("groupBy, update")
def _(scene: Scene) -> None:
    scene.to_batches(counted(scene.rows(), "key"), "update")


@mode("groupBy, complete, sorted")
def _(scene: Scene) -> None:
    scene.to_batches(counted(scene.rows(), "key").orderBy("key"), "complete")


@mode("groupBy, append without a watermark", reason="Spark needs a watermark for it.")
def _(scene: Scene) -> None:
    scene.to_batches(counted(scene.rows(), "key"))


@mode("tumbling windows, append")
def _(scene: Scene) -> None:
    scene.to_batches(counted(timely(scene), f.window("at", "10 seconds"), "key"))


@mode(
    "tumbling windows, update, without batches that have no data",
    conf={"spark.sql.streaming.noDataMicroBatches.enabled": "false"},
)
def _(scene: Scene) -> None:
    scene.to_batches(counted(timely(scene), f.window("at", "10 seconds")), "update")


@mode("sliding windows, append")
def _(scene: Scene) -> None:
    scene.to_batches(counted(timely(scene), f.window("at", "20 seconds", "5 seconds")))


@mode("session windows, append")
def _(scene: Scene) -> None:
    scene.to_batches(counted(timely(scene), f.session_window("at", "7 seconds"), "key"))


@mode("session windows, append, RocksDB", conf=ROCKSDB)
def _(scene: Scene) -> None:
    scene.to_batches(counted(timely(scene), f.session_window("at", "7 seconds"), "key"))


@mode("chained aggregations")
def _(scene: Scene) -> None:
    small = counted(timely(scene), f.window("at", "5 seconds"), "key")
    scene.to_batches(small.groupBy(f.window(f.window_time("window"), "20 seconds")).agg(f.sum("n").alias("n")))


@mode("dropDuplicates")
def _(scene: Scene) -> None:
    scene.to_batches(scene.rows().dropDuplicates(["key"]))


@mode("dropDuplicates with a watermark")
def _(scene: Scene) -> None:
    scene.to_batches(timely(scene).dropDuplicates(["key", "at"]))


@mode("dropDuplicatesWithinWatermark")
def _(scene: Scene) -> None:
    scene.to_batches(timely(scene).dropDuplicatesWithinWatermark(["key"]))


@mode("limit")
def _(scene: Scene) -> None:
    scene.to_batches(scene.rows().coalesce(1).limit(20))
