"""The namespace replays a real name node's log to that name node's own end state, and refuses what does not fit."""

from __future__ import annotations

import json

import pytest

from examples.namenode_sim.errors import ReplayError, UnsupportedOpError
from examples.namenode_sim.image import listing, read_image, write_image
from examples.namenode_sim.inodes import DirectoryInode, FileInode, SymlinkInode
from examples.namenode_sim.namespace import HdfsNamespace
from journal_manager.hdfs.hdfs_ops import (
    AddBlockOp,
    AddCacheDirectiveOp,
    AddCachePoolOp,
    AddOp,
    AllowSnapshotOp,
    AppendOp,
    CloseOp,
    ConcatDeleteOp,
    CreateSnapshotOp,
    DeleteOp,
    DeleteSnapshotOp,
    DisallowSnapshotOp,
    EnableErasureCodingPolicyOp,
    EndLogSegmentOp,
    HdfsOp,
    MkdirOp,
    ModifyCacheDirectiveOp,
    ModifyCachePoolOp,
    ReassignLeaseOp,
    RemoveCacheDirectiveOp,
    RemoveCachePoolOp,
    RemoveXAttrOp,
    RenameOldOp,
    RenameOp,
    RenameSnapshotOp,
    SetAclOp,
    SetOwnerOp,
    SetPermissionsOp,
    SetQuotaOp,
    SetReplicationOp,
    SetStoragePolicyOp,
    SetXAttrOp,
    StartLogSegmentOp,
    SymlinkOp,
    TimesOp,
    TruncateOp,
    UpdateBlocksOp,
)
from journal_manager.hdfs.op_values import (
    Block,
    CacheDirective,
    CachePool,
    HdfsAclEntry,
    PathAcl,
    PathXAttrs,
    Permissions,
    XAttr,
)
from tests.journal_manager.hdfs import decoded, vector

P = Permissions("u", "g", 0o644)


def mkdir(path: str, number: int = 1, at: int = 1) -> MkdirOp:
    return MkdirOp(16385 + number, path, at, at, P)


def add(path: str, number: int = 1, at: int = 1, *, overwrite: bool = False) -> AddOp:
    return AddOp(16385 + number, path, 3, at, at, 128, (), P, client_name="c", overwrite=overwrite)


def close(path: str, *blocks: Block, at: int = 2) -> CloseOp:
    return CloseOp(0, path, 3, at, at, 128, blocks, P)


def made(*ops: HdfsOp) -> HdfsNamespace:
    namespace = HdfsNamespace()
    run(namespace, *ops)
    return namespace


def run(namespace: HdfsNamespace, *ops: HdfsOp) -> None:
    for op in ops:
        namespace.apply(namespace.txid + 1, op)


def refused(namespace: HdfsNamespace, op: HdfsOp, why: str) -> None:
    """The edit is refused, and nothing has changed."""
    before = b"".join(write_image(namespace))
    with pytest.raises(ReplayError, match=why):
        namespace.apply(namespace.txid + 1, op)
    assert b"".join(write_image(namespace)) == before


def paths(namespace: HdfsNamespace) -> list[str]:
    return [row["path"] for row in listing(namespace)]


def test_the_real_log_leads_to_the_real_end_state() -> None:
    namespace = HdfsNamespace()
    for txid, op in decoded(vector("edits_1-534.bin")):
        namespace.apply(txid, op)
    end_state = [json.loads(line) for line in vector("namespace.jsonl").decode().splitlines()]
    assert list(listing(namespace)) == end_state
    assert (namespace.last_inode_id, namespace.last_block_id, namespace.generation) == (16477, 1073741892, 1072)


@pytest.mark.parametrize("stop", [1, 57, 288, 400, 533])
def test_an_image_at_any_edit_and_the_edits_behind_it_lead_to_the_same(stop: int) -> None:
    ops = decoded(vector("edits_1-534.bin"))
    whole, half = HdfsNamespace(), HdfsNamespace()
    for txid, op in ops:
        whole.apply(txid, op)
        if txid <= stop:
            half.apply(txid, op)
    half = read_image(write_image(half))
    for txid, op in ops[stop:]:
        half.apply(txid, op)
    assert b"".join(write_image(half)) == b"".join(write_image(whole))


def test_most_of_the_real_edits_do_not_fit_a_second_time_and_none_is_taken() -> None:
    """Each edit is offered again, also under the next id: the id tells all, the namespace alone most."""
    namespace = HdfsNamespace()
    unfit: set[str] = set()
    for txid, op in decoded(vector("edits_1-534.bin")):
        namespace.apply(txid, op)
        with pytest.raises(ReplayError, match="the ids rise by one"):
            namespace.apply(txid, op)
        if isinstance(op, MkdirOp | DeleteOp | RenameOp | RenameOldOp | ConcatDeleteOp | CloseOp | AppendOp):
            refused(namespace, op, "does not fit")
            unfit.add(type(op).__name__)
    assert len(unfit) == 7


