"""A Spark session that reads a stream and a ledger as data: ``python data_job.py '{"metadata": "sqlite:…", …}'``.

Each scene tells what it has seen as a line of JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

STARTS_MAX = 5
"""How often a query is started whose source's worker does not begin in time."""


def ended(run: Any) -> bool:
    """Wait for the end of a query. False: it has not begun, because Spark gives a Python worker ten seconds to begin,
    whatever the machine is like, and knows no setting for that. The next one finds more of Python in memory."""
    try:
        run.awaitTermination()
    except Exception as error:
        if "Python worker failed to connect back" not in str(error):
            raise
        return False
    return True


def main(metadata: str, stream: str, values: str, ledger: int, checkpoint: str) -> None:
    from pyspark.sql import DataFrame, SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = session.config("spark.sql.codegen.factoryMode", "NO_CODEGEN")  # a short job: compiling costs more
    session = session.config("spark.sql.codegen.wholeStage", "false")
    spark = session.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.datasource.bookkeeper.txnAppId", "of the session")  # it would be refused by read as an option

    def table(**options: str) -> DataFrame:
        return spark.read.format("bookkeeper").options(metadata=metadata, **options).load()

    def refused(**options: str) -> str:
        try:
            table(**options).count()
        except Exception as error:
            return str(error)
        return ""

    def query(**options: str) -> tuple[list[list[int]], list[Any]]:
        """The numbers of the records of each batch, and where the progress says that the stream ends."""
        batches: list[list[int]] = []

        def take(rows: DataFrame, _: int) -> None:
            batches.append(sorted(row.seq_no for row in rows.select("seq_no").collect()))

        rows = spark.readStream.format("bookkeeper").options(metadata=metadata, stream=stream, **options).load()
        writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
        writer = writer.trigger(availableNow=True)
        run = writer.start()
        for _ in range(STARTS_MAX - 1):
            if ended(run):
                break
            assert batches == [], "the source's worker begins before the first batch"
            run = writer.start()
        else:
            run.awaitTermination()
        ends = [json.loads(each.sources[0].latestOffset) for each in run.recentProgress]
        return batches, [end["nextSeqNo"] for end in ends if end is not None]  # a batch that is repeated has none

    def tell(**seen: object) -> None:
        sys.stdout.write(json.dumps(seen) + "\n")
        sys.stdout.flush()

    mine = table(stream=stream, minPartitions="3")
    one = mine.where("seq_no = 5").first()
    tell(
        count=mine.count(),
        joined=mine.alias("a").join(mine.alias("b"), "seq_no").count(),
        one=[one.key.decode(), one.value.decode(), one.position.asDict(), one.append_time is not None],
    )
    tell(
        ledger=[[row.entry_id, row.payload.decode()] for row in table(ledger=str(ledger)).orderBy("entry_id").collect()]
    )
    own = spark.read.format("bookkeeper").schema("a INT, _corrupt_record STRING, _seq_no BIGINT")
    read = own.options(metadata=metadata, stream=values, valueFormat="json", mode="PERMISSIVE").load()
    tell(values=[list(row) for row in read.orderBy("_seq_no").collect()])
    tell(
        nothing=table(stream=stream, startingPosition="latest").count()
        + table(ledger=str(ledger), startingPosition="2").count()
    )
    tell(option=refused(stream=stream, startingPositon="latest"), path=refused(stream=stream, path="x"))
    first, ends = query(startingPosition="seq:3", maxRowsPerTrigger="4")
    tell(batches=first, ends=ends)
    Path(checkpoint, "commits", str(len(first) - 1)).unlink()
    Path(checkpoint, "commits", f".{len(first) - 1}.crc").unlink(missing_ok=True)
    tell(repeated=query(startingPosition="latest", maxRowsPerTrigger="1")[0])
    spark.stop()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
