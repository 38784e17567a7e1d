"""``bk stream export``, ``import``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.segments.commands.helpers import Streams


def test_a_copy_in_another_cluster(tmp_path: Path) -> None:
    streams, others = Streams(tmp_path / "one"), Streams(tmp_path / "two")
    streams.filled()
    file = str(tmp_path / "orders.stream")
    (tmp_path / "orders.stream.part").symlink_to(tmp_path / "laid")
    assert streams.run("export", "orders", file).startswith("copied orders from 1:0:0 to 3:")
    assert not (tmp_path / "orders.stream.part").exists() and not (tmp_path / "laid").exists()
    assert Path(file).stat().st_mode & 0o777 == 0o600
    others.create("first")
    assert others.run("import", file, "--dry-run").startswith(
        "FILE is whole; it would become orders: 3 segments, 9 rec"
    )
    assert "orders" not in others.run("list")
    made = others.json("import", file, "--name", "copy", "--set", "retention.max_records=100")
    assert (made["stream"], made["records"], made["start"]) == ("copy", 9, "earliest")
    shown = others.json("show", "copy")
    assert shown["last"] == streams.json("show", "orders")["last"]
    assert shown["settings"]["retention"]["max_records"] == 100
    assert "there is a stream copy already" in others.run("import", file, "--name", "copy", status=1)
    assert others.run("check") == "all streams: nothing is wrong\n"


def test_a_part_of_a_stream(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled()
    file = str(tmp_path / "part")
    found = streams.json("export", "orders", file, "--from", "2:0:1", "--to", "3:0:0")
    assert (found["start"], found["segments"]) == ("2:0:1", 1)
    assert streams.json("import", file, "--name", "part")["start"] == "2:0:1"


def test_a_damaged_file_makes_no_stream_and_a_failed_export_no_file(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled(segments=1)
    file = tmp_path / "orders.stream"
    streams.run("export", "orders", str(file))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert "damaged between bytes" in streams.run("import", str(file), "--name", "copy", status=1)
    assert len(streams.json("list")) == 1
    assert "there is no stream" in streams.run("export", "others", str(tmp_path / "others"), status=1)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["orders.stream"]


def test_no_file_is_named_like_standard_output_by_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cause: ``-`` was the name of a file, while ``import`` took it for standard input, as nearly all programs do."""
    streams = Streams(tmp_path / "one")
    streams.filled()
    monkeypatch.chdir(tmp_path)
    said = streams.run("export", "orders", "-", status=2)
    assert "a stream is copied to a file and not to standard output" in said and "whole path" in said
    assert not (tmp_path / "-").exists()
    streams.run("export", "orders", str(tmp_path / "-"))
    assert (tmp_path / "-").exists()
