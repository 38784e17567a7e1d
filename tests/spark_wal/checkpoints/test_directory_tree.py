"""Checkpoints in a gateway's tree."""

from __future__ import annotations

from spark_wal.checkpoints.directory_tree import CheckpointDirectory, being_written, checkpoint_directories, stamp_of
from spark_wal.webhdfs.files.namespace import Namespace
from spark_wal.webhdfs.files.records import NewFile, PutFile


def tree_of(*paths: str) -> Namespace:
    """A tree with these files; each is written later, and by another user, than the one before."""
    namespace = Namespace()
    for number, path in enumerate(paths, 1):
        new = NewFile((b"x" * number,), 0o644, f"user-{number}", 1, 1 << 20, number * 1000)
        namespace.apply(PutFile(path, new, overwrite=True), number)
    return namespace


def only(namespace: Namespace) -> CheckpointDirectory:
    (found,) = checkpoint_directories(namespace.root)
    return found


def test_a_checkpoint_is_a_directory_with_metadata_beside_offsets_and_nothing_is_looked_for_below_it() -> None:
    tree = tree_of(
        "/b/metadata", "/b/offsets/0", "/b/state/x/metadata", "/b/state/x/offsets/0",
        "/a/deep/metadata", "/a/deep/offsets/0", "/only/metadata", "/other/offsets/0", "/c/metadata/x", "/c/offsets/0",
    )  # fmt: skip
    assert [place.path for place in checkpoint_directories(tree.root)] == ["/a/deep", "/b"]


def test_it_knows_the_last_batches_and_who_wrote_the_last_of_them() -> None:
    place = only(tree_of("/q/metadata", "/q/offsets/9", "/q/commits/9", "/q/offsets/10", "/q/offsets/.10.x.tmp"))
    assert (place.planned, place.committed) == (10, 9)
    assert place.newest is not None and place.newest.owner == "user-4"
    assert place.state_bytes == 0 and place.files == 7


def test_a_log_with_strange_names_has_only_its_batches() -> None:
    place = only(tree_of("/q/metadata", "/q/offsets/007", "/q/offsets/08x", "/q/offsets/99/file", "/q/commits/x"))
    assert (place.planned, place.committed) == (7, None)


def test_a_listing_leaves_out_old_batches_and_nothing_else() -> None:
    logs = [f"/q/{log}/{number}" for number in range(5) for log in ("offsets", "commits")]
    place = only(tree_of("/q/metadata", *logs, "/q/state/0/0/1.delta"))
    assert sorted(place.listing(2)) == [
        "commits/3", "commits/4", "metadata", "offsets/3", "offsets/4", "state/0/0/1.delta",
    ]  # fmt: skip


def test_temporary_files_are_those_that_somebody_writes() -> None:
    temporary = "offsets/.9.281957e6-69b8-4254-af39-7d5e71acd87d.tmp"
    listing = only(tree_of("/q/metadata", "/q/offsets/8", f"/q/{temporary}")).listing(10)
    assert list(being_written(listing)) == [temporary]
    assert stamp_of(listing[temporary]).owner == "user-3" and stamp_of(listing[temporary]).modified_ms == 3000
