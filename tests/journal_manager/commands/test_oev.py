"""``bk journal oev`` prints what Hadoop's tool prints, and says where a file is damaged."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from journal_manager.commands.oev import oev
from journal_manager.hdfs import encode_edits_header
from tests.journal_manager.hdfs import VECTORS, vector


def run(*arguments: str, data: bytes = b"") -> Result:
    return CliRunner().invoke(oev, arguments, input=data)


def test_xml_as_hadoop_prints_it() -> None:
    result = run(str(VECTORS / "every_op.bin"))
    assert result.exit_code == 0
    assert result.stdout_bytes == vector("every_op.xml")


def test_json_lines_also_from_standard_input() -> None:
    result = run("-p", "json", "-", data=vector("edits_1-534.bin"))
    assert result.exit_code == 0
    assert result.stdout_bytes == vector("edits.jsonl")


def test_damage_ends_the_output_and_is_said(tmp_path: Path) -> None:
    damaged = bytearray(vector("edits_1-534.bin"))
    damaged[200] ^= 1
    path = tmp_path / "edits"
    path.write_bytes(damaged)
    result = run("-p", "json", str(path))
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 3
    assert "Error: the checksum of the edit at byte" in result.stderr
    result = run("-p", "json", "--recover", str(path))
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 533
    assert "are not an edit, and were skipped" in result.stderr


def test_a_file_without_edits_and_one_of_a_newer_layout() -> None:
    empty = run("-", data=encode_edits_header(-66))
    assert empty.stdout.splitlines()[-2:] == ["  <EDITS_VERSION>-66</EDITS_VERSION>", "</EDITS>"]
    newer = run("-", data=encode_edits_header(-68))
    assert newer.exit_code == 1
    assert "layout -68" in newer.stderr
