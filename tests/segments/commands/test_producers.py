"""``bk stream producer``."""

from __future__ import annotations

from pathlib import Path

from tests.segments.commands.helpers import Streams


def test_a_name_is_handed_over_and_back_to_nobody(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.create()
    said = streams.run("producer", "hand-over", "orders", "loader", "etl")
    assert said == "producer loader of orders belongs to etl\n"
    assert streams.json("producer", "list", "orders") == [{"producer": "loader", "belongs_to": "etl"}]
    said = streams.run("producer", "hand-over", "orders", "loader", "etl", "--nobody", status=2)
    assert "name who gets it, or give --nobody" in said
    said = streams.run("producer", "hand-over", "orders", "loader", "--nobody")
    assert said == "producer loader of orders belongs to nobody\n"
    assert streams.run("producer", "list", "orders") == "no producer of orders belongs to anybody\n"
