"""Sinks and sources that are directories or tables, and triggers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import functions as f

from tests.spark_table.modes.windows import counted
from tests.spark_table.scene import ROCKSDB, Scene, mode, put

PROGRESS = {"asyncProgressTrackingEnabled": "true", "asyncProgressTrackingCheckpointIntervalMs": "0"}


def see_files(scene: Scene, directory: str, form: str = "parquet") -> None:
    if scene.life == 2:
        scene.see("rows", getattr(scene.spark.read, form)(scene.at(directory)))


@mode("foreachBatch overwrites a table")
def _(scene: Scene) -> None:
    def write(rows: Any, batch: int) -> None:
        table = rows.withColumn("written", f.lit(batch)).coalesce(1).write.mode("overwrite")
        table.option("path", scene.at("table")).saveAsTable(scene.name("overwritten"))

    scene.run(counted(scene.rows(), "key").writeStream.outputMode("complete").foreachBatch(write))
    if scene.life == 2:
        scene.see("rows", scene.spark.table(scene.name("overwritten")))


class Noting:
    """A foreach sink: notes the rows of each partition of a batch."""

    def __init__(self, out: Path) -> None:
        self._out = out

    def open(self, partition: int, batch: int) -> bool:
        self._path, self._rows = self._out / f"partition.{batch}-{partition}", list[Any]()
        return True

    def process(self, row: Any) -> None:
        self._rows.append(row.asDict())

    def close(self, error: Exception | None) -> None:
        if error is None:
            put(self._path, self._rows)


@mode("foreach")
def _(scene: Scene) -> None:
    scene.run(scene.rows().writeStream.foreach(Noting(scene.out)))


@mode("memory sink, complete")
def _(scene: Scene) -> None:
    rows = counted(scene.rows(), "key").writeStream.format("memory").outputMode("complete")
    scene.run(rows.queryName(scene.name("memory")))
    if scene.life > 0:
        scene.see(f"rows {scene.life}", scene.spark.table(scene.name("memory")))


@mode("memory sink, append", reason="Its rows are gone with the driver, so Spark does not go on.")
def _(scene: Scene) -> None:
    scene.run(scene.rows().writeStream.format("memory").queryName(scene.name("memory_append")))


@mode("file sink")
def _(scene: Scene) -> None:
    scene.run(scene.rows().writeStream.format("parquet").option("path", scene.at("out")))
    see_files(scene, "out")


@mode(
    "file sink of windows in directories, its log compacted",
    conf={"spark.sql.streaming.fileSink.log.compactInterval": "3"},
)
def _(scene: Scene) -> None:
    windows = counted(scene.rows().withWatermark("at", "10 seconds"), f.window("at", "10 seconds"), "key")
    flat = windows.select("key", "n", f.date_format("window.start", "HHmmss").alias("start"))
    scene.run(flat.writeStream.format("json").partitionBy("start").option("path", scene.at("out")))
    see_files(scene, "out", "json")


@mode(
    "file source at the same place, its log compacted", conf={"spark.sql.streaming.fileSource.log.compactInterval": "2"}
)
def _(scene: Scene) -> None:
    scene.put_inputs("in")
    scene.to_batches(scene.held(scene.files(scene.at("in"))))


@mode("a file sink is another query's source")
def _(scene: Scene) -> None:
    if scene.life == 0:
        first = scene.files(scene.inputs("left")).writeStream.format("json").option("path", scene.at("between"))
        query = first.option("checkpointLocation", scene.at("checkpoint of the first")).start()
        query.processAllAvailable()
        query.stop()
    scene.to_batches(scene.held(scene.files(scene.at("between"))))


CLEANER = {"spark.sql.streaming.fileSource.cleaner.numThreads": "0"}


@mode("file source, cleanSource=archive", conf=CLEANER)
def _(scene: Scene) -> None:
    scene.put_inputs("in")
    source = scene.files(scene.at("in"), cleanSource="archive", sourceArchiveDir=scene.at("archive"))
    scene.to_batches(scene.held(source))
    if scene.life == 2:
        scene.see("left", scene.names("in"))
        scene.see("archived", [name.rpartition("/")[2] for name in scene.names("archive")])


@mode("toTable")
def _(scene: Scene) -> None:
    writer = scene.rows().writeStream.format("parquet").option("path", scene.at("table"))
    scene.run_to(writer, scene.name("streamed"))
    if scene.life == 2:
        scene.see("rows", scene.spark.table(scene.name("streamed")))


def counts(scene: Scene) -> Any:
    return counted(scene.rows(), "key").writeStream.outputMode("update").foreachBatch(scene.take)


@mode("trigger availableNow")
def _(scene: Scene) -> None:
    scene.run(counts(scene).trigger(availableNow=True), ends=True)


@mode("trigger once")
def _(scene: Scene) -> None:
    scene.run(counts(scene).trigger(once=True), ends=True, held_in=0)


@mode("observed metrics")
def _(scene: Scene) -> None:
    rows = scene.rows().observe("sums", f.count("*").alias("n"), f.sum("value").alias("s"))
    query = scene.to_batches(rows)
    if scene.life > 0:
        observed = {
            each.batchId: each.observedMetrics["sums"].asDict() for each in query.recentProgress if each.numInputRows
        }
        scene.see(f"metrics {scene.life}", observed)


@mode("asynchronous progress tracking", again=False)
def _(scene: Scene) -> None:
    scene.run(scene.rows().writeStream.foreach(Noting(scene.out)).options(**PROGRESS))


@mode("asynchronous progress tracking, stateful", reason="Spark has it for stateless queries only.")
def _(scene: Scene) -> None:
    writer = counted(scene.rows(), "key").writeStream.outputMode("update").foreach(Noting(scene.out))
    scene.run(writer.options(**PROGRESS))


@mode(
    "Real-Time Mode",
    conf=ROCKSDB,
    reason="A source must be made for it, as Kafka's is; files are not, and none in Python can be.",
)
def _(scene: Scene) -> None:
    scene.run(scene.rows().writeStream.outputMode("update").format("console").trigger(realTime="5 seconds"))


@mode("trigger continuous", reason="Spark has it for few sources, files are none of them.")
def _(scene: Scene) -> None:
    scene.run(scene.rows().writeStream.format("console").trigger(continuous="1 second"))
