"""How much is on a disk."""

from __future__ import annotations

from pathlib import Path

from examples.demo_heal.watch import bytes_below


def test_all_files_below_a_directory_count(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_bytes(bytes(10))
    (tmp_path / "two").write_bytes(bytes(5))
    assert bytes_below(tmp_path) == 15
    assert bytes_below(tmp_path / "gone") == 0
