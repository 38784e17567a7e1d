"""The file ``volumes``: its bytes, its damage, and how it fits to what is configured."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper.errors import CookieError, CorruptionError, UnsupportedFormatError
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import STAMP_SIZE, stamp, unstamp
from bookkeeper.testing.world import SimDisk
from bookkeeper.volumes.disks.volume_list import (
    VolumeList,
    VolumeState,
    last_of,
    matched,
    read_volumes,
    share_of,
    write_volumes,
)

NEW, USED, DRAINING, DRAINED, LOST = VolumeState
LIST = VolumeList(0xAB).with_new("/a", "/ja", USED).with_new("/b", "/b", DRAINING).with_state(2, LOST, "it burnt")

GOLDEN = """{
 "id": "00000000000000ab",
 "next": 3,
 "volumes": [
  {
   "number": 1,
   "ledger_dir": "/a",
   "journal_dir": "/ja",
   "state": "used"
  },
  {
   "number": 2,
   "ledger_dir": "/b",
   "journal_dir": "/b",
   "state": "lost",
   "reason": "it burnt"
  }
 ]
}"""


def test_its_bytes() -> None:
    assert unstamp(LIST.encode(), b"BKVL", 1, "x").decode() == GOLDEN
    assert LIST.encode()[:8].hex() == "424b564c00010000"


def test_what_was_written_is_read() -> None:
    disk = SimDisk(Random(1))
    disk.make_directories("/d")
    assert read_volumes(disk, "/d") is None
    replaced = LIST.with_new("/b", "/b")
    mended = replaced.with_whole(any_retired=True)
    assert (replaced.replaced, replaced.mended, mended.replaced, mended.mended) == ((2,), (), (), (2,))
    assert mended.with_whole(any_retired=False).mended == ()
    for listed in (LIST, LIST.with_new("/c", "/c"), VolumeList(2**63 - 1), replaced, mended):
        write_volumes(disk, "/d", listed)
        disk.crash(keep=0.0)
        assert read_volumes(disk, "/d") == listed
    disk.open("/d/volumes").pwrite(b"?", 0)
    with pytest.raises(CorruptionError, match=r"^/d/volumes .* put it back from a copy"):
        read_volumes(disk, "/d")


@pytest.mark.parametrize("state", list(VolumeState))
def test_each_state_is_kept(state: VolumeState) -> None:
    listed = VolumeList(1).with_new("/a", "/a").with_state(1, state)
    assert VolumeList.decode(listed.encode(), "x") == listed
    assert state.serves is (state in (NEW, USED, DRAINING))


def test_any_flipped_bit_and_any_cut_is_noticed() -> None:
    data = LIST.encode()
    for at in range(len(data)):
        hurt = bytearray(data)
        hurt[at] ^= 1 << at % 8
        with pytest.raises(CorruptionError, match="/d/volumes"):
            VolumeList.decode(bytes(hurt), "/d/volumes")
        with pytest.raises(CorruptionError, match="/d/volumes"):
            VolumeList.decode(data[:at], "/d/volumes")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"id": "1", "next": 1}',
        b'{"id": "x", "next": 1, "volumes": []}',
        b'{"id": "1", "next": 2, "volumes": [{"number": 1}]}',
        b'{"id": "1", "next": 2, "volumes": [{"number": 1, "ledger_dir": "/a", "journal_dir": "/a", "state": "odd"}]}',
        b'{"id": "1", "next": 2, "volumes": [{"number": 1, "ledger_dir": "/a", "journal_dir": "/a", "state": "new", '
        b'"more": 1}]}',
    ],
)
def test_what_is_no_list_is_damage(body: bytes) -> None:
    with pytest.raises(CorruptionError, match="/d/volumes cannot be read"):
        VolumeList.decode(stamp(b"BKVL", 1, body), "/d/volumes")


def test_another_version_is_said() -> None:
    with pytest.raises(UnsupportedFormatError, match="/d/volumes is of version 2"):
        VolumeList.decode(stamp(b"BKVL", 2, LIST.encode()[STAMP_SIZE:]), "/d/volumes")


# -- changes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_a_number_is_never_given_twice(seed: int) -> None:
    rng, listed, given = Random(seed), VolumeList(1), set[int]()
    for _ in range(40):
        if rng.random() < 0.5 or not listed.entries:
            place = rng.choice("abcd")
            if (before := listed.at(place)) is not None and before.state.serves:
                continue
            listed = listed.with_new(place, place)
            assert listed.entries[-1].number not in given
            given.add(listed.entries[-1].number)
        else:
            listed = listed.with_state(rng.choice(listed.entries).number, rng.choice(list(VolumeState)))
        listed = VolumeList.decode(listed.encode(), "x")
        assert [each.number for each in listed] == sorted(each.number for each in listed)


def test_a_directory_that_comes_back_is_another_volume_and_the_former_one_is_forgotten() -> None:
    again = LIST.with_new("/b", "/jb")
    assert [(each.number, each.ledger_dir, each.state) for each in again] == [(1, "/a", USED), (3, "/b", NEW)]
    assert again.at("/b") == again.entries[-1] and again.at("/c") is None
    assert again.replaced == (2,) and VolumeList.decode(again.encode(), "x") == again, "that there was a loss is kept"
    assert LIST.with_state(2, DRAINED).with_new("/b", "/b").replaced == ()
    assert LIST.with_entry(again.entries[-1]) == again
    assert LIST.at("/b") is not None and len(LIST.entries) == 2, "a list does not change"


def test_a_state_has_its_reason_until_the_next() -> None:
    assert LIST.entries[1].reason == "it burnt"
    assert LIST.with_state(2, USED).entries[1].reason == ""
    assert LIST.with_state(9, USED) == LIST
    assert LIST.serving == LIST.entries[:1]


# -- what is configured -----------------------------------------------------------------------------------


def test_the_same_directories_in_any_order_change_nothing() -> None:
    listed = LIST.with_new("/c", "/c", USED)
    assert matched(listed, [("/c", "/c"), ("/a", "/ja")], "/d") == listed
    assert matched(listed, [("/b", "/b"), ("/c", "/c"), ("/a", "/ja")], "/d") == listed, "one that is lost stays so"


def test_a_directory_more_is_a_new_volume() -> None:
    listed = matched(LIST, [("/a", "/ja"), ("/c", "/jc")], "/d")
    assert listed.entries[:2] == LIST.entries
    assert (listed.entries[2].number, listed.entries[2].state, listed.entries[2].journal_dir) == (3, NEW, "/jc")


@pytest.mark.parametrize("state", [NEW, USED, DRAINING])
def test_a_directory_in_use_that_is_not_configured_is_refused(state: VolumeState) -> None:
    text = (
        "/a holds ledgers of this bookie and is not among its ledger_dirs: add it again; or, if its disk is lost, "
        "give it up with `bk bookie lose-directory --dir /d /a`"
    )
    with pytest.raises(CookieError) as raised:
        matched(LIST.with_state(1, state), [("/c", "/c")], "/d")
    assert str(raised.value) == text


def test_another_journal_is_refused() -> None:
    with pytest.raises(CookieError) as raised:
        matched(LIST, [("/a", "/elsewhere")], "/d")
    assert str(raised.value) == (
        "the journal of /a is in /ja, not in /elsewhere: start the bookie with the journal_dirs that it had"
    )


def test_memory_is_shared_out_and_rates_are_not() -> None:
    whole = StorageConfig(journal_dir="/j", ledger_dir="/l")
    entry = LIST.entries[0]
    share = share_of(whole, entry, 4)
    assert (share.ledger_dir, share.journal_dir) == ("/a", "/ja")
    for name in (
        "inflight_bytes",
        "ledger_buffer_bytes",
        "cached_bytes",
        "page_cache_pages",
        "resident_ledgers_max",
        "open_logs_max",
    ):
        assert getattr(share, name) == getattr(whole, name) // 4, name
    for name in ("scrub_bytes_per_s", "compaction_bytes_per_s", "entry_log_bytes", "journal_file_bytes"):
        assert getattr(share, name) == getattr(whole, name), name
    tiny = share_of(whole, entry, 1 << 40)
    assert tiny.inflight_bytes == whole.group_bytes and tiny.ledger_buffer_bytes == 4096
    assert (tiny.page_cache_pages, tiny.open_logs_max, tiny.cached_bytes) == (1, 1, 0)
    alone = share_of(whole, entry, 1)
    assert alone.inflight_bytes == whole.inflight_bytes and alone.cached_bytes == whole.cached_bytes


def test_a_single_volume_has_the_settings_as_they_are_however_small() -> None:
    tiny = StorageConfig(
        journal_dir="/ja",
        ledger_dir="/a",
        group_bytes=4096,
        inflight_bytes=4096,
        ledger_buffer_bytes=4096,
        cached_bytes=0,
        page_cache_pages=1,
        resident_ledgers_max=1,
        open_logs_max=1,
    )
    assert share_of(tiny, LIST.entries[0], 1) == tiny


def test_the_last_one_is_that_without_another_for_new_ledgers() -> None:
    listed = LIST.with_new("/c", "/c", DRAINING)
    assert last_of(listed, 1) and not last_of(listed, 2) and not last_of(listed, 3)
    assert not last_of(listed.with_state(3, USED), 1)
    assert last_of([], 1)
