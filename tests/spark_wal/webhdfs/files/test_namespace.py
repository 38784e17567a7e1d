from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from spark_wal.webhdfs.errors import (
    DirectoryNotEmptyError,
    NameQuotaExceededError,
    NoSuchFileError,
    ParentNotDirectoryError,
    PathExistsError,
    PathThroughFileError,
    QuotaExceededError,
    WebHdfsError,
)
from spark_wal.webhdfs.files import snapshot
from spark_wal.webhdfs.files.inodes import BlobRef, DirectoryNode, FileNode
from spark_wal.webhdfs.files.namespace import Namespace
from spark_wal.webhdfs.files.numbered import NumberLimit
from spark_wal.webhdfs.files.records import (
    AppendToFile,
    DeletePath,
    MakeDirectories,
    MoveToBlob,
    NewFile,
    PutFile,
    Record,
    RemoveNumbered,
    Rename,
    RenameMode,
    SetAttributes,
    SetNamesQuota,
    SetQuota,
    decode_record,
    encode_record,
)
from spark_wal.webhdfs.files.temp_files import temporary_files
from spark_wal.webhdfs.files.tree_answers import ApplyResult, ContentSummary
from tests.examples_of import examples
from tests.spark_wal.webhdfs.files.test_tree_memory import walked

TEMP = ".0.0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f.tmp"


class Tree:
    """A namespace that counts for itself."""

    def __init__(self) -> None:
        self.namespace = Namespace()
        self.records: list[Record] = []

    def do(self, record: Record) -> ApplyResult:
        applied = self.namespace.apply(record, len(self.records) + 1)
        if applied.changed:
            self.records.append(record)
        return applied

    def put(self, path: str, data: bytes = b"x", *, overwrite: bool = False) -> ApplyResult:
        return self.do(PutFile(path, file(data), overwrite))

    def rename(self, source: str, target: str, mode: RenameMode = RenameMode.NONE) -> ApplyResult:
        return self.do(Rename(source, target, mode, 5))

    def content(self, path: str) -> bytes | None:
        node = self.namespace.find(path).node
        if not isinstance(node, FileNode):
            return None
        return b"".join(p for p in node.pieces if isinstance(p, bytes))


def file(data: bytes = b"x") -> NewFile:
    return NewFile((data,), 0o644, "alice", 1, 1 << 20, 7)


@pytest.fixture
def tree() -> Tree:
    return Tree()


@pytest.mark.rule("S1")
def test_s1_one_path_is_created_once(tree: Tree) -> None:
    tree.put("/c/offsets/0", b"first")
    with pytest.raises(PathExistsError):
        tree.put("/c/offsets/0", b"second")
    with pytest.raises(PathExistsError):
        tree.do(Rename("/c/.0.tmp", "/c/offsets/0", RenameMode.NONE, 1, file(b"third")))
    assert not tree.do(Rename("/c/.0.tmp", "/c/offsets/0", RenameMode.BARE, 1, file(b"fourth"))).value
    assert tree.content("/c/offsets/0") == b"first"
    assert len(tree.records) == 1


@pytest.mark.rule("S4")
def test_s4_one_record_brings_bytes_and_name(tree: Tree) -> None:
    tree.do(MakeDirectories("/c", 0o755, "a", 1))
    applied = tree.do(Rename("/c/.0.tmp", "/c/0", RenameMode.NONE, 1, file(b"plan")))
    assert applied.changed
    assert tree.content("/c/0") == b"plan"
    assert tree.namespace.find("/c/.0.tmp").node is None


@pytest.mark.rule("S4")
@pytest.mark.parametrize("mode", RenameMode)
def test_s4_a_rename_repeated_after_a_lost_reply_succeeds_and_changes_nothing(tree: Tree, mode: RenameMode) -> None:
    tree.put("/c/a")
    assert tree.rename("/c/a", "/c/b", mode).value
    again = tree.rename("/c/a", "/c/b", mode)
    assert (again.value, again.changed) == (True, False)


@pytest.mark.rule("S1")
def test_s1_the_repeat_of_one_rename_is_not_taken_for_another(tree: Tree) -> None:
    tree.put("/c/a", b"1")
    tree.rename("/c/a", "/c/b")
    tree.put("/c/a", b"2")
    with pytest.raises(PathExistsError):
        tree.rename("/c/a", "/c/b")
    tree.do(DeletePath("/c/a", False, 1))
    with pytest.raises(NoSuchFileError):  # /c/a was taken again since: no repeat
        tree.rename("/c/a", "/c/b")


