"""How a feeder goes on where its predecessor stopped."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from examples.demo_pipeline.feeder import BATCH, batches, flights
from segments import Record


def test_what_is_in_the_stream_is_not_appended_again() -> None:
    records = [Record(b"%d" % number) for number in range(2 * BATCH + 5)]
    whole = list(batches(records, 100, 0))
    assert [(seq, len(batch)) for seq, batch in whole] == [(100, BATCH), (100 + BATCH, BATCH), (100 + 2 * BATCH, 5)]
    rest = list(batches(records, 100, 103 + BATCH))
    assert [(seq, len(batch)) for seq, batch in rest] == [(103 + BATCH, BATCH), (103 + 2 * BATCH, 2)]
    assert rest[0][1][0].value == b"%d" % (3 + BATCH)
    assert not list(batches(records, 100, 100 + len(records)))


def test_a_flight_is_json_with_its_time_in_utc(tmp_path: Path) -> None:
    scheduled = datetime(2013, 1, 1, 10, 15, tzinfo=UTC)
    row = {"scheduled": scheduled, "carrier": "UA", "origin": "JFK", "flight": 7, "delay": None}
    schema = pa.schema([("scheduled", pa.timestamp("us", tz="UTC")), ("carrier", pa.string()), ("origin", pa.string())])
    schema = schema.append(pa.field("flight", pa.int32())).append(pa.field("delay", pa.int32()))
    path = tmp_path / "f.parquet"
    pq.write_table(pa.Table.from_pylist([row], schema=schema), path)
    (record,) = flights(path)
    assert record.value == (
        b'{"scheduled":"2013-01-01T10:15:00.000Z","carrier":"UA","origin":"JFK","flight":7,"delay":null}'
    )
    assert (record.key, record.event_time) == (b"UA", scheduled)
