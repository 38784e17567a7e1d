"""Records on disk and entries in batch replies: every bit counts, and damage never passes as data or as an end."""

from __future__ import annotations

from array import array
from types import ModuleType

import pytest

from bookkeeper.codec import Digest, Scan, Stop, pure
from tests.bookkeeper.codec.codecs import CODECS, adds

both = pytest.mark.parametrize("codec", CODECS)

PAYLOADS = [b"one", b"", b"three" * 40]


def written(first: int = 0, ledger_id: int = 5) -> tuple[bytes, array[int]]:
    """The records of three entries and where each begins."""
    chunk = adds(2, ledger_id, first, PAYLOADS, lac=first - 1)
    result = pure.split_adds(chunk, 0, len(chunk))
    return bytes(result.records), pure.record_places(result.record_ends, 0, 3, 0, 0)


STATE = pure.record((5).to_bytes(8, "big") + (-0x1000).to_bytes(8, "big", signed=True) + b"key")


@both
def test_a_scan_finds_every_record(codec: ModuleType) -> None:
    records, offsets = written(7)
    scan = codec.scan_records(records + STATE, 0, len(records + STATE))
    assert list(scan.offsets) == [*offsets, len(records)]
    assert list(scan.ledger_ids) == [5] * 4
    assert list(scan.entry_ids) == [7, 8, 9, -0x1000]
    assert list(scan.lacs) == [6, 6, 6, -1]
    assert list(scan.sizes) == [36 + len(body) for body in PAYLOADS] + [19]
    assert (scan.next, scan.stop) == (len(records + STATE), Stop.END)


@both
def test_why_a_scan_stops(codec: ModuleType) -> None:
    records, offsets = written()
    for tail, stop in (
        (bytes(64), Stop.ZERO),
        (bytes(4), Stop.ZERO),
        (b"\0\0\0", Stop.PARTIAL),
        (records[: offsets[1] - 1], Stop.PARTIAL),
        (b"\0\0\0\x0f" + bytes(40), Stop.DAMAGED),
        (b"\xff" * 40, Stop.DAMAGED),
        (records[:9] + b"x" + records[10:], Stop.DAMAGED),
    ):
        scan = codec.scan_records(records + tail, 0, len(records + tail))
        assert (scan.next, scan.stop, len(scan.offsets)) == (len(records), stop, 3)


@both
def test_an_entry_shorter_than_its_header_is_damage_even_with_a_good_crc(codec: ModuleType) -> None:
    short = pure.record(bytes(8) + bytes(8) + bytes(15))
    assert codec.scan_records(short, 0, len(short)).stop is Stop.DAMAGED
    assert codec.read_record(short, 0, 0, 0) is None
    assert codec.find_record(short, 0, len(short)) == -1


@both
@pytest.mark.rule("B7")
def test_any_flipped_bit_is_noticed(codec: ModuleType) -> None:
    records, offsets = written()
    whole = codec.pack_entries(records, offsets, 5, 0, 1 << 20)
    assert (whole.n, whole.stop) == (3, Stop.END)
    for at in range(len(records)):
        for bit in (1, 0x80):
            damaged = bytearray(records)
            damaged[at] ^= bit
            packed = codec.pack_entries(damaged, offsets, 5, 0, 1 << 20)
            i = sum(offset <= at for offset in offsets) - 1
            assert packed.stop in (Stop.DAMAGED, Stop.PARTIAL) and packed.n <= i
            assert whole.body.startswith(packed.body)
            assert codec.read_record(damaged, offsets[i], 5, i) is None


@both
@pytest.mark.rule("B7")
def test_a_whole_record_of_another_entry_is_not_served(codec: ModuleType) -> None:
    records, offsets = written(7)
    assert codec.read_record(records, offsets[1], 5, 8) is not None
    assert codec.read_record(records, offsets[1], 5, 9) is None
    assert codec.read_record(records, offsets[1], 6, 8) is None
    assert codec.pack_entries(records, offsets, 5, 8, 1 << 20).stop is Stop.DAMAGED
    assert codec.pack_entries(records, offsets, 4, 7, 1 << 20).stop is Stop.DAMAGED
    assert codec.pack_entries(records, array("q", [offsets[1], offsets[0]]), 5, 8, 1 << 20)[1:] == (1, Stop.DAMAGED)


@both
def test_the_budget_counts_lengths_and_spares_the_first(codec: ModuleType) -> None:
    records, offsets = written()
    sizes = [4 + 36 + len(body) for body in PAYLOADS]
    for budget, n in ((0, 1), (sum(sizes[:2]) - 1, 1), (sum(sizes[:2]), 2), (sum(sizes) - 1, 2), (sum(sizes), 3)):
        packed = codec.pack_entries(records, offsets, 5, 0, budget)
        assert packed.n == n and packed.stop is (Stop.END if n == 3 else Stop.BUDGET)
    assert codec.pack_entries(records, offsets, 5, 0, sizes[0] - 1, 0)[1:] == (0, Stop.BUDGET)


@both
def test_a_record_that_was_not_read_whole_is_partial(codec: ModuleType) -> None:
    records, offsets = written()
    assert codec.pack_entries(records[:-1], offsets, 5, 0, 1 << 20)[1:] == (2, Stop.PARTIAL)
    assert codec.pack_entries(records, array("q", [len(records)]), 5, 0, 1 << 20)[1:] == (0, Stop.PARTIAL)