def test_a_repeat_is_forgotten_with_its_target(tree: Tree) -> None:
    tree.put("/c/a")
    tree.rename("/c/a", "/c/b")
    tree.do(DeletePath("/c/b", False, 1))
    with pytest.raises(NoSuchFileError):
        tree.rename("/c/a", "/c/b")


def test_overwriting_frees_the_blobs_it_replaces(tree: Tree) -> None:
    large = NewFile((BlobRef("17", 0, 9),), 0o644, "a", 1, 1, 1)
    tree.do(PutFile("/a", large, overwrite=False))
    assert tree.put("/a", overwrite=True).freed == ("17",)
    tree.do(PutFile("/d/b", large, overwrite=False))
    assert tree.do(DeletePath("/d", True, 1)).freed == ("17",)


def test_deleting_a_directory_needs_recursive(tree: Tree) -> None:
    tree.put("/a/b/c")
    with pytest.raises(DirectoryNotEmptyError):
        tree.do(DeletePath("/a", False, 1))
    assert tree.do(DeletePath("/a", True, 1)).changed
    assert not tree.do(DeletePath("/a", True, 1)).changed


def test_a_path_through_a_file_is_no_missing_file(tree: Tree) -> None:
    tree.put("/d/a")
    with pytest.raises(PathThroughFileError, match=r"^/d/a \(is not a directory\)"):
        tree.namespace.find("/d/a/b/c")


def test_a_quota_counts_bytes_below(tree: Tree) -> None:
    tree.do(SetQuota("/c", 10, 1))
    tree.put("/c/x/a", b"12345")
    tree.put("/c/b", b"12345")
    for blocked in (
        PutFile("/c/d", file(b"1"), overwrite=False),
        AppendToFile("/c/b", (b"1",), 1),
        Rename("/c/.t", "/c/t", RenameMode.NONE, 1, file(b"1")),
        PutFile("/c/b", file(b"123456"), overwrite=True),
    ):
        with pytest.raises(QuotaExceededError):
            tree.do(blocked)
    tree.rename("/c/b", "/c/x/moved")  # a move inside adds nothing
    tree.put("/other", b"1")
    with pytest.raises(QuotaExceededError):
        tree.rename("/other", "/c/other")
    tree.do(DeletePath("/c/x/moved", False, 1))
    tree.put("/c/d", b"1")
    tree.do(SetQuota("/c", None, 1))
    tree.put("/c/e", b"1" * 100)


def names_below(directory: DirectoryNode) -> int:
    """Counted one by one; every directory below has the right number, too."""
    found = 0
    for child in directory.children.values():
        found += 1 + (names_below(child) if isinstance(child, DirectoryNode) else 0)
    assert directory.names_below == found
    return found


def test_a_quota_of_names_counts_files_and_directories_and_the_directory_itself(tree: Tree) -> None:
    """Cause: whoever might create below a path could make directories until the gateway's memory ended."""
    tree.do(SetNamesQuota("/c", 5, 1))
    tree.put("/c/x/a")
    tree.put("/c/b")
    for deep in (
        MakeDirectories("/c/y/z", 0o755, "a", 1),
        PutFile("/c/y/f", file(b""), overwrite=False),
    ):
        with pytest.raises(NameQuotaExceededError, match="of directory /c is exceeded: quota=5 file count=6"):
            tree.do(deep)
    with pytest.raises(NameQuotaExceededError):
        tree.namespace.check_put("/c/y/f", overwrite=False)
    tree.namespace.check_put("/c/y", overwrite=False)
    tree.put("/c/y")
    for blocked in (
        MakeDirectories("/c/z", 0o755, "a", 1),
        PutFile("/c/z", file(b""), overwrite=False),
        Rename("/c/.t", "/c/z", RenameMode.NONE, 1, file(b"1")),
    ):
        with pytest.raises(NameQuotaExceededError):
            tree.do(blocked)
    tree.do(PutFile("/c/b", file(b"other bytes"), overwrite=True))
    assert tree.do(MakeDirectories("/c/x", 0o755, "a", 1)).value
    tree.rename("/c/b", "/c/x/moved")  # a move inside adds nothing
    tree.put("/other/one")
    for source in ("/other/one", "/other"):
        with pytest.raises(NameQuotaExceededError):
            tree.rename(source, "/c/other")
    tree.do(Rename("/other/one", "/c/y", RenameMode.OVERWRITE, 1))
    tree.do(DeletePath("/c/x", True, 1))
    tree.rename("/other", "/c/other")
    assert names_below(tree.namespace.root) == 3
    tree.do(SetNamesQuota("/c/other/deep", 1, 1))
    with pytest.raises(NameQuotaExceededError):
        tree.put("/c/other/deep/f")
    tree.do(SetNamesQuota("/c", None, 1))
    tree.put("/c/e/f/g/h")
    with pytest.raises(PathExistsError, match="is not a directory"):
        tree.do(SetNamesQuota("/c/e/f/g/h", 1, 1))


