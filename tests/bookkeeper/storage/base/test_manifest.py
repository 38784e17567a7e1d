"""The manifest: what it says comes back, damage is seen, and the mark never moves back."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from bookkeeper.errors import CorruptionError, InvariantError, UnsupportedFormatError
from bookkeeper.storage.base.durable_file import stamp
from bookkeeper.storage.base.manifest import NAME, VERSION, Manifest, ManifestLog, read_manifest
from tests.bookkeeper.storage.recording_disk import RecordingDisk

FULL = Manifest(
    directory_id=7,
    boot=3,
    clean=True,
    file_id=5,
    sequence=99,
    next_file=6,
    next_log=4,
    next_segment=9,
    logs={1: ManifestLog(8192, True), 3: ManifestLog(4096, False, {2**62: [100, 2], 5: [1, 1]})},
    segments={8: 4096, 2: 12288},
    rebuild=True,
    limbo="the journal ends in the middle",
    quarantined=["000001.log at 4096: 12 bytes"],
)


@pytest.mark.parametrize("manifest", [Manifest(), FULL], ids=["new", "full"])
def test_it_comes_back_as_it_was_with_its_segments_in_order(manifest: Manifest) -> None:
    found = Manifest.decode(manifest.encode(), "x")
    assert found == manifest
    assert list(found.segments) == list(manifest.segments)


@pytest.mark.parametrize("manifest", [Manifest(), FULL], ids=["new", "full"])
def test_it_is_the_text_that_earlier_versions_wrote(manifest: Manifest) -> None:
    text = json.dumps(asdict(manifest), separators=(",", ":")).encode()
    assert manifest.encode() == stamp(b"BKMF", VERSION, text)


@pytest.mark.parametrize(
    ("segments", "deletions"),
    [([], None), ([7], None), ([1, 4], None), ([5, 4], 5), ([9, 1, 4, 8], 9), ([9, 10], None)],
)
def test_the_list_of_deletions_is_told_by_its_place_and_its_number(segments: list[int], deletions: int | None) -> None:
    assert Manifest(segments=dict.fromkeys(segments, 0)).deletions == deletions


def test_every_flipped_bit_is_seen() -> None:
    data = FULL.encode()
    for at in range(0, len(data) * 8, 5):
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        with pytest.raises((CorruptionError, UnsupportedFormatError)):
            Manifest.decode(bytes(changed), "x")


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"{", b'{"logs":{"a":{}},"segments":{}}', b'{"logs":7}'])
def test_a_body_that_is_no_manifest_is_damage(body: bytes) -> None:
    with pytest.raises(CorruptionError, match="the manifest"):
        Manifest.decode(stamp(b"BKMF", VERSION, body), "the manifest")


def test_another_version_is_refused_with_a_sentence() -> None:
    with pytest.raises(UnsupportedFormatError, match=f"version {VERSION + 1}"):
        Manifest.decode(stamp(b"BKMF", VERSION + 1, b"{}"), "x")


@pytest.mark.rule("K2")
def test_it_is_replaced_by_way_of_a_temporary_file() -> None:
    disk = RecordingDisk()
    assert read_manifest(disk, "/d") is None
    Manifest().write(disk, "/d", None)
    FULL.write(disk, "/d", Manifest())
    assert read_manifest(disk, "/d") == FULL
    assert disk.list("/d") == [NAME]
    assert [op.kind for op in disk.ops][-2:] == ["rename", "sync_directory"]


@pytest.mark.rule("K14")
@pytest.mark.parametrize("back", [{"sequence": 98}, {"file_id": 4}, {"file_id": 4, "sequence": 200}])
def test_the_mark_does_not_move_back(back: dict[str, int]) -> None:
    disk = RecordingDisk()
    FULL.write(disk, "/d", None)
    with pytest.raises(InvariantError, match="K14"):
        replace(FULL, **back).write(disk, "/d", FULL)  # type: ignore[arg-type]
    assert read_manifest(disk, "/d") == FULL
