"""Joins of streams with streams and tables."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as f

from tests.spark_table.scene import ROCKSDB, Scene, mode


def joined(scene: Scene, kind: str) -> Any:
    left = scene.rows("left").withWatermark("at", "5 seconds").alias("l")
    right = scene.rows("right").withWatermark("at", "5 seconds").alias("r")
    near = f.expr("l.key = r.key AND r.at BETWEEN l.at - INTERVAL 8 SECONDS AND l.at + INTERVAL 8 SECONDS")
    found = left.join(right, near, kind)
    if kind == "left_semi":
        return found.select("l.key", "l.value", "l.at")
    names = {"key": "l.key", "lv": "l.value", "at": "l.at", "rk": "r.key", "rv": "r.value"}
    return found.select(*(f.col(column).alias(name) for name, column in names.items()))


@mode("stream-stream join, inner")
def _(scene: Scene) -> None:
    scene.to_batches(joined(scene, "inner"))


@mode("stream-stream join, left outer")
def _(scene: Scene) -> None:
    scene.to_batches(joined(scene, "left_outer"))


@mode("stream-stream join, right outer")
def _(scene: Scene) -> None:
    scene.to_batches(joined(scene, "right_outer"))


@mode("stream-stream join, full outer")
def _(scene: Scene) -> None:
    scene.to_batches(joined(scene, "full_outer"))


@mode("stream-stream join, left semi")
def _(scene: Scene) -> None:
    scene.to_batches(joined(scene, "left_semi"))


@mode(
    "stream-stream join, full outer, RocksDB with virtual column families",
    conf={**ROCKSDB, "spark.sql.streaming.join.stateFormatVersion": "3"},
)
def _(scene: Scene) -> None:
    scene.to_batches(joined(scene, "full_outer"))


@mode("stream-static join, inner")
def _(scene: Scene) -> None:
    names = scene.table("right").groupBy("key").agg(f.max("value").alias("top"))
    scene.to_batches(scene.rows().join(names, "key").select("key", "value", "top"))