def test_a_limit_is_set_below_one_that_is_used_up_and_below_what_is_there(tree: Tree) -> None:
    """The operator's word counts: a gateway starts with it."""
    tree.do(SetNamesQuota("/c", 1, 1))
    tree.do(SetNamesQuota("/c/d", 2, 1))
    tree.do(SetQuota("/c/e", 10, 1))
    assert names_below(tree.namespace.root) == 3
    tree.do(SetNamesQuota("/", 2, 1))
    with pytest.raises(NameQuotaExceededError, match="of directory / is exceeded"):
        tree.put("/f")
    assert not tree.do(SetNamesQuota("/c", 1, 1)).changed


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.put("/c/0"),
        lambda tree: tree.rename("/c/a", "/c/0"),
        lambda tree: tree.do(DeletePath("/c/0", False, 1)),
        lambda tree: tree.do(DeletePath("/c", True, 1)),
    ],
)
@pytest.mark.rule("S3")
def test_s3_what_a_look_rests_on_includes_the_record_that_made_it_so(
    tree: Tree, change: Callable[[Tree], ApplyResult]
) -> None:
    tree.put("/c/a")
    try:
        change(tree)
    except WebHdfsError:
        pytest.fail("the change is legal")
    assert tree.namespace.find("/c/0").seen == tree.namespace.sequence


@pytest.mark.rule("S3")
def test_s3_a_look_elsewhere_rests_on_less(tree: Tree) -> None:
    tree.put("/c/a")
    tree.put("/d/a")
    assert tree.namespace.find("/c/a").seen < tree.namespace.sequence
    assert tree.namespace.find("/c/missing").seen < tree.namespace.sequence


@pytest.mark.rule("S3")
def test_s3_what_a_directory_shows_rests_on_what_made_and_removed_its_children(tree: Tree) -> None:
    tree.put("/c/a")
    tree.put("/c/b")
    tree.do(DeletePath("/c/a", False, 1))
    assert tree.namespace.find("/c").seen == tree.namespace.sequence
    assert tree.namespace.seen_listing(tree.namespace.root) == tree.namespace.sequence


@pytest.mark.rule("S3")
def test_s3_what_a_directory_shows_rests_on_the_last_child_that_came(tree: Tree) -> None:
    tree.put("/c/a")
    tree.put("/c/b")
    assert tree.namespace.find("/c").seen == tree.namespace.sequence
    tree.put("/d/a")
    tree.rename("/d/a", "/c/d")
    assert tree.namespace.find("/c").seen == tree.namespace.find("/d").seen == tree.namespace.sequence


@pytest.mark.rule("S3")
def test_s3_a_listing_rests_on_its_latest_child_wherever_that_stands(tree: Tree) -> None:
    for path in ("/c/a", "/c/b", "/c/d"):
        tree.put(path)
    tree.do(SetAttributes("/c/b", permission=0o600))
    directory = tree.namespace.find("/c").node
    assert isinstance(directory, DirectoryNode)
    assert tree.namespace.seen_listing(directory) == tree.namespace.sequence


@pytest.mark.rule("S3")
def test_s3_a_quota_is_shown_as_the_record_that_set_it(tree: Tree) -> None:
    tree.put("/c/a")
    tree.do(SetQuota("/c", 10, 1))
    assert tree.namespace.find("/c").seen == tree.namespace.sequence


