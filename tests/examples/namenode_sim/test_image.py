"""An image is a namespace, whole or refused."""

from __future__ import annotations

import pytest

from examples.namenode_sim.errors import ReplayError
from examples.namenode_sim.image import inodes_of, listing, read_image, write_image
from examples.namenode_sim.namespace import HdfsNamespace
from journal_manager.hdfs.hdfs_ops import AllowSnapshotOp, CreateSnapshotOp, MkdirOp, SetXAttrOp, SymlinkOp
from journal_manager.hdfs.op_values import PathXAttrs, Permissions, XAttr
from tests.journal_manager.hdfs import decoded, vector


def real() -> HdfsNamespace:
    namespace = HdfsNamespace()
    for txid, op in decoded(vector("edits_1-534.bin")):
        namespace.apply(txid, op)
    return namespace


def image(namespace: HdfsNamespace) -> bytes:
    return b"".join(write_image(namespace))


def test_an_image_in_pieces_of_any_size_is_the_namespace() -> None:
    data = image(real())
    for size in (1, 100, len(data)):
        again = read_image(data[at : at + size] for at in range(0, len(data), size))
        assert image(again) == data
        assert list(listing(again)) == list(listing(real()))


def test_everything_that_an_inode_may_have_is_kept() -> None:
    namespace = HdfsNamespace(owner="größe")
    permissions = Permissions("u", "g", 0o700)
    for op in (
        MkdirOp(16386, "/d\n", 1, 1, permissions),
        AllowSnapshotOp("/d\n"),
        CreateSnapshotOp("/d\n", "s", 3),
        SymlinkOp(16387, "/d\n/l", "/x", 1, 2, permissions),
        SetXAttrOp(PathXAttrs("/d\n", (XAttr(4, "n", b"\xff"), XAttr(0, "m")))),
    ):
        namespace.apply(namespace.txid + 1, op)
    again = read_image(write_image(namespace))
    assert image(again) == image(namespace)
    assert again.directory("/d\n").xattrs == {(4, "n"): b"\xff", (0, "m"): None}
    assert again.directory("/d\n").snapshots == {"s": 3}
    assert [path for path, _ in inodes_of(again)] == ["/", "/d\n", "/d\n/l"]
    assert again.root.owner == "größe"


def test_a_large_image_comes_in_chunks() -> None:
    namespace = HdfsNamespace()
    for number in range(1, 2000):
        namespace.apply(number, MkdirOp(16385 + number, f"/d{number}", 1, 1, Permissions("u", "g", 0o700)))
    chunks = list(write_image(namespace))
    assert len(chunks) > 2
    assert max(map(len, chunks)) < 70_000
    assert image(read_image(chunks)) == b"".join(chunks)


def test_an_image_that_is_cut_short_or_damaged_is_refused() -> None:
    lines = image(real()).splitlines(keepends=True)
    for kept in range(len(lines)):
        with pytest.raises(ReplayError, match=r"not whole|does not fit"):
            read_image(lines[:kept])
    with pytest.raises(ReplayError, match="not whole"):
        read_image([*lines[:-2], lines[-1]])
    with pytest.raises(ReplayError, match="damaged"):
        read_image([*lines[:5], lines[5][:-9], *lines[6:]])
    with pytest.raises(ReplayError, match="does not fit together"):
        read_image([*lines[:2], *lines[3:]])
    with pytest.raises(ReplayError, match="format 2"):
        read_image([lines[0].replace(b'"format":1', b'"format":2'), *lines[1:]])