@both
@pytest.mark.rule("L5")
@pytest.mark.parametrize("digest", [Digest.CRC32, Digest.HMAC, Digest.CRC32C])
def test_a_client_takes_no_altered_entry(codec: ModuleType, digest: Digest) -> None:
    chunk = adds(2, 5, 0, PAYLOADS, digest=digest)
    result = pure.split_adds(chunk, 0, len(chunk))
    offsets = pure.record_places(result.record_ends, 0, 3, 0, 0)
    body = pure.pack_entries(result.records, offsets, 5, 0, 1 << 20).body
    good = codec.split_entries(body, 0, len(body), 5, 0, digest, b"k" * 20)
    assert good.payloads == PAYLOADS and good.stop is Stop.END
    assert list(good.lengths) == [3, 3, 203]
    for at in range(len(body)):
        altered = bytearray(body)
        altered[at] ^= 0x10
        read = codec.split_entries(altered, 0, len(body), 5, 0, digest, b"k" * 20)
        assert read.stop in (Stop.DAMAGED, Stop.PARTIAL)
        assert read.payloads == PAYLOADS[: len(read.payloads)] and len(read.payloads) < 3
    assert codec.split_entries(body, 0, len(body), 5, 1, digest, b"k" * 20).payloads == []
    assert codec.split_entries(body, 0, len(body), 4, 0, digest, b"k" * 20).payloads == []


@both
@pytest.mark.rule("G4")
def test_scanning_goes_on_behind_damage(codec: ModuleType) -> None:
    records, offsets = written()
    damaged = bytearray(records)
    damaged[offsets[1] + 20] ^= 1
    scan = codec.scan_records(damaged, 0, len(damaged))
    assert (scan.next, scan.stop) == (offsets[1], Stop.DAMAGED)
    assert codec.find_record(damaged, scan.next + 1, len(damaged)) == offsets[2]
    noise = bytes(range(1, 60))
    assert codec.find_record(noise + records, 0, len(noise + records)) == len(noise)
    assert codec.find_record(noise, 0, len(noise)) == -1


@both
def test_the_crcs_of_a_group_tie_its_records_together(codec: ModuleType) -> None:
    first, second = written(0)[0], written(3)[0]
    together = codec.chain_crcs(first + second, 0, len(first + second))
    assert together == codec.chain_crcs(second, 0, len(second), codec.chain_crcs(first, 0, len(first)))
    assert together != codec.chain_crcs(second + first, 0, len(first + second))


@both
def test_places_and_holes(codec: ModuleType) -> None:
    places = codec.record_places(array("q", [10, 30, 60]), 1, 3, 0, 1000)
    assert list(places) == [1010, 1030]
    index = array("q", [-1] * 5)
    codec.scatter(index, 7, array("q", [0, 8, 11]), 1, 3, places)
    assert list(index) == [-1, 1010, -1, -1, 1030]
    with pytest.raises(ValueError):
        codec.scatter(index, 7, array("q", [8, 12]), 0, 2, places)
    with pytest.raises(ValueError):
        codec.scatter(index, 9, array("q", [9, 8]), 0, 2, places)
    assert list(index) == [-1, 1010, -1, -1, 1030]


def scan_of(*rows: tuple[int, int, int]) -> Scan:
    """(ledger id, entry id, LAC) of each record; all have entries of 32 bytes, 100 bytes apart."""
    ledgers, entries, lacs = (array("q", [row[at] for row in rows]) for at in range(3))
    offsets, sizes = array("q", range(0, 100 * len(rows), 100)), array("q", [32] * len(rows))
    return Scan(offsets, ledgers, entries, lacs, sizes, 100 * len(rows), Stop.END)


@both
def test_a_scan_becomes_runs_ledger_by_ledger(codec: ModuleType) -> None:
    found = codec.ledger_runs(scan_of((9, 0, -1), (5, 7, 4), (9, 1, 0), (5, 8, 3), (9, 4, 0)), 1000)
    assert found.runs == [(5, 0, 2, True, 4, 80), (9, 2, 5, False, 0, 120)]
    assert list(found.places) == [1100, 1300, 1000, 1200, 1400] and list(found.entry_ids) == [7, 8, 0, 1, 4]


@both
def test_state_records_and_repeated_entries_end_a_run_and_keep_their_order(codec: ModuleType) -> None:
    found = codec.ledger_runs(scan_of((5, -0x1000, -1), (5, 0, -1), (5, 1, 0), (5, 1, 0), (5, -0x2000, -1), (5, 2, 1)))
    assert [(run.i0, run.i1, run.lac) for run in found.runs] == [
        (0, 1, -1),
        (1, 3, 0),
        (3, 4, 0),
        (4, 5, -1),
        (5, 6, 1),
    ]
    assert codec.ledger_runs(scan_of()).runs == []


@both
def test_a_scan_whose_arrays_differ_in_length_is_refused(codec: ModuleType) -> None:
    with pytest.raises(ValueError, match="of one length"):
        codec.ledger_runs(scan_of((5, 0, 0), (5, 1, 0))._replace(lacs=array("q", [0])))


@both
def test_places_are_followed_while_they_ascend_and_one_further_than_asked_for(codec: ModuleType) -> None:
    places = array("q", [500, 600, 650, 900, 1000, 20])
    assert list(codec.ascending(places, 150)) == [0, 100, 150, 400]
    assert list(codec.ascending(places, 1 << 40)) == [0, 100, 150, 400, 500]
    assert list(codec.ascending(array("q", [7, 7]), 9)) == [0] and not codec.ascending(array("q"), 9)


@both
def test_a_run_of_places_ends_before_the_first_that_is_not_here(codec: ModuleType) -> None:
    places = array("q", [4, 5, 0, 6])
    assert list(codec.unbroken(places, 0, 4)) == [4, 5] and list(codec.unbroken(places, 0, 1)) == [4]
    assert list(codec.unbroken(places, 3, 4)) == [6] and not codec.unbroken(places, 2, 4)
    with pytest.raises(ValueError, match=r"0\.\.5 of 4"):
        codec.unbroken(places, 0, 5)
