"""``bk journal snapshot``: out of a journal, into it, and away."""

from __future__ import annotations

from pathlib import Path

from tests.journal_manager.commands.helpers import as_json, bk_journal, damage, filled


def test_list_and_delete(tmp_path: Path) -> None:
    uri = filled(tmp_path)
    assert [row["at"] for row in as_json("snapshot", "list", uri)] == [3, 5]
    assert "snapshots" in bk_journal("snapshot", "list", uri)
    assert bk_journal("snapshot", "delete", uri, "5", "--yes") == "removed: the snapshot at edit 5\n"
    assert "there is no snapshot at edit 5" in bk_journal("snapshot", "delete", uri, "5", "--yes", status=1)


def test_export_verifies_before_the_file_appears(tmp_path: Path) -> None:
    uri, file = filled(tmp_path), tmp_path / "state"
    assert "the snapshot at edit 5: 10 bytes" in bk_journal("snapshot", "export", uri, str(file))
    assert file.read_bytes() == b"state at 5" and file.stat().st_mode & 0o777 == 0o600
    damage(uri, "snapshot_0000000000000000005")
    other = tmp_path / "other"
    assert "is damaged" in bk_journal("snapshot", "export", "--at", "5", uri, str(other), status=1)
    assert not other.exists()
    bk_journal("snapshot", "export", uri, str(other))
    assert other.read_bytes() == b"state at 3", "the newest that is intact"
    assert "no snapshot at edit 4" in bk_journal("snapshot", "export", "--at", "4", uri, str(other), status=1)
    assert other.read_bytes() == b"state at 3"


def test_import_is_bounded_by_what_is_durable(tmp_path: Path) -> None:
    uri, file = filled(tmp_path), tmp_path / "state"
    file.write_bytes(b"made elsewhere")
    assert "durable up to edit 7" in bk_journal("snapshot", "import", "--at", "8", uri, str(file), "--yes", status=1)
    assert "edit 7: 14 bytes" in bk_journal("snapshot", "import", "--at", "7", uri, str(file), "--yes")
    bk_journal("snapshot", "export", uri, str(tmp_path / "again"))
    assert (tmp_path / "again").read_bytes() == b"made elsewhere"