@pytest.mark.rule("S4")
def test_s4_a_rename_into_a_directory_repeated_after_a_lost_reply_succeeds_and_changes_nothing(tree: Tree) -> None:
    tree.put("/c/a")
    tree.do(MakeDirectories("/d", 0o755, "a", 1))
    assert tree.rename("/c/a", "/d", RenameMode.BARE).path == "/d/a"
    again = tree.rename("/c/a", "/d", RenameMode.BARE)
    assert (again.value, again.changed) == (True, False)


@pytest.mark.rule("S4")
def test_s4_who_follows_a_file_follows_it_through_renames_of_it_and_above_it_until_it_is_removed(tree: Tree) -> None:
    tree.put("/c/d/f")
    tree.put("/c/d/g")
    followed, other = tree.namespace.follow("/c/d/f"), tree.namespace.follow("/c/d/g")
    once_more = tree.namespace.follow_node(other)
    tree.rename("/c/d", "/e")
    tree.namespace.unfollow(other)
    tree.rename("/e/f", "/e/ff")
    tree.rename("/e/g", "/e/gg")
    assert (followed.path, other.path, once_more.path) == ("/e/ff", "/e/g", "/e/gg"), "each until its own end"
    other = once_more
    assert tree.namespace.still_there(followed) and tree.namespace.still_there(other)
    tree.put("/e/ff", b"another", overwrite=True)
    assert not tree.namespace.still_there(followed) and tree.namespace.still_there(other)


def test_an_append_adds_bytes_to_a_file_and_to_nothing_else(tree: Tree) -> None:
    tree.put("/c/a", b"12")
    tree.do(AppendToFile("/c/a", (b"345",), 8))
    node = tree.namespace.find("/c/a").node
    assert isinstance(node, FileNode)
    assert (tree.content("/c/a"), node.length, node.modified_ms) == (b"12345", 5, 8)
    with pytest.raises(PathExistsError, match="already exists as a directory"):
        tree.do(AppendToFile("/c", (b"1",), 1))
    with pytest.raises(NoSuchFileError):
        tree.do(AppendToFile("/c/b", (b"1",), 1))


@pytest.mark.rule("S13")
@pytest.mark.parametrize(("start", "length"), [(0, 9), (0, 5), (1, 3), (4, 5), (2, 6)])
def test_bytes_that_move_to_a_blob_are_the_same_bytes(tree: Tree, start: int, length: int) -> None:
    tree.put("/a", b"123")
    tree.do(AppendToFile("/a", (b"45", BlobRef("old", 7, 2), b"89"), 8))
    applied = tree.do(MoveToBlob("/a", start, BlobRef("new", 0, length)))
    node = tree.namespace.find("/a").node
    assert isinstance(node, FileNode)
    kept = [piece for piece in node.pieces if piece != BlobRef("new", 0, length)]
    outside = sum(len(piece) if isinstance(piece, bytes) else piece.length for piece in kept)
    assert (outside, node.length, node.modified_ms) == (9 - length, 9, 8)
    assert b"".join(piece for piece in node.pieces if isinstance(piece, bytes)) == b"".join(
        b"" if 5 <= at < 7 else b"12345__89"[at : at + 1] for at in range(9) if not start <= at < start + length
    )
    assert applied.freed == (("old",) if start <= 5 and start + length >= 7 else ())


def test_bytes_that_are_not_there_move_nowhere(tree: Tree) -> None:
    tree.put("/a", b"123")
    tree.do(MakeDirectories("/d", 0o755, "a", 1))
    for path, start, length in (("/a", 0, 4), ("/a", 3, 1), ("/a", 1, 0), ("/a", -1, 2), ("/b", 0, 1), ("/d", 0, 1)):
        with pytest.raises(NoSuchFileError, match="does not have the bytes"):
            tree.do(MoveToBlob(path, start, BlobRef("new", 0, length)))


def test_nothing_is_made_below_a_file(tree: Tree) -> None:
    tree.put("/a")
    with pytest.raises(ParentNotDirectoryError):
        tree.do(MakeDirectories("/a/b", 0o755, "a", 1))
    with pytest.raises(ParentNotDirectoryError):
        tree.put("/a/b")