def test_an_edit_that_is_left_out_is_noticed() -> None:
    with pytest.raises(ReplayError, match="edit 3 cannot be applied behind edit 1"):
        namespace = made(mkdir("/a"))
        namespace.apply(3, DeleteOp("/a", 1))


# -- names ------------------------------------------------------------------------------------------------


def test_a_directory_is_made_where_its_parent_is() -> None:
    namespace = made(mkdir("/a", 1, 5), mkdir("/a/b", 2, 9))
    assert paths(namespace) == ["/", "/a", "/a/b"]
    assert namespace.directory("/a").mtime == 9
    assert namespace.last_inode_id == 16387
    run(namespace, mkdir("/a/c", 3, 7))
    assert namespace.directory("/a").mtime == 9, "a directory's time never goes back when its names change"
    refused(namespace, mkdir("/a"), "already")
    refused(namespace, mkdir("/x/y"), "nothing at /x")
    refused(namespace, mkdir("/"), "no name in a directory")


def test_a_file_is_no_place_for_names() -> None:
    namespace = made(add("/f"))
    refused(namespace, mkdir("/f/a"), "no directory")
    refused(namespace, mkdir("/f/a/b"), "nothing at /f/a")
    assert namespace.find("/f/a/b") is None


def test_a_file_replaces_a_file_only_where_it_is_said() -> None:
    namespace = made(add("/f", 1), mkdir("/d", 2))
    refused(namespace, add("/f", 3), "already")
    refused(namespace, add("/d", 3, overwrite=True), "no file")
    run(namespace, add("/f", 3, overwrite=True))
    assert namespace.file("/f").id == 16388


def test_a_bare_rename_goes_into_a_directory_and_never_replaces() -> None:
    namespace = made(mkdir("/d", 1), add("/f", 2), add("/g", 3), add("/d/g", 4))
    run(namespace, RenameOldOp("/f", "/d", 7))
    assert paths(namespace) == ["/", "/d", "/d/f", "/d/g", "/g"]
    assert namespace.directory("/").mtime == namespace.directory("/d").mtime == 7
    refused(namespace, RenameOldOp("/g", "/d", 8), "already")
    refused(namespace, RenameOldOp("/d", "/d/e", 8), "below itself")
    run(namespace, mkdir("/d/e", 9), mkdir("/d/e/h", 10))
    refused(namespace, RenameOldOp("/d", "/d/e/h/d", 8), "below itself")
    refused(namespace, RenameOldOp("/none", "/x", 8), "nothing at /none")
    refused(namespace, RenameOldOp("/g", "/x/y", 8), "nothing at /x")
    refused(namespace, RenameOldOp("/", "/x", 8), "root")


def test_a_rename_with_options_replaces_what_is_of_its_kind_and_empty() -> None:
    namespace = made(mkdir("/d", 1), mkdir("/e", 2), add("/f", 3), add("/g", 4), add("/e/x", 5))
    refused(namespace, RenameOp("/f", "/g", 7, b"\x00"), "already")
    refused(namespace, RenameOp("/f", "/d", 7, b"\x01"), "cannot replace each other")
    refused(namespace, RenameOp("/d", "/e", 7, b"\x01"), "not empty")
    refused(namespace, RenameOp("/f", "/f", 7, b"\x01"), "the same")
    run(namespace, RenameOp("/f", "/g", 7, b"\x01"), RenameOp("/e", "/d", 7, b"\x01"))
    assert paths(namespace) == ["/", "/d", "/d/x", "/g"]
    assert namespace.file("/g").id == 16388


def test_names_below_a_directory_are_found_where_it_went() -> None:
    namespace = made(mkdir("/a", 1), mkdir("/a/b", 2), add("/a/b/f", 3))
    assert namespace.find("/a/b/f") is not None
    run(namespace, RenameOldOp("/a", "/z", 5), mkdir("/a", 4))
    assert namespace.find("/a/b/f") is None
    assert namespace.file("/z/b/f").path == "/z/b/f"
    run(namespace, DeleteOp("/z/b", 6))
    assert namespace.find("/z/b/f") is None
    refused(namespace, DeleteOp("/z/b", 6), "nothing at")
    refused(namespace, DeleteOp("/", 6), "no name")


