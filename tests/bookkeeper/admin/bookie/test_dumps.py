"""``bk bookie journal dump``, ``log dump``, ``index dump``, ``last-mark``: all is shown, damage in its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bookkeeper.admin.bookie.stopped import flip, names, written
from tests.bookkeeper.admin.commands import Said, bk


def lines(said: Said, status: int = 0) -> list[dict[str, Any]]:
    assert said.status == status, (said.out, said.err)
    return [json.loads(line) for line in said.out.splitlines()]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return written(tmp_path, 1, 2)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    return written(tmp_path, 1, 2, clean=False)


def test_every_group_of_the_journal_is_shown_with_its_ledgers(killed: Path) -> None:
    rows = [row for row in lines(bk("bookie", "journal", "dump", "--dir", killed, "--json")) if "records" in row]
    sequences = [row["sequence"] for row in rows]
    assert sequences == list(range(sequences[0], sequences[0] + len(rows))) and len(rows) >= 7
    assert {ledger for row in rows for ledger in row["ledgers"]} == {1, 2}
    shown = bk("bookie", "journal", "dump", "--dir", killed)
    assert "durable below" in shown.out and "ledgers 1" in shown.out and "unused from byte" in shown.out


def test_records_of_one_ledger_are_shown_without_keys_and_payloads(killed: Path) -> None:
    said = bk("bookie", "journal", "dump", "--dir", killed, "--ledger", "1", "--json")
    rows = [row for row in lines(said) if "what" in row]
    assert [row["entry"] for row in rows if row["what"] == "entry"] == list(range(30))
    assert {row["what"] for row in rows} == {"entry", "master key", "fence"} and {row["ledger"] for row in rows} == {1}
    assert "kkkk" not in said.out and "1/0" not in said.out


def test_a_clean_stop_is_named(home: Path) -> None:
    assert "clean stop" in bk("bookie", "journal", "dump", "--dir", home).out
    assert bk("bookie", "journal", "dump", "--dir", home, "zz").status == 2
    bk("bookie", "journal", "dump", "--dir", home, "ffff").refused("has no journal file 000000000000ffff")


@pytest.mark.rule("K9")
def test_a_damaged_group_is_shown_in_its_place_and_what_follows_too(killed: Path) -> None:
    (path,) = [path for path in names(killed, ".journal") if b"1/0 " in path.read_bytes()]
    rows = [row for row in lines(bk("bookie", "journal", "dump", "--dir", killed, "--json")) if "records" in row]
    flip(path, rows[2]["offset"] + 200)
    rows = lines(bk("bookie", "journal", "dump", "--dir", killed, "--json"), status=1)
    kinds = ["damaged" if "damaged" in row else row.get("sequence") for row in rows if "remark" not in row]
    assert kinds[2] == "damaged" and kinds[3] == 4 and len(kinds) >= 7
    said = bk("bookie", "journal", "dump", "--dir", killed)
    assert said.status == 1 and "!! " in said.out and "hold no valid group; later ones do" in said.out


def test_the_header_of_a_journal_file_may_be_damaged(killed: Path) -> None:
    flip(names(killed, ".journal")[-1], 5)
    said = bk("bookie", "journal", "dump", "--dir", killed)
    assert said.status == 1 and "is damaged: its checksum does not match" in said.out


def test_logs_are_shown_by_their_maps_or_record_by_record(home: Path) -> None:
    rows = [row for row in lines(bk("bookie", "log", "dump", "--dir", home, "--json")) if "ledger" in row]
    assert sum(row["records"] for row in rows if row["ledger"] == 2) == 31, "30 entries and the key"
    said = bk("bookie", "log", "dump", "--dir", home, "--records", "--ledger", "2", "--json")
    records = [row for row in lines(said) if "what" in row]
    assert [row["entry"] for row in records if row["what"] == "entry"] == list(range(30))
    only = lines(bk("bookie", "log", "dump", "--dir", home, "--json", "000001"))
    assert {row["log"] for row in only} == {"000001"}
    assert "finished" in bk("bookie", "log", "dump", "--dir", home).out
    bk("bookie", "log", "dump", "--dir", home, "ff").refused("has no entry log 0000ff")


def test_what_no_checkpoint_has_covered_is_shown_as_such(killed: Path) -> None:
    path = names(killed, ".log")[-1]
    path.write_bytes(path.read_bytes() + bytes(100))
    assert "what no checkpoint has covered" in bk("bookie", "log", "dump", "--dir", killed).out


@pytest.mark.rule("G4")
def test_a_damaged_record_is_shown_in_its_place_and_what_follows_too(home: Path) -> None:
    records = [
        row
        for row in lines(bk("bookie", "log", "dump", "--dir", home, "--records", "--json", "000001"))
        if "what" in row
    ]
    third, fourth = records[2], records[3]
    flip(names(home, "000001.log")[0], third["offset"] + 60)
    rows = lines(bk("bookie", "log", "dump", "--dir", home, "--records", "--json", "000001"), status=1)
    at = next(at for at, row in enumerate(rows) if "damaged" in row)
    assert rows[at]["offset"] == third["offset"] and rows[at]["bytes"] == fourth["offset"] - third["offset"]
    assert rows[at + 1]["offset"] == fourth["offset"]


@pytest.mark.parametrize("place", [4, -5])
def test_header_and_footer_of_a_log_may_be_damaged_and_the_ledgers_are_counted(home: Path, place: int) -> None:
    path = names(home, "000001.log")[0]
    before = [row for row in lines(bk("bookie", "log", "dump", "--dir", home, "--json", "1")) if "ledger" in row]
    flip(path, place if place > 0 else path.stat().st_size + place)
    rows = lines(bk("bookie", "log", "dump", "--dir", home, "--json", "1"), status=1)
    assert any("damaged" in row for row in rows)
    assert [row for row in rows if "ledger" in row] == before


def test_the_index_says_what_it_knows_of_ledgers_and_where_entries_are(home: Path) -> None:
    rows = lines(bk("bookie", "index", "dump", "--dir", home, "--ledger", "1", "--json"))
    state = [row for row in rows if "fenced" in row][-1]
    assert state["fenced"] and state["last_of_all"] == 29
    places = lines(bk("bookie", "index", "dump", "--dir", home, "--ledger", "1", "--places", "--json"))
    found = {row["first_entry"]: (row["log"], row["offset"]) for row in places if row.get("what") == "entry"}
    records = lines(bk("bookie", "log", "dump", "--dir", home, "--records", "--ledger", "1", "--json"))
    assert found == {row["entry"]: (row["log"], row["offset"]) for row in records if row.get("what") == "entry"}
    assert "fenced" in bk("bookie", "index", "dump", "--dir", home).out


@pytest.mark.rule("K19")
def test_a_damaged_page_of_the_index_is_shown_in_its_place(home: Path) -> None:
    (path,) = [path for path in names(home, ".index") if path.stat().st_size > 4096 + 240]
    flip(path, 4096 + 3)
    rows = lines(bk("bookie", "index", "dump", "--dir", home, "--places", "--json"), status=1)
    at = next(at for at, row in enumerate(rows) if "damaged" in row)
    assert rows[at]["ledger"] == 1 and rows[at + 1].get("ledger") == 2, "the next page is shown"
    flip(path, path.stat().st_size - 3)
    assert "is damaged" in bk("bookie", "index", "dump", "--dir", home).out


def test_a_deleted_ledger_is_shown_as_such(tmp_path: Path) -> None:
    written(tmp_path, 1, 2, drop=(1,))
    rows = lines(bk("bookie", "index", "dump", "--dir", tmp_path, "--json"))
    said = [(row["segment"], row["ledger"]) for row in rows if row.get("what") == "deleted"]
    assert [ledger for _, ledger in said] == [1, 1] and len(dict(said)) == 2, "in two segments"
    assert "index, the list of all deletions" in bk("bookie", "index", "dump", "--dir", tmp_path).out


def test_the_mark_says_what_is_covered(home: Path) -> None:
    found = bk("bookie", "last-mark", "--dir", home, "--json").document
    assert found["clean"] and found["start"] == 7 and found["group"] >= 7 and not found["damaged"]
    assert "stopped cleanly: yes" in bk("bookie", "last-mark", "--dir", home).out


def test_after_a_kill_it_says_what_a_start_reads(killed: Path) -> None:
    found = bk("bookie", "last-mark", "--dir", killed)
    assert "stopped cleanly: no" in found.out and ".journal" in found.out


def test_without_a_manifest_or_without_directories_there_is_a_sentence(home: Path, tmp_path: Path) -> None:
    (home / "ledgers" / "manifest").unlink()
    bk("bookie", "last-mark", "--dir", home).refused("manifest is missing")
    assert bk("bookie", "log", "dump", "--dir", home).status == 1
    assert bk("bookie", "index", "dump", "--dir", home).status == 1
    bk("bookie", "last-mark", "--dir", tmp_path / "none").refused("there are no files of a bookie")


def test_directories_may_come_from_the_bookies_file(tmp_path: Path) -> None:
    home = written(tmp_path / "data", 1)
    (tmp_path / "b.toml").write_text(f'[storage]\njournal_dir = "{home}/journal"\nledger_dir = "{home}/ledgers"\n')
    said = bk("bookie", "last-mark", "--dir", tmp_path, "--config", tmp_path / "b.toml", "--json")
    assert said.document["clean"]
    (tmp_path / "b.toml").write_text("[storage]\nnonsense = 1\n")
    bk("bookie", "last-mark", "--dir", tmp_path, "--config", tmp_path / "b.toml").refused("nonsense")
