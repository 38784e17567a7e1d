"""The tree, and everything that may happen to it. A machine: no I/O, no clock, no chance.

    applied = namespace.apply(record, sequence)      changes the tree, or raises a WebHdfsError and changes nothing
    found   = namespace.find(path)                   what is there, and which record made it so

The live gateway and a replay run the same ``apply``: a record that was refused is not in the journal, so a
refusal during a replay means that journal and program do not fit, and is an error.

Rules kept here
    S1  Of several records that create one path without overwriting, exactly one is applied; the others
        are refused with *already exists*.
    S2  A file enters the tree complete; nothing in here is half a file. (Files that grow enter it empty: S13.)
    S4  A rename is one step: no moment shows both names or neither. Whoever is appending to a file that is
        renamed goes on with it under its new name.
    A rename that is asked for again after its reply was lost is recognised by the target's
    ``renamed_from`` and succeeds without change; Hadoop's client repeats renames blindly.
"""

from __future__ import annotations

from spark_wal.webhdfs.errors import (
    DirectoryNotEmptyError,
    NoSuchFileError,
    ParentNotDirectoryError,
    PathExistsError,
    PathThroughFileError,
)
from spark_wal.webhdfs.files.inodes import (
    GROUP,
    OWNER_OF_ROOT,
    ROOT_INODE,
    DirectoryNode,
    FileNode,
    Node,
    blobs_below,
    cut,
    directories_below,
)
from spark_wal.webhdfs.files.lookups import existing_file, file_to_append, look_up, node_at
from spark_wal.webhdfs.files.numbered import files_below, removed_by
from spark_wal.webhdfs.files.paths import check_new, child_of, is_temporary, name_of, names_of, parent_of
from spark_wal.webhdfs.files.quotas import (
    add_below,
    check_names,
    check_quota,
    length_of,
    missing_names,
    names_in,
    summary_of,
)
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
)
from spark_wal.webhdfs.files.rename_rules import is_repeated, judge_bare, judge_with_options
from spark_wal.webhdfs.files.tracked_files import TrackedFile, TrackedFiles
from spark_wal.webhdfs.files.tree_answers import (
    UNCHANGED_FALSE,
    UNCHANGED_TRUE,
    ApplyResult,
    ContentSummary,
    PathLookup,
    shown,
)
from spark_wal.webhdfs.files.tree_memory import NAME_BYTES, TreeMemory, inline_of, size_of