def test_only_files_have_a_replication_and_only_who_is_told_changes_it(tree: Tree) -> None:
    tree.put("/c/a")
    tree.do(SetAttributes("/c/a", replication=3))
    tree.do(SetAttributes("/c/a", permission=0o600))
    tree.do(SetAttributes("/c", replication=5))
    node = tree.namespace.find("/c/a").node
    assert isinstance(node, FileNode) and (node.replication, node.permission) == (3, 0o600)


def test_what_is_overwritten_makes_room_below_its_quota(tree: Tree) -> None:
    tree.do(SetQuota("/c", 10, 1))
    tree.put("/c/a", b"1234567890")
    tree.put("/c/a", b"0987654321", overwrite=True)
    tree.namespace.check_room("/c/a", 10)
    for check in (tree.namespace.check_room, tree.namespace.check_more):
        with pytest.raises(QuotaExceededError):
            check("/c/b", 1)


@pytest.mark.parametrize("name", ["a:b", "..", "n" * 256])
def test_a_name_that_cannot_be_is_refused_before_its_bytes_come(tree: Tree, name: str) -> None:
    with pytest.raises(WebHdfsError, match=r"Invalid path name|maximum path component"):
        tree.namespace.check_put(f"/c/{name}", overwrite=False)


def test_a_directory_shows_when_names_came_and_went(tree: Tree) -> None:
    tree.do(MakeDirectories("/c", 0o755, "a", 1))
    tree.do(PutFile("/c/a", NewFile((b"x",), 0o644, "a", 1, 1, 20), overwrite=False))
    assert tree.namespace.find("/c").node.modified_ms == 20  # type: ignore[union-attr]
    tree.do(DeletePath("/c/a", False, 30))
    assert tree.namespace.find("/c").node.modified_ms == 30  # type: ignore[union-attr]


def test_a_summary_and_the_blobs_are_those_of_everything_below(tree: Tree) -> None:
    large = NewFile((BlobRef("17", 0, 9),), 0o644, "a", 1, 1, 1)
    tree.do(PutFile("/c/d/e/large", large, overwrite=False))
    tree.put("/c/d/f", b"123")
    tree.do(SetQuota("/c", 100, 1))
    whole, one = tree.namespace.find("/c").node, tree.namespace.find("/c/d/f").node
    assert whole is not None and one is not None
    assert tree.namespace.summary(whole) == ContentSummary(directories=3, files=2, length=12, quota=100)
    tree.do(SetNamesQuota("/c", 7, 1))
    assert tree.namespace.summary(whole).names_quota == 7
    assert tree.namespace.summary(one) == ContentSummary(directories=0, files=1, length=3, quota=None)
    assert tree.namespace.blobs() == {"17"}


NAMES = st.sampled_from(["a", "b", TEMP])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))


