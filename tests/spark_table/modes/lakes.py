"""Delta and Iceberg: jars from Maven, each on the newest Spark for which it is published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import functions as f

from tests.spark_table.input_files import BATCHES, SCHEMA
from tests.spark_table.modes.windows import counted
from tests.spark_table.scene import Scene, mode


@dataclass(frozen=True)
class Lake:
    """What a session needs for tables of one kind."""

    spark: str
    """The newest Spark for which it is published: the first two numbers."""
    jar: str
    """As Maven names it."""
    settings: dict[str, str]

    @property
    def version(self) -> str:
        return self.jar.rpartition(":")[2]

    @property
    def conf(self) -> dict[str, str]:
        """All settings of a session."""
        return {"spark.jars.packages": self.jar, **self.settings}


LAKES: Final = {
    "Delta": Lake(
        "4.2",
        "io.delta:delta-spark_4.2_2.13:4.4.0",
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "1",
        },
    ),
    "Iceberg": Lake(
        "4.1",
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
    ),
}


def see_table(scene: Scene, rows: Any, versions: Any) -> None:
    """Its rows, and how many versions it has."""
    if scene.life == 2:
        scene.see("rows", rows)
        scene.see("versions", versions.count())


def see_delta(scene: Scene) -> None:
    if scene.life == 2:
        place = scene.at("table")
        versions = scene.spark.sql(f"DESCRIBE HISTORY delta.`{place}`")
        see_table(scene, scene.spark.read.format("delta").load(place), versions)


@mode("Delta sink", lake="Delta")
def _(scene: Scene) -> None:
    scene.run(scene.rows().writeStream.format("delta").option("path", scene.at("table")))
    see_delta(scene)


@mode("Delta: foreachBatch with txnAppId and txnVersion", lake="Delta")
def _(scene: Scene) -> None:
    def append(rows: Any, batch: int) -> None:
        rows.write.format("delta").mode("append").options(txnAppId="app", txnVersion=batch).save(scene.at("table"))

    scene.run(scene.rows().writeStream.foreachBatch(append))
    see_delta(scene)


@mode("Delta source", lake="Delta")
def _(scene: Scene) -> None:
    place = scene.at("table")
    if scene.life == 0:
        for batch in range(BATCHES):
            rows = scene.spark.read.schema(SCHEMA).json(f"{scene.inputs('left')}/{batch}.json")
            rows.coalesce(1).write.format("delta").mode("append").save(place)
    source = scene.spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(place)
    scene.to_batches(counted(scene.held(source), "key"), "update")


@mode("Delta: two concurrent writers", lake="Delta")
def _(scene: Scene) -> None:
    if scene.life == 0:  # two that make it refuse each other, at any place
        scene.spark.sql(f"CREATE TABLE delta.`{scene.at('table')}` ({SCHEMA}, side STRING) USING delta")
    writers = [
        scene.rows(side).withColumn("side", f.lit(side)).writeStream.format("delta").option("path", scene.at("table"))
        for side in ("left", "right")
    ]
    scene.run_side_by_side(writers)
    see_delta(scene)


def iceberg(scene: Scene, name: str, columns: str) -> str:
    """A table at the place, which is made in the first life."""
    catalog = scene.name("iceberg_" + name)
    scene.spark.conf.set(f"spark.sql.catalog.{catalog}", "org.apache.iceberg.spark.SparkCatalog")
    scene.spark.conf.set(f"spark.sql.catalog.{catalog}.type", "hadoop")
    scene.spark.conf.set(f"spark.sql.catalog.{catalog}.warehouse", scene.at("warehouse"))
    table = f"{catalog}.db.{name}"
    if scene.life == 0:
        scene.spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg")
    return table


def see_iceberg(scene: Scene, table: str) -> None:
    if scene.life == 2:
        see_table(scene, scene.spark.table(table), scene.spark.table(f"{table}.snapshots"))


@mode("Iceberg sink", lake="Iceberg")
def _(scene: Scene) -> None:
    table = iceberg(scene, "sink", SCHEMA)
    scene.run_to(scene.rows().writeStream.format("iceberg"), table)
    see_iceberg(scene, table)


@mode("Iceberg: MERGE in foreachBatch", lake="Iceberg")
def _(scene: Scene) -> None:
    table = iceberg(scene, "merged", "key STRING, n BIGINT, s BIGINT")

    def merge(rows: Any, batch: int) -> None:
        rows.createOrReplaceTempView("news")
        rows.sparkSession.sql(
            f"MERGE INTO {table} t USING news ON t.key = news.key "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    scene.run(counted(scene.rows(), "key").writeStream.outputMode("update").foreachBatch(merge))
    see_iceberg(scene, table)


@mode("Iceberg source", lake="Iceberg")
def _(scene: Scene) -> None:
    table = iceberg(scene, "source", SCHEMA)
    if scene.life == 0:
        for batch in range(BATCHES):
            rows = scene.spark.read.schema(SCHEMA).json(f"{scene.inputs('left')}/{batch}.json")
            rows.coalesce(1).writeTo(table).append()
    source = scene.spark.readStream.format("iceberg").option("streaming-max-files-per-micro-batch", "1").load(table)
    scene.to_batches(counted(scene.held(source), "key"), "update")


@mode("Iceberg: two concurrent writers", lake="Iceberg")
def _(scene: Scene) -> None:
    table = iceberg(scene, "shared", f"{SCHEMA}, side STRING")
    writers = [
        scene.rows(side).withColumn("side", f.lit(side)).writeStream.format("iceberg") for side in ("left", "right")
    ]
    scene.run_side_by_side(writers, table)
    see_iceberg(scene, table)