def test_a_link_is_a_name_with_a_target() -> None:
    namespace = made(SymlinkOp(16386, "/l", "/target", 3, 4, P))
    link = namespace.inode("/l")
    assert isinstance(link, SymlinkInode)
    assert (link.target, link.mtime, link.atime) == ("/target", 3, 4)
    run(namespace, TimesOp("/l", -1, 9))
    assert (link.mtime, link.atime) == (3, 9)


# -- files ------------------------------------------------------------------------------------------------


def test_a_file_grows_block_by_block_and_is_closed() -> None:
    one, two = Block(1, 128, 7), Block(2, 0, 8)
    namespace = made(add("/f"), AddBlockOp("/f", (one._replace(length=0),)), AddBlockOp("/f", (one, two)))
    assert namespace.file("/f").blocks == (one, two)
    refused(namespace, AddBlockOp("/f", (one, Block(3, 0, 9))), "does not follow")
    refused(namespace, AddBlockOp("/f", (Block(3, 0, 9),)), "does not follow")
    refused(namespace, AppendOp("/f", "d", "m", False), "open for writing by c")
    run(namespace, UpdateBlocksOp("/f", (one,)), close("/f", one, at=5))
    assert (namespace.file("/f").length, namespace.file("/f").client, namespace.file("/f").mtime) == (128, None, 5)
    for op in (close("/f"), AddBlockOp("/f", (two,)), UpdateBlocksOp("/f", ()), ReassignLeaseOp("c", "/f", "d")):
        refused(namespace, op, "not open for writing")
    run(namespace, AppendOp("/f", "d", "m", False), ReassignLeaseOp("d", "/f", "e"))
    assert namespace.file("/f").client == "e"
    refused(namespace, close("/none"), "nothing at")


def test_a_file_is_cut_at_a_block_or_through_one() -> None:
    blocks = (Block(1, 128, 7), Block(2, 100, 8))
    namespace = made(add("/f"), close("/f", *blocks))
    refused(namespace, TruncateOp("/f", "c", "m", 229, 9), "228 bytes")
    refused(namespace, TruncateOp("/f", "c", "m", -1, 9), "228 bytes")
    refused(namespace, TruncateOp("/f", "c", "m", 0, 9, (Block(1, 128, 9),)), "nothing is left")
    run(namespace, TruncateOp("/f", "c", "m", 200, 9, (Block(2, 100, 9),)))
    assert namespace.file("/f").blocks == (blocks[0], Block(2, 72, 9))
    assert namespace.file("/f").client == "c"
    run(namespace, close("/f", blocks[0], Block(2, 72, 9)), TruncateOp("/f", "c", "m", 128, 10))
    assert (namespace.file("/f").blocks, namespace.file("/f").client) == (blocks[:1], None)


def test_sources_become_the_targets_last_blocks() -> None:
    one, two = Block(1, 5, 7), Block(2, 6, 8)
    namespace = made(add("/t", 1), close("/t", one), add("/s", 2), close("/s", two), add("/open", 3))
    refused(namespace, ConcatDeleteOp("/t", ("/s", "/open"), 9), "open for writing")
    refused(namespace, ConcatDeleteOp("/t", ("/s", "/s"), 9), "different files")
    refused(namespace, ConcatDeleteOp("/t", ("/t",), 9), "different files")
    run(namespace, ConcatDeleteOp("/t", ("/s",), 9))
    assert namespace.file("/t").blocks == (one, two)
    assert namespace.find("/s") is None
    assert namespace.file("/t").mtime == namespace.root.mtime == 9


# -- what is known of an inode ----------------------------------------------------------------------------


def test_owner_mode_times_replication_and_policy() -> None:
    namespace = made(add("/f"), SetOwnerOp("/f", "v", ""), SetOwnerOp("/f", "", "h"), SetPermissionsOp("/f", 0o600))
    run(namespace, SetReplicationOp("/f", 2), SetStoragePolicyOp("/f", 12), TimesOp("/f", 0, -1))
    file = namespace.file("/f")
    assert (file.owner, file.group, file.mode, file.replication, file.policy) == ("v", "h", 0o600, 2, 12)
    assert (file.mtime, file.atime) == (0, 1)
    refused(namespace, SetReplicationOp("/", 2), "no file")


def test_quotas_are_set_left_and_removed() -> None:
    namespace = made(mkdir("/d"), SetQuotaOp("/d", 10, 2**63 - 1))
    assert (namespace.directory("/d").name_quota, namespace.directory("/d").space_quota) == (10, -1)
    run(namespace, SetQuotaOp("/d", -1, 5))
    assert (namespace.directory("/d").name_quota, namespace.directory("/d").space_quota) == (-1, 5)