class AgainstAModel(RuleBasedStateMachine):
    """The tree against a dict of paths; and the same records, replayed, give the same tree."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = Tree()
        self.model: dict[str, bytes | None] = {"/": None}

    def attempt(self, record: Record) -> bool:
        before = snapshot.dump(self.tree.namespace)
        try:
            applied = self.tree.do(record)
        except WebHdfsError:
            assert snapshot.dump(self.tree.namespace) == before, "a refusal changes nothing"
            return False
        if not applied.changed:
            assert snapshot.dump(self.tree.namespace) == before, "no change is no change"
        return applied.changed

    def below(self, path: str) -> list[str]:
        return [p for p in self.model if p == path or p.startswith(path + "/")]

    def parents(self, path: str) -> list[str]:
        parts = path.split("/")
        return ["/".join(parts[:i]) or "/" for i in range(1, len(parts))]

    @rule(path=PATHS, data=st.binary(max_size=3), overwrite=st.booleans())
    def put(self, path: str, data: bytes, overwrite: bool) -> None:
        legal = all(self.model.get(p, None) is None for p in self.parents(path)) and (
            path not in self.model or (overwrite and self.model[path] is not None)
        )
        assert self.attempt(PutFile(path, file(data), overwrite)) == legal
        if legal:
            for parent in self.parents(path):
                self.model.setdefault(parent, None)
            self.model[path] = data

    @rule(path=PATHS, recursive=st.booleans())
    def delete(self, path: str, recursive: bool) -> None:
        found = self.below(path)
        legal = path in self.model and (recursive or len(found) == 1)
        assert self.attempt(DeletePath(path, recursive, 1)) == legal
        if legal:
            for gone in found:
                del self.model[gone]

    @rule(source=PATHS, goal=PATHS, mode=st.sampled_from(RenameMode))
    def rename(self, source: str, goal: str, mode: RenameMode) -> None:
        found = self.below(source)
        before = dict(self.model)
        if not self.attempt(Rename(source, goal, mode, 1)):
            return
        node = self.tree.namespace.find(goal).node
        if mode is RenameMode.BARE and goal in before:
            goal = f"{goal}/{source.rsplit('/', 1)[1]}"
        moved = {goal + path[len(source) :]: self.model.pop(path) for path in found}
        self.model.update(moved)
        assert node is not None
        assert found, "only what was there can be moved"

    @rule(path=PATHS, mode=st.integers(0, 0o777))
    def set_permission(self, path: str, mode: int) -> None:
        legal = path in self.model
        assert self.attempt(SetAttributes(path, permission=mode)) == legal

    @invariant()
    def s2_the_tree_is_the_model(self) -> None:
        names_below(self.tree.namespace.root)
        assert self.tree.namespace.memory.used == walked(self.tree.namespace)
        shown: dict[str, bytes | None] = {}
        stack: list[tuple[str, DirectoryNode]] = [("", self.tree.namespace.root)]
        while stack:
            at, directory = stack.pop()
            shown[at or "/"] = None
            total = 0
            for name, child in directory.children.items():
                if isinstance(child, DirectoryNode):
                    stack.append((f"{at}/{name}", child))
                    total += child.bytes_below
                else:
                    shown[f"{at}/{name}"] = self.tree.content(f"{at}/{name}")
                    total += child.length
            assert directory.bytes_below == total
        assert shown == self.model
        files = [path for path, data in shown.items() if data is not None]
        assert self.tree.namespace.temporary_files == sum(path.endswith(TEMP) for path in files)
        found = [t.path for temps in temporary_files(self.tree.namespace.root) for t in temps]
        assert sorted(found) == sorted(path for path in files if path.endswith(TEMP))

    def teardown(self) -> None:
        replayed = Namespace()
        for number, record in enumerate(self.tree.records, 1):
            assert replayed.apply(decode_record(*encode_record(record)), number).changed
        assert snapshot.dump(replayed) == snapshot.dump(self.tree.namespace)
        loaded = snapshot.load(b"".join(snapshot.dump(replayed)))
        assert snapshot.dump(loaded) == snapshot.dump(replayed)
        assert loaded.temporary_files == replayed.temporary_files == self.tree.namespace.temporary_files


TestAgainstAModel = pytest.mark.rule("S1", "S2", "S4")(AgainstAModel.TestCase)
TestAgainstAModel.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)


def test_files_above_a_number_go_in_one_step_and_the_sums_are_right(tree: Tree) -> None:
    for name in ("offsets/3", "offsets/4", "offsets/10", "state/0/1/5.delta", "state/0/1/_metadata/schema", "metadata"):
        tree.put(f"/c/{name}", b"abc")
    tree.do(PutFile("/c/state/0/1/6.zip", NewFile((BlobRef("7", 0, 3),), 0o644, "alice", 1, 1 << 20, 7), False))
    limits = (NumberLimit("offsets", 3), NumberLimit("state/*/*", 4))
    before = tree.namespace.sequence
    applied = tree.do(RemoveNumbered("/c", limits, 9))
    assert applied.removed == ("/c/offsets/10", "/c/offsets/4", "/c/state/0/1/5.delta", "/c/state/0/1/6.zip")
    assert applied.freed == ("7",) and tree.namespace.sequence == before + 1
    assert tree.namespace.summary(tree.namespace.root).length == 9
    assert tree.content("/c/offsets/3") == b"abc"
    assert not tree.do(RemoveNumbered("/c", limits, 9)).changed
    with pytest.raises(NoSuchFileError):
        tree.do(RemoveNumbered("/none", limits, 9))
    again = Namespace()
    for number, record in enumerate(tree.records, 1):
        again.apply(decode_record(*encode_record(record)), number)
    assert snapshot.dump(again) == snapshot.dump(tree.namespace)
