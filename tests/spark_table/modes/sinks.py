"""Sinks and sources that are directories or tables."""

from __future__ import annotations

from tests.spark_table.scene import Scene, mode


@mode("file sink")
def _(scene: Scene) -> None:
    scene.run(scene.rows().writeStream.format("parquet").option("path", scene.at("out")))
    if scene.life == 2:
        scene.see("rows", scene.spark.read.parquet(scene.at("out")))