def test_an_access_control_list_changes_the_groups_bits_of_the_mode() -> None:
    entries = (HdfsAclEntry(0, 0, 7), HdfsAclEntry(0, 0, 7, "bob"), HdfsAclEntry(0, 1, 4), HdfsAclEntry(0, 2, 6))
    namespace = made(mkdir("/d"), SetPermissionsOp("/d", 0o1755))
    run(namespace, SetAclOp(PathAcl("/d", (*entries, HdfsAclEntry(0, 3, 0), HdfsAclEntry(1, 1, 7)))))
    assert namespace.directory("/d").mode == 0o1760
    run(namespace, SetAclOp(PathAcl("/d", ())))
    assert (namespace.directory("/d").mode, namespace.directory("/d").acl) == (0o1740, ())


def test_extended_attributes_are_set_replaced_and_removed() -> None:
    namespace = made(mkdir("/d"), SetXAttrOp(PathXAttrs("/d", (XAttr(0, "a", b"1"), XAttr(1, "a")))))
    run(namespace, SetXAttrOp(PathXAttrs("/d", (XAttr(0, "a", b"2"),))))
    assert namespace.directory("/d").xattrs == {(0, "a"): b"2", (1, "a"): None}
    refused(namespace, RemoveXAttrOp(PathXAttrs("/d", (XAttr(0, "b"),))), "no attribute b")
    run(namespace, RemoveXAttrOp(PathXAttrs("/d", (XAttr(0, "a"), XAttr(1, "a")))))
    assert namespace.directory("/d").xattrs is None


def test_the_names_of_snapshots() -> None:
    namespace = made(mkdir("/d"))
    refused(namespace, CreateSnapshotOp("/d", "s", 4), "not allowed")
    run(namespace, AllowSnapshotOp("/d"), CreateSnapshotOp("/d", "s", 4), RenameSnapshotOp("/d", "s", "t", 5))
    assert namespace.directory("/d").snapshots == {"t": 5}
    assert namespace.directory("/d").mtime == 4
    refused(namespace, CreateSnapshotOp("/d", "t", 6), "already")
    refused(namespace, RenameSnapshotOp("/d", "s", "u", 6), "no snapshot s")
    refused(namespace, DisallowSnapshotOp("/d"), "has snapshots")
    run(namespace, AllowSnapshotOp("/d"), DeleteSnapshotOp("/d", "t", 8), DisallowSnapshotOp("/d"))
    assert namespace.directory("/d").snapshots is None
    assert namespace.directory("/d").mtime == 8


def test_cache_pools_and_directives() -> None:
    namespace = made(AddCachePoolOp(CachePool("p", "o", "g", 0o755, 9, 8, 1)))
    run(namespace, AddCacheDirectiveOp(CacheDirective(1, "/d", 1, "p", 5)), ModifyCachePoolOp(CachePool("p", limit=3)))
    run(namespace, ModifyCacheDirectiveOp(CacheDirective(1, replication=2)))
    assert namespace.cache_pools == {"p": CachePool("p", "o", "g", 0o755, 3, 8, 1)}
    assert namespace.cache_directives == {1: CacheDirective(1, "/d", 2, "p", 5)}
    refused(namespace, AddCachePoolOp(CachePool("p")), "already")
    refused(namespace, AddCacheDirectiveOp(CacheDirective(1, "/d", 1, "p", 5)), "already")
    refused(namespace, AddCacheDirectiveOp(CacheDirective(2, "/d", 1, "q", 5)), "no cache pool q")
    refused(namespace, RemoveCacheDirectiveOp(2), "no cache directive 2")
    refused(namespace, RemoveCachePoolOp("q"), "no cache pool q")
    run(namespace, RemoveCachePoolOp("p"))
    assert not namespace.cache_directives


def test_what_is_not_kept_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedOpError, match="EnableErasureCodingPolicyOp"):
        made(EnableErasureCodingPolicyOp("RS-6-3-1024k"))
    namespace = made(StartLogSegmentOp(), EndLogSegmentOp())
    assert namespace.txid == 2


def test_requests_are_known_by_the_edits_that_did_them() -> None:
    namespace = made(mkdir("/d"), DeleteOp("/d", 1, bytes(16), 7))
    assert namespace.requests.done(bytes(16), 7) == 2
    assert namespace.requests.done(bytes(16), 8) is None


def test_find_answers_for_the_root_and_for_nothing() -> None:
    namespace = made(mkdir("/d"), add("/d/f", 2))
    assert isinstance(namespace.find("/"), DirectoryInode)
    assert isinstance(namespace.find("/d/f"), FileInode)
    assert namespace.find("/d/") is None
    assert namespace.find("/x/f") is None
