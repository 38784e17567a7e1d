"""Fields: what HDFS would never write is refused before it is believed, and before memory is set aside for it."""

from __future__ import annotations

import pytest

from journal_manager.errors import OpFormatError
from journal_manager.hdfs.attribute_kinds import ACL, PATH_ACL, PATH_XATTRS, XATTRS
from journal_manager.hdfs.field_kinds import CLIENT_ID, MODE, FieldKind
from journal_manager.hdfs.inode_kinds import BLOCKS, COMPACT_BLOCKS, OPTIONS, SOURCES
from journal_manager.hdfs.op_values import (
    Block,
    CacheDirective,
    CachePool,
    DelegationKey,
    HdfsAclEntry,
    PathAcl,
    PathXAttrs,
    XAttr,
)
from journal_manager.hdfs.record_kinds import CACHE_DIRECTIVE, CACHE_POOL, DELEGATION_KEY, DELEGATION_TOKEN


def hexed(text: str) -> bytes:
    return bytes.fromhex(text)


@pytest.mark.parametrize(
    ("kind", "value", "encoded"),
    [
        (ACL, (HdfsAclEntry(1, 2, 5), HdfsAclEntry(0, 0, 7, "bob")), "00000002 35 47 0003626f62"),
        (COMPACT_BLOCKS, (Block(1, 5, 1001), Block(2, 1, 1005)), "02 0000000000000001058e03e9 0000000000000002fc04"),
        (PATH_ACL, PathAcl("/d", (HdfsAclEntry(0, 0, 7),)), "0c 0a022f64 1206 0800 1000 1807"),
        (PATH_XATTRS, PathXAttrs("/d", (XAttr(0, "n", b"v"),)), "0e 0a022f64 1208 0800 12016e 1a0176"),
        (CACHE_DIRECTIVE, CacheDirective(1, pool="p"), "0000000000000001 00000004 000170"),
        (CACHE_POOL, CachePool("p", mode=0o755), "000170 00000004 01ed"),
        (DELEGATION_KEY, DelegationKey(3, 4, None), "03 04 ff"),
        (SOURCES, ("/a", "/b"), "00000002 00022f61 00022f62"),
        (OPTIONS, b"\x01", "00000001 01"),
    ],
)
def test_fields_as_bytes(kind: FieldKind, value: object, encoded: str) -> None:
    assert kind.write(value) == hexed(encoded)
    assert kind.read(hexed(encoded), 0) == (value, len(hexed(encoded)))


@pytest.mark.parametrize(
    ("kind", "encoded", "said"),
    [
        (BLOCKS, "7fffffff", "2147483647 elements"),
        (BLOCKS, "ffffffff", "-1 elements"),
        (COMPACT_BLOCKS, "ff", "-1 blocks"),
        (SOURCES, "00000003 0000 0000", "3 elements"),
        (OPTIONS, "00000001 03", "option of a rename"),
        (ACL, "00000001 80", "no entry of an access control list"),
        (PATH_ACL, "0a 1208 0800 1000 1807 2800", "field 5"),
        (PATH_ACL, "08 1206 0804 1000 1807", "type of an entry"),
        (PATH_ACL, "08 1206 0800 1002 1807", "scope"),
        (PATH_ACL, "08 1206 0800 1000 1808", "permission"),
        (PATH_ACL, "06 1204 0800 1000", "permission"),
        (PATH_ACL, "0a 1208 0800 0800 1000 1807", "there twice"),
        (PATH_ACL, "02 1005", "field 2"),
        (PATH_ACL, "02 1900", "wire type 1"),
        (PATH_ACL, "ffffffffffffffffffff01", "too long"),
        (PATH_XATTRS, "07 1205 0805 12016e", "namespace"),
        (PATH_XATTRS, "04 1202 1a00", "namespace"),
        (XATTRS, "04 0a022f64", "name a path"),
        (CLIENT_ID, "0001 00", "16 bytes or none"),
        (CACHE_DIRECTIVE, "0000000000000001 00000010", "flags 0x10"),
        (CACHE_POOL, "000170 00000040", "flags 0x40"),
        (CACHE_POOL, "000170 80000000", "flags"),
        (DELEGATION_TOKEN, "01", "version 1"),
        (DELEGATION_KEY, "03 04 05 00", "5 bytes"),
        (DELEGATION_KEY, "03 04 fe", "-2 bytes"),
    ],
)
def test_what_hdfs_never_writes_is_refused(kind: FieldKind, encoded: str, said: str) -> None:
    with pytest.raises(OpFormatError, match=said):
        kind.read(hexed(encoded), 0)


def test_hdfs_shows_fewer_bits_of_a_mode_than_it_keeps() -> None:
    assert MODE.show("MODE", -1) == [("MODE", "1023")]
