"""``make bench``: print the table; ``python -m benchmarks ledgers|gateway|spark|hostile|journals|streams``: a part.

``journals`` ends with ``replay``, the replay of HDFS's edits, which can be had alone.

``python -m benchmarks apache`` is another program, with options of its own: see :mod:`benchmarks.apache`.
``python -m benchmarks rivals`` measures streams beside other durable logs: see :mod:`benchmarks.rivals`.
``python -m benchmarks layouts [--megabytes N]`` compares the two layouts of entry logs: see :mod:`benchmarks.layouts`.
``python -m benchmarks disk [--megabytes N]`` measures restarts, the index and long reads: see
:mod:`benchmarks.bookie_disk` and :mod:`benchmarks.batch_reads`.
``python -m benchmarks directories`` compares one ledger directory with three: see :mod:`benchmarks.directories`.
``python -m benchmarks spark-data [--records N --batches N]`` compares what Spark reads and writes of a stream with what
that cannot cost less than: see :mod:`benchmarks.spark_data`.
``python -m benchmarks healing [ROW...]`` measures repair, compaction and audits: see :mod:`benchmarks.healing`.
``python -m benchmarks instructions [ROW...]`` counts instructions and system calls: see :mod:`benchmarks.instructions`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks import (
    batch_reads,
    bookie_disk,
    directories,
    gateway,
    hostile,
    journals,
    layouts,
    ledgers,
    random_reads,
    replay,
    spark,
    spark_data,
    streams,
)
from benchmarks.calibration import calibrate
from benchmarks.report import Report

EVERYTHING: Final = ("ledgers", "gateway", "spark", "hostile", "journals", "streams")


def main() -> None:
    if not _ran_program(sys.argv[1:2], sys.argv[2:]):
        _measure_rows()


def _ran_program(name: list[str], arguments: list[str]) -> bool:
    """Run one of the programs that have options of their own, if that is its name."""
    if name == ["apache"]:
        from benchmarks.apache import command

        command.main(arguments)
    elif name == ["rivals"]:
        from benchmarks.rivals import command as rivals

        rivals.main(arguments)
    elif name == ["healing"]:
        _heal(arguments)
    elif name == ["instructions"]:
        from benchmarks import instructions

        with tempfile.TemporaryDirectory(prefix="bk-instructions-") as directory:
            instructions.measure(arguments, Path(directory))
    else:
        return False
    return True


def _measure_rows() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description="Measure; nothing is asserted.")
    parser.add_argument(
        "rows",
        nargs="*",
        choices=[*EVERYTHING, "layouts", "disk", "random-reads", "directories", "replay", "spark-data", []],
        help="default: all but layouts, disk, random-reads, directories and spark-data; replay is a part of journals",
    )
    parser.add_argument(
        "--megabytes", type=int, default=layouts.MEGABYTES, help="layouts, disk, random-reads: what is written"
    )
    size = spark_data.Size()
    parser.add_argument("--records", type=int, default=size.rows, help="spark-data: what is read and written")
    parser.add_argument("--batches", type=int, default=size.batches, help="spark-data: from stream to stream")
    parser.add_argument("--dir", type=Path, help="where the bookies' files go: put it on the disk that matters")
    arguments = parser.parse_args()
    wanted = arguments.rows or EVERYTHING
    report = Report()
    with tempfile.TemporaryDirectory(prefix="bk-bench-", dir=arguments.dir) as name:
        directory = Path(name)
        calibration = calibrate(directory)
        report.heading(calibration.text())
        if "ledgers" in wanted:
            ledgers.measure(report, calibration, directory)
        if "gateway" in wanted:
            gateway.measure(report, directory)
        if "spark" in wanted:
            spark.measure(report, directory)
        if "spark-data" in wanted:
            spark_data.measure(report, directory, spark_data.Size(rows=arguments.records, batches=arguments.batches))
        if "hostile" in wanted:
            hostile.measure(report, directory)
        if "journals" in wanted:
            journals.measure(report, directory)
        elif "replay" in wanted:
            replay.measure(report)
        if "layouts" in wanted:
            layouts.measure(report, directory, arguments.megabytes)
        if "disk" in wanted:
            bookie_disk.measure(report, directory, arguments.megabytes)
            batch_reads.measure(report, directory / "batch-reads", arguments.megabytes)
        if "random-reads" in wanted:
            random_reads.measure(report, directory, arguments.megabytes)
        if "directories" in wanted:
            directories.measure(report, directory)
        if "streams" in wanted:
            streams.measure(report, directory)
        report.heading(f"at the end: {calibrate(directory).text()}")
    report.table()


def _heal(wanted: list[str]) -> None:
    """The rows of healing, which take a quarter of an hour, and are not in ``make bench``."""
    from benchmarks.healing import rows

    report = Report()
    with tempfile.TemporaryDirectory(prefix="bk-healing-") as name:
        rows.measure(report, Path(name), wanted)
    report.table()


if __name__ == "__main__":
    main()
