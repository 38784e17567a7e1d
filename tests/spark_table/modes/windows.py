"""Aggregations, windows and duplicates."""

from __future__ import annotations

from pyspark.sql import functions as f

from tests.spark_table.scene import Scene, mode


@mode("groupBy().count(), update")
def _(scene: Scene) -> None:
    scene.to_batches(scene.rows().groupBy("key").agg(f.count("*").alias("n"), f.sum("value").alias("s")), "update")


@mode("dropDuplicates")
def _(scene: Scene) -> None:
    scene.to_batches(scene.rows().dropDuplicates(["key"]))
