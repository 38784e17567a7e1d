"""What a batch of ``foreachBatch`` is told."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import spark_wal
from spark_wal.data_source.options import write_settings


class Rows:
    """The writer of a DataFrame, which notes what it is told."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}
        self.saved = 0

    @property
    def write(self) -> Rows:
        return self

    def format(self, name: str) -> Rows:
        return self.option("format", name)

    def mode(self, name: str) -> Rows:
        return self.option("mode", name)

    def option(self, name: str, value: Any) -> Rows:
        self.told[name] = value
        return self

    def options(self, **options: Any) -> Rows:
        self.told |= options
        return self

    def save(self) -> None:
        self.saved += 1


def test_a_batch_is_written_under_its_application_and_number() -> None:
    rows = Rows()
    spark_wal.batch_writer(metadata="sqlite:///m.db", stream="totals", app="app", createStream="true")(rows, 7)
    assert rows.saved == 1
    assert (rows.told.pop("format"), rows.told.pop("mode")) == ("bookkeeper", "append")
    settings = write_settings(rows.told, streaming=False)
    assert (settings.metadata, settings.stream, settings.app, settings.version) == (
        "sqlite:///m.db",
        "totals",
        "app",
        7,
    )
    assert settings.create


def test_it_is_there_without_an_http_library() -> None:
    """The cause: every name of the package imported the gateway, and a program that only writes batches has no
    aiohttp."""
    code = "import sys; sys.modules['aiohttp'] = None; import spark_wal; print(spark_wal.batch_writer.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "batch_writer\n", done.stderr
