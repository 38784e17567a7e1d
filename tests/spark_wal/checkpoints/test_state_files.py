from __future__ import annotations

import pytest

from spark_wal.checkpoints.layout import Kind, StateFile, meaning
from spark_wal.checkpoints.lz4_blocks import BlockStreamError, read_stream
from spark_wal.checkpoints.state_files import check_state_file
from tests.spark_wal.checkpoints.samples import WITH_STATE, SampleStore


def file_at(path: str) -> StateFile:
    found = meaning(path).state
    assert found is not None
    return found


def state_of(name: str) -> list[tuple[StateFile, bytes, bytes | None]]:
    files = SampleStore(name).files
    paths = [path for path in files if meaning(path).kind is Kind.STATE]
    return [(file_at(path), files[path], files.get(f"{path}.crc")) for path in paths]


@pytest.mark.parametrize("name", WITH_STATE)
def test_what_spark_wrote_is_whole_and_a_cut_of_it_is_not(name: str) -> None:
    for file, data, sidecar in state_of(name):
        found = check_state_file(file, data, sidecar)
        assert found.problem is None and not found.is_unchecked
        for end in (0, 1, len(data) // 2, len(data) - 1):
            assert check_state_file(file, data[:end]).problem is not None, (file.path, end)


@pytest.mark.parametrize("name", ["hdfs", "rocksdb-changelog"])
def test_a_changed_byte_is_found_or_means_the_same(name: str) -> None:
    """LZ4 can name the same bytes at several places: then the state is what it was."""
    for file, data, _ in state_of(name):
        for at in range(0, len(data), 7):
            changed = bytearray(data)
            changed[at] ^= 0x04
            if check_state_file(file, bytes(changed)).problem is None and not file.path.endswith(".zip"):
                assert read_stream(bytes(changed)) == read_stream(data)


def test_with_a_checksum_beside_it_every_changed_byte_is_found() -> None:
    for file, data, sidecar in state_of("rocksdb-changelog-ids"):
        changed = bytearray(data)
        changed[len(data) // 2] ^= 1
        problem = check_state_file(file, bytes(changed), sidecar).problem
        assert problem == "its bytes do not match its checksum file"
        assert "says" in str(check_state_file(file, data + b"x", sidecar).problem)
        assert check_state_file(file, data, b'{"mainFileSize').problem is None


def test_a_zip_names_the_files_that_it_needs() -> None:
    store = SampleStore("rocksdb-changelog")
    needs = check_state_file(file_at("state/0/0/9.zip"), store.files["state/0/0/9.zip"]).needs
    assert len(needs) == 3
    assert all(store.listing()[path].size == size for path, size in needs.items())


def test_a_changelog_of_the_second_format_names_the_versions_before_it() -> None:
    store = SampleStore("rocksdb-changelog-ids")
    path = store.file("state/0/0", "9_", ".changelog")
    earlier = check_state_file(file_at(path), store.files[path]).earlier
    assert sorted(earlier) == [6, 7, 8]
    assert store.file("state/0/0", f"6_{earlier[6]}", ".zip")


def test_another_codec_is_said_to_be_unchecked_and_garbage_is_damage() -> None:
    file = file_at("state/0/0/1.delta")
    assert check_state_file(file, b"\x28\xb5\x2f\xfdxxxx").is_unchecked
    assert check_state_file(file, b"garbage").problem is not None


def test_a_damaged_list_of_versions_is_damage() -> None:
    from tests.spark_wal.checkpoints.test_lz4_blocks import stream

    path = SampleStore("rocksdb-changelog-ids").file("state/0/0", "9_", ".changelog")
    assert "list of versions" in str(check_state_file(file_at(path), stream(b"\x00\x02v3\x00\x09[{", b"")).problem)
    with pytest.raises(BlockStreamError):
        read_stream(b"")
