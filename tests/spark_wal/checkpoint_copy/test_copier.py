from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_wal.checkpoint_copy.contents import METADATA, source_of
from spark_wal.checkpoint_copy.copier import CheckpointCopier, CopiedCheckpoint, CopyRefusedError
from spark_wal.checkpoint_copy.local_store import LocalStore
from spark_wal.checkpoint_copy.stores import CheckpointStoreError, Parts

FILES = {
    "metadata": b'{"id":"0a"}',
    "offsets/0": b"v1\n{}\n0",
    "offsets/1": b"v1\n{}\n1",
    "commits/0": b"v1\n{}",
    "sources/0/0": b"v1\nx",
    "state/0/0/1.delta": bytes(5000),
    "state/0/0/1.delta.crc": b"{}",
}
LEFT = {"offsets/.0.crc": b"crc", "offsets/.2.0f0e0d0c-0b0a-0908-0706-050403020100.tmp": b"x"}


class Faulty(LocalStore):
    """A directory whose writes can be watched and made to fail."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.written: list[str] = []
        self.before: Callable[[str], None] = lambda path: None
        self.spoil: Callable[[str, bytes], bytes] = lambda path, data: data

    def write(self, path: str, parts: Parts) -> None:
        self.before(path)
        data = b"".join(parts())
        super().write(path, lambda: [self.spoil(path, data)])
        self.written.append(path)

    def copies(self) -> list[str]:
        """Without the note."""
        return self.written[1:] if self.written[:1] == [METADATA] else self.written


@pytest.fixture
def source(tmp_path: Path) -> LocalStore:
    place = LocalStore(str(tmp_path / "from"))
    for path, data in (FILES | LEFT).items():
        place.write(path, lambda data=data: [data])  # type: ignore[misc]
    return place


@pytest.fixture
def target(tmp_path: Path) -> Faulty:
    return Faulty(tmp_path / "to")


def copy(source: LocalStore, target: LocalStore, **options: bool) -> CopiedCheckpoint:
    copier = CheckpointCopier(source, target, **options)
    copier.prepare()
    return copier.run()


def held(place: LocalStore) -> dict[str, bytes]:
    return {path: b"".join(place.read(path)) for path in place.listing()}


def unfinished(place: LocalStore) -> bool:
    return source_of(held(place)[METADATA]) is not None


def test_everything_that_belongs_to_it_arrives(source: LocalStore, target: Faulty) -> None:
    told: list[int] = []
    copier = CheckpointCopier(source, target)
    copier.prepare()
    copied = copier.run(told.append)
    assert held(target) == FILES
    assert held(source) == FILES | LEFT
    assert (copied.files, copied.size, copied.already) == (len(FILES), sum(map(len, FILES.values())), 0)
    assert sum(told) == copied.size == copier.size


@pytest.mark.rule("S10")
@pytest.mark.parametrize("cut", range(len(FILES) + 1))
def test_until_the_last_moment_it_is_no_checkpoint(
    source: LocalStore, target: Faulty, tmp_path: Path, cut: int
) -> None:
    """Cut before every write: what is there is no checkpoint, says so, and can be gone on with."""

    def fail(path: str) -> None:
        if len(target.written) >= cut:
            raise CheckpointStoreError("out of reach")

    target.before = fail
    with pytest.raises(CheckpointStoreError):
        copy(source, target)
    if cut:
        assert unfinished(target)
        with pytest.raises(json.JSONDecodeError):
            json.loads(held(target)[METADATA])
    target.before = lambda path: None
    copied = copy(source, target, resume=True)
    assert held(target) == FILES
    assert cut - 1 <= copied.already < len(FILES)
    assert copied.digest == copy(source, LocalStore(str(tmp_path / "whole"))).digest


@pytest.mark.rule("S10")
def test_the_logs_are_written_after_the_state_and_metadata_last(source: LocalStore, target: Faulty) -> None:
    copy(source, target)
    assert target.written[0] == target.written[-1] == METADATA
    order = [path.partition("/")[0] for path in target.copies()]
    assert order == sorted(order, key=["sources", "state", "commits", "offsets", "metadata"].index) or (
        order[3:] == ["commits", "offsets", "offsets", "metadata"]
    )


@pytest.mark.rule("S10")
@pytest.mark.parametrize("path", ["state/0/0/1.delta", "metadata"])
def test_what_does_not_read_back_as_it_was_is_noticed(source: LocalStore, target: Faulty, path: str) -> None:
    target.spoil = lambda p, data: data[:-1] + b"?" if p == path and target.written else data
    with pytest.raises(CopyRefusedError, match="does not read back"):
        copy(source, target)
    target.spoil = lambda p, data: data
    if path != METADATA:
        assert unfinished(target)
        copy(source, target, resume=True)
        assert held(target) == FILES


@pytest.mark.rule("S10")
@pytest.mark.parametrize("change", ["comes", "grows", "goes"])
def test_a_source_that_changes_ends_the_copy(source: LocalStore, target: Faulty, change: str) -> None:
    def meddle(path: str) -> None:
        if path != "offsets/1" or not target.written:
            return
        if change == "comes":
            source.write("offsets/2", lambda: [b"new"])
        elif change == "grows":
            source.write("offsets/0", lambda: [b"more than it was"])
        else:
            Path(source._root, "commits/0").unlink()

    target.before = meddle
    with pytest.raises(CopyRefusedError, match="query"):
        copy(source, target)
    assert unfinished(target)


def test_a_target_that_holds_something_is_refused(source: LocalStore, target: Faulty) -> None:
    target.write("anything", lambda: [b"x"])
    for resume in (False, True):
        with pytest.raises(CopyRefusedError, match="not empty"):
            copy(source, target, resume=resume)
    assert held(target) == {"anything": b"x"}


def test_an_unfinished_copy_goes_on_only_when_told_and_only_from_its_source(
    source: LocalStore, target: Faulty, tmp_path: Path
) -> None:
    target.before = lambda path: (_ for _ in ()).throw(CheckpointStoreError("no")) if target.written else None
    with pytest.raises(CheckpointStoreError):
        copy(source, target)
    target.before = lambda path: None
    with pytest.raises(CopyRefusedError, match="--resume"):
        copy(source, target)
    other = LocalStore(str(tmp_path / "other"))
    copy(source, other)
    with pytest.raises(CopyRefusedError, match="not of"):
        copy(other, target, resume=True)
    with pytest.raises(CopyRefusedError, match="is an unfinished copy itself"):
        copy(target, LocalStore(str(tmp_path / "third")))
    target.write("state/9", lambda: [b"from elsewhere"])
    with pytest.raises(CopyRefusedError, match="state/9"):
        copy(source, target, resume=True)
    assert unfinished(target)


@pytest.mark.rule("S10")
def test_a_finished_copy_is_compared_and_never_written_again(source: LocalStore, target: Faulty) -> None:
    first = copy(source, target)
    target.written.clear()
    again = copy(source, target, resume=True)
    assert (again.digest, again.already) == (first.digest, len(FILES))
    Path(target._root, "offsets/1").write_bytes(b"v1\n{}\n2")
    with pytest.raises(CopyRefusedError, match="changed since"):
        copy(source, target, resume=True)
    target.write("offsets/2", lambda: [b"the query went on"])
    target.written.clear()
    with pytest.raises(CopyRefusedError, match="offsets/2"):
        copy(source, target, resume=True)
    assert target.written == []


def test_what_is_no_checkpoint_is_not_copied(source: LocalStore, target: Faulty, tmp_path: Path) -> None:
    with pytest.raises(CopyRefusedError, match="there is nothing"):
        copy(LocalStore(str(tmp_path / "none")), target)
    source.write("_spark_metadata/0", lambda: [b"v1"])
    with pytest.raises(CopyRefusedError, match="file sink"):
        copy(source, target)
    with pytest.raises(CopyRefusedError, match="overlap"):
        copy(source, LocalStore(f"{source._root}/in/it"))


def test_addresses_of_the_old_place_are_noticed(source: LocalStore, target: Faulty) -> None:
    named = f'{{"stateSchemaFilePaths":["file:{source._root}/state/0/_stateSchema/default/1"]}}'
    source.write("state/0/_metadata/v2/1", lambda: [named.encode()])
    with pytest.raises(CopyRefusedError, match="--keep-addresses"):
        copy(source, target)
    assert target.listing() == {}
    copy(source, target, keep_addresses=True)
    assert held(target)["state/0/_metadata/v2/1"] == named.encode()


def test_a_file_that_shrinks_while_it_is_read_is_noticed(source: LocalStore, target: Faulty) -> None:
    class Shrinking(LocalStore):
        def read(self, path: str) -> Iterator[bytes]:
            data = b"".join(super().read(path))
            yield data[:-1] if path == "offsets/0" else data

    with pytest.raises(CopyRefusedError, match="was listed with"):
        copy(Shrinking(source._root), target)
