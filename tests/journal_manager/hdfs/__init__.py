"""Tests of HDFS's edits. The vectors are Hadoop's: see tests/vectors/hdfs-edits/README.md."""

from __future__ import annotations

from pathlib import Path

from journal_manager.hdfs import EditsReader, HdfsOp, decode_hdfs_op

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "hdfs-edits"
FILES = ("edits_1-534", "every_op", "unusual")


def vector(name: str) -> bytes:
    return (VECTORS / name).read_bytes()


def decoded(data: bytes) -> list[tuple[int, HdfsOp]]:
    """The edits of a whole edits file."""
    reader = EditsReader()
    frames = [*reader.feed(data), *reader.finish()]
    assert reader.layout_version is not None
    return [(op.txid, decode_hdfs_op(op.opcode, op.body, reader.layout_version)) for op in frames]
