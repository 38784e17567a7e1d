from __future__ import annotations

from spark_wal.checkpoint_copy.contents import FileStamp
from spark_wal.checkpoints.checkpoint import read_checkpoint
from spark_wal.checkpoints.layout import Kind, StatePartition
from tests.spark_wal.checkpoints.samples import SampleStore


def test_it_says_the_query_its_batches_and_its_partitions() -> None:
    found = SampleStore("hdfs").checkpoint()
    assert found.query_id == "5297b900-ebbf-4bde-bcb6-f68442b18f52"
    assert (found.planned, found.committed, found.next_batch, found.state_version) == (8, 8, 9, 9)
    assert found.partitions == (StatePartition(0, 0, "default"), StatePartition(0, 1, "default"))
    assert not found.has_unique_ids
    assert found.size(Kind.STATE) == sum(
        found.listing[f.path].size for files in found.state_files.values() for f in files
    )


def test_a_planned_batch_that_is_not_done_is_the_next() -> None:
    store = SampleStore("hdfs")
    del store.files["commits/8"]
    assert (store.checkpoint().next_batch, store.checkpoint().state_version) == (8, 8)


def test_the_commit_of_the_batch_before_names_the_file_of_a_version() -> None:
    found = SampleStore("column-families-ids").checkpoint()
    assert found.has_unique_ids
    partition = StatePartition(1, 1, "default")
    named = found.unique_id(partition, 3)
    assert any(f.unique_id == named for f in found.state_files[partition] if f.version == 3)
    assert found.unique_id(partition, 9) is None


def test_without_a_word_of_an_operator_its_files_say_the_partitions() -> None:
    store = SampleStore("hdfs")
    del store.files["state/0/_metadata/metadata"]
    assert len(store.checkpoint().partitions) == 2


def test_temporary_files_and_hadoops_checksums_are_told_apart() -> None:
    temporary = "offsets/.9.281957e6-69b8-4254-af39-7d5e71acd87d.tmp"
    listing = {path: FileStamp(1, 1) for path in ("metadata", "offsets/.0.crc", "offsets/0", temporary)}
    contents = {"metadata": b'{"id":"a"}', "offsets/0": b"v1"}
    found = read_checkpoint("file:///c", listing, contents)
    assert found.temporary == (temporary,)
    assert set(found.meanings) == {"metadata", "offsets/0"}
    assert found.unreadable == {"offsets/0": "it ends behind its version"}


def test_an_unfinished_copy_says_so() -> None:
    found = read_checkpoint(
        "file:///c", {"metadata": FileStamp(1, 1)}, {"metadata": b"unfinished_bk_checkpoint_copy of: file:///a\n"}
    )
    assert found.unfinished_copy_of == "file:///a" and found.query_id is None