class Namespace:
    """The tree of one gateway."""

    def __init__(self) -> None:
        self.root = DirectoryNode(ROOT_INODE, 0o755, OWNER_OF_ROOT, GROUP, modified_ms=0)
        self.last_inode = ROOT_INODE
        self.sequence = 0
        """The sequence number of the last record applied."""
        self.memory = TreeMemory()
        self.memory.add(self.root)
        self.temporary_files = 0
        """How many files have one of Spark's temporary names."""
        self._followed = TrackedFiles()
        self._moves: dict[str, Node] = {}
        """Where things were before their last rename -> the thing. Its ``renamed_from`` says the same."""

    # -- looking ---------------------------------------------------------------------------------------

    def find(self, path: str) -> PathLookup:
        """Find what is at ``path``.

        Raises:
            PathThroughFileError: the path leads through a file.
        """
        return look_up(self.root, path)

    def _at(self, path: str) -> Node | None:
        """Find the node for a change: what the answer rests on is not asked."""
        return node_at(self.root, path)

    def seen_listing(self, directory: DirectoryNode) -> int:
        """What a listing of ``directory`` rests on, besides the directory itself."""
        return max(map(shown, directory.children.values()), default=0)

    def summary(self, node: Node) -> ContentSummary:
        """The sums of everything at and below a node."""
        return summary_of(node)

    @property
    def limits_names(self) -> bool:
        """Whether a directory has a quota of names."""
        return any(directory.names_quota is not None for directory in directories_below(self.root))

    def blobs(self) -> set[str]:
        """Every blob that a file refers to."""
        return blobs_below(self.root)

    def adopt(self, path: str, node: Node) -> None:
        """Put a node back where a snapshot had it (parents first); quotas and sums are brought along."""
        parent = self._directory(parent_of(path))
        parent.children[name_of(path)] = node
        self.memory.add(node)
        self.memory.name(name_of(path))
        self._note_move(node)
        self._count(path, node, 1)
        add_below(self.root, parent_of(path), 0, 1)

    # -- following -------------------------------------------------------------------------------------

    @property
    def following(self) -> int:
        """How many files are followed."""
        return len(self._followed)

    def follow(self, path: str) -> TrackedFile:
        """Follow the file at ``path`` wherever it is renamed to, until ``unfollow``.

        Raises:
            NoSuchFileError, PathExistsError: there is no file.
        """
        return self._followed.follow(file_to_append(self.root, path), path)

    def follow_node(self, followed: TrackedFile) -> TrackedFile:
        """Follow the same file once more, with an end of its own."""
        return self._followed.follow(followed.node, followed.path)

    def unfollow(self, followed: TrackedFile) -> None:
        self._followed.unfollow(followed)

    def still_there(self, followed: TrackedFile) -> bool:
        """Whether the file was not removed or replaced meanwhile."""
        try:
            return self.find(followed.path).node is followed.node
        except PathThroughFileError:
            return False

    # -- changing --------------------------------------------------------------------------------------

    def apply(self, record: Record, sequence: int) -> ApplyResult:
        """Apply the record completely, or not at all.

        Raises:
            WebHdfsError: the record was refused, and nothing has changed.
        """
        match record:
            case PutFile():
                applied = self._put(record, sequence)
            case Rename():
                applied = self._rename(record, sequence)
            case DeletePath():
                applied = self._delete(record, sequence)
            case MakeDirectories():
                applied = self._make_directories(record, sequence)
            case AppendToFile():
                applied = self._append(record, sequence)
            case SetAttributes():
                applied = self._set_attributes(record, sequence)
            case SetQuota() | SetNamesQuota():
                applied = self._set_quota(record, sequence)
            case RemoveNumbered():
                applied = self._remove_numbered(record, sequence)
            case MoveToBlob():
                applied = self._move_to_blob(record, sequence)
        if applied.changed:
            self.sequence = sequence
        return applied

    def _make_directories(self, r: MakeDirectories, sequence: int) -> ApplyResult:
        try:
            node = self._at(r.path)
        except PathThroughFileError as error:
            raise ParentNotDirectoryError(str(error)) from None
        if isinstance(node, FileNode):
            raise PathExistsError(f"Path is not a directory: {r.path}")
        if node is not None:
            return UNCHANGED_TRUE
        check_new(r.path)
        check_names(self.root, parent_of(r.path), missing_names(self.root, r.path))
        self.memory.check(self._new_names(r.path) + size_of(r.owner))
        self._make_directory(r, sequence)
        return ApplyResult()

    def _make_directory(self, r: MakeDirectories, sequence: int) -> None:
        parent = self._make_parents(r.path, r.owner, r.at_ms, sequence)
        made = DirectoryNode(self._inode(), r.permission, r.owner, parent.group, r.at_ms, changed=sequence)
        self.memory.add(made)
        self._link(parent, r.path, made, r.at_ms, sequence)

    def _put(self, r: PutFile, sequence: int) -> ApplyResult:
        existing = existing_file(self.root, r.path, overwrite=r.overwrite)
        if existing is None:
            check_new(r.path)
            if not r.create_parent and self._at(parent_of(r.path)) is None:
                raise NoSuchFileError(f"Parent directory doesn't exist: {parent_of(r.path)}")
            check_names(self.root, parent_of(r.path), missing_names(self.root, r.path))
        self.memory.check(self._new_names(r.path) + inline_of(r.file.pieces) + size_of(r.file.owner))
        check_quota(self.root, parent_of(r.path), r.file.length - (existing.length if existing else 0))
        parent = self._make_parents(r.path, r.file.owner, r.file.at_ms, sequence)
        if existing is not None:
            self._unlink(parent, r.path, existing, r.file.at_ms, sequence)
        made = self._new_file(r.file, parent, sequence, r.group)
        made.accessed_ms = made.accessed_ms if r.accessed_ms is None else r.accessed_ms
        self._link(parent, r.path, made, r.file.at_ms, sequence)
        return ApplyResult(freed=tuple(self._forget_below(existing)) if existing else ())

    def check_put(self, path: str, *, overwrite: bool) -> None:
        """Check that a file could be put there now. Called before its bytes are received, to refuse early.

        Raises:
            WebHdfsError: the same as from ``apply``.
        """
        if existing_file(self.root, path, overwrite=overwrite) is None:
            check_new(path)
            check_names(self.root, parent_of(path), missing_names(self.root, path))
            self.memory.check(self._new_names(path))

    def check_room(self, path: str, size: int) -> None:
        """Check that a file of ``size`` bytes would keep the quotas now. Called while its bytes are received.

        Raises:
            QuotaExceededError: it would break a quota.
        """
        node = self._find_target(path)
        check_quota(self.root, parent_of(path), size - length_of(node if isinstance(node, FileNode) else None))

    def check_more(self, path: str, size: int) -> None:
        """Like :meth:`check_room`, for an append of ``size`` bytes."""
        check_quota(self.root, parent_of(path), size)

    def _append(self, r: AppendToFile, sequence: int) -> ApplyResult:
        node = file_to_append(self.root, r.path)
        length = NewFile(r.pieces, 0, "", 0, 0, 0).length
        if length == 0:
            return UNCHANGED_TRUE
        check_quota(self.root, parent_of(r.path), length)
        self.memory.check(inline_of(r.pieces))
        self.memory.remove(node)
        node.pieces += r.pieces
        self.memory.add(node)
        node.length += length
        node.modified_ms = node.touched_ms = r.at_ms
        node.changed = sequence
        add_below(self.root, parent_of(r.path), length, 0)
        return ApplyResult()

    def _move_to_blob(self, r: MoveToBlob, sequence: int) -> ApplyResult:
        node = self._at(r.path)
        end = r.start + r.blob.length
        if not isinstance(node, FileNode) or not 0 <= r.start < end <= node.length:
            raise NoSuchFileError(f"File {r.path} does not have the bytes from {r.start} to {end}.")
        before = set(node.blobs())
        self.memory.remove(node)
        node.pieces = (*cut(node.pieces, 0, r.start), r.blob, *cut(node.pieces, end, node.length))
        self.memory.add(node)
        node.changed = sequence
        return ApplyResult(freed=tuple(sorted(before.difference(node.blobs()))))

    def _delete(self, r: DeletePath, sequence: int) -> ApplyResult:
        node = self._at(r.path)
        if node is None:
            return UNCHANGED_FALSE
        if isinstance(node, DirectoryNode) and node.children and not r.recursive:
            raise DirectoryNotEmptyError(f"`{r.path} is non empty': Directory is not empty")
        if node is self.root:
            return UNCHANGED_FALSE
        self._unlink(self._directory(parent_of(r.path)), r.path, node, r.at_ms, sequence)
        return ApplyResult(freed=tuple(self._forget_below(node)))

    def _remove_numbered(self, r: RemoveNumbered, sequence: int) -> ApplyResult:
        directory = self._at(r.path)
        if not isinstance(directory, DirectoryNode):
            raise NoSuchFileError(f"Directory {r.path} does not exist.")
        names = removed_by(r.limits, (path for path, _ in files_below(directory)))
        removed = tuple(child_of(r.path, name) for name in names)
        freed: list[str] = []
        for path in removed:
            node = self._at(path)
            assert node is not None
            self._unlink(self._directory(parent_of(path)), path, node, r.at_ms, sequence)
            freed += self._forget_below(node)
        return ApplyResult(freed=tuple(freed), removed=removed) if removed else UNCHANGED_FALSE

    def _set_attributes(self, r: SetAttributes, sequence: int) -> ApplyResult:
        node = self._at(r.path)
        if node is None:
            raise NoSuchFileError(f"Directory/File does not exist {r.path}")
        self.memory.check(size_of(r.owner) + size_of(r.group))
        self.memory.remove(node)
        node.permission = node.permission if r.permission is None else r.permission
        node.owner = r.owner or node.owner
        node.group = r.group or node.group
        self.memory.add(node)
        node.modified_ms = node.modified_ms if r.modified_ms is None else r.modified_ms
        node.accessed_ms = node.accessed_ms if r.accessed_ms is None else r.accessed_ms
        if isinstance(node, FileNode) and r.replication is not None:
            node.replication = r.replication
        node.changed = sequence
        return ApplyResult()

    def _set_quota(self, r: SetQuota | SetNamesQuota, sequence: int) -> ApplyResult:
        """Set a limit; what is there already stays. The directory is made whatever limits are above it."""
        at = self._find_target(r.path)
        if isinstance(at, FileNode):
            raise PathExistsError(f"Path is not a directory: {r.path}")
        if at is None:
            check_new(r.path)
            self._make_directory(MakeDirectories(r.path, 0o755, OWNER_OF_ROOT, r.at_ms), sequence)
        directory = self._directory(r.path)
        before = directory.names_quota if isinstance(r, SetNamesQuota) else directory.quota
        if before == r.quota and at is not None:
            return UNCHANGED_TRUE
        if isinstance(r, SetNamesQuota):
            directory.names_quota = r.quota
        else:
            directory.quota = r.quota
        directory.changed = sequence
        return ApplyResult()

    # -- renaming --------------------------------------------------------------------------------------

    def _rename(self, r: Rename, sequence: int) -> ApplyResult:
        source = None if r.carried is not None else self._at(r.source)
        target = r.target
        if source is None and r.carried is None and is_repeated(r, self._moves.get(r.source), self._at):
            return UNCHANGED_TRUE
        if r.mode is RenameMode.BARE:
            verdict, target = judge_bare(r, source, self._find_target)
            if verdict is not None:
                return verdict
        else:
            judge_with_options(r, source, self._find_target)
        check_new(target)
        length = r.carried.length if r.carried is not None else length_of(source)
        replaced = self._at(target)
        check_quota(self.root, parent_of(target), length - length_of(replaced), moved_from=r.source, carried=r.carried)
        names = names_in(source) if r.carried is None else 1
        self.memory.check(2 * size_of(r.source) + size_of(target) + (inline_of(r.carried.pieces) if r.carried else 0))
        check_names(self.root, parent_of(target), names - names_in(replaced), r.source if r.carried is None else None)
        parent = self._directory(parent_of(target))
        if replaced is not None:
            self._unlink(parent, target, replaced, r.at_ms, sequence)
        freed = tuple(self._forget_below(replaced)) if replaced is not None else ()
        if r.carried is not None:
            node: Node = self._new_file(r.carried, parent, sequence)
        else:
            assert source is not None
            node = source
            self._unlink(self._directory(parent_of(r.source)), r.source, node, r.at_ms, sequence)
            self._forget_move(node)
        self._set_origin(node, r.source)
        node.changed = sequence
        self._link(parent, target, node, r.at_ms, sequence)
        self._followed.lead(r.source, target)
        if isinstance(node, FileNode):
            node.touched_ms = r.at_ms
        return ApplyResult(path=target, length=node.length if isinstance(node, FileNode) else None, freed=freed)

    def _find_target(self, path: str) -> Node | None:
        try:
            return self._at(path)
        except PathThroughFileError as error:
            raise ParentNotDirectoryError(str(error)) from None

    # -- small parts -----------------------------------------------------------------------------------

    def _directory(self, path: str) -> DirectoryNode:
        node = self._at(path)
        assert isinstance(node, DirectoryNode), path
        return node

    def _inode(self) -> int:
        self.last_inode += 1
        return self.last_inode

    def _new_file(self, file: NewFile, parent: DirectoryNode, sequence: int, group: str | None = None) -> FileNode:
        made = FileNode(
            inode=self._inode(),
            permission=file.permission,
            owner=file.owner,
            group=group or parent.group,
            modified_ms=file.at_ms,
            accessed_ms=file.at_ms,
            pieces=file.pieces,
            length=file.length,
            replication=file.replication,
            block_size=file.block_size,
            touched_ms=file.at_ms,
            changed=sequence,
        )
        self.memory.add(made)
        return made

    def _make_parents(self, path: str, owner: str, at_ms: int, sequence: int) -> DirectoryNode:
        """Return the directory of ``path``. Make it, and those above it, if they do not exist."""
        node: DirectoryNode = self.root
        names = names_of(parent_of(path))
        for depth, name in enumerate(names, 1):
            child = node.children.get(name)
            if child is None:
                child = DirectoryNode(self._inode(), 0o755, owner, node.group, at_ms, changed=sequence)
                self.memory.add(child)
                self._link(node, f"/{'/'.join(names[:depth])}", child, at_ms, sequence)
            assert isinstance(child, DirectoryNode), path
            node = child
        return node

    def _link(self, parent: DirectoryNode, path: str, node: Node, at_ms: int, sequence: int) -> None:
        parent.children[name_of(path)] = node
        self.memory.name(name_of(path))
        parent.names_changed = sequence
        parent.modified_ms = at_ms
        old = self._moves.pop(path, None)
        if old is not None and old is not node:
            self._set_origin(old, None)  # its old path has a new node, so a rename from there is no repeat
        self._note_move(node)
        self._count(path, node, 1)
        add_below(self.root, parent_of(path), length_of(node), names_in(node))

    def _unlink(self, parent: DirectoryNode, path: str, node: Node, at_ms: int, sequence: int) -> None:
        del parent.children[name_of(path)]
        self.memory.name(name_of(path), -1)
        parent.names_changed = sequence
        parent.modified_ms = at_ms
        self._count(path, node, -1)
        add_below(self.root, parent_of(path), -length_of(node), -names_in(node))

    def _count(self, name: str, node: Node, delta: int) -> None:
        if isinstance(node, FileNode) and is_temporary(name):
            self.temporary_files += delta

    def _note_move(self, node: Node) -> None:
        if node.renamed_from is not None:
            self._moves[node.renamed_from] = node

    def _forget_move(self, node: Node) -> None:
        if node.renamed_from is not None and self._moves.get(node.renamed_from) is node:
            del self._moves[node.renamed_from]
        self._set_origin(node, None)

    def _set_origin(self, node: Node, path: str | None) -> None:
        self.memory.remove(node)
        node.renamed_from = path
        self.memory.add(node)

    def _forget_below(self, node: Node) -> list[str]:
        """Forget the moves of a removed subtree. Returns its blobs."""
        freed: list[str] = []
        stack = [node]
        while stack:
            current = stack.pop()
            self._forget_move(current)
            self.memory.remove(current)
            if isinstance(current, DirectoryNode):
                for name, child in current.children.items():
                    self._count(name, child, -1)
                    self.memory.name(name, -1)
                    stack.append(child)
            else:
                freed.extend(current.blobs())
        return freed

    def _new_names(self, path: str) -> int:
        """The memory of the names of a path that have to be made."""
        missing = missing_names(self.root, path)
        return missing * NAME_BYTES + sum(map(size_of, names_of(path)[len(names_of(path)) - missing :]))
