"""Joins of streams with streams and tables."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as f

from tests.spark_table.scene import Scene, mode


def joined(scene: Scene, kind: str) -> Any:
    left = scene.rows("left").withWatermark("at", "5 seconds").alias("l")
    right = scene.rows("right").withWatermark("at", "5 seconds").alias("r")
    near = f.expr("l.key = r.key AND r.at BETWEEN l.at - INTERVAL 8 SECONDS AND l.at + INTERVAL 8 SECONDS")
    found = left.join(right, near, kind)
    if kind == "left_semi":
        return found.select("l.key", "l.value")
    return found.select("l.key", f.col("l.value").alias("lv"), f.col("r.key").alias("rk"), f.col("r.value").alias("rv"))


@mode("stream-stream join, left outer")
def _(scene: Scene) -> None:
    scene.to_batches(joined(scene, "left_outer"))
