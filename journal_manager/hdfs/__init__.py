"""HDFS's own edits: read, written, and shown as ``hdfs oev`` shows them.

    reader = EditsReader()
    for frame in reader.feed(data):                    # frames of an edits file, checksums verified
        op = decode_hdfs_op(frame.opcode, frame.body, reader.layout_version)
    opcode, body = encode_hdfs_op(DeleteOp("/tmp/a", timestamp=...))
    await log.log(body, opcode)                        # a journal keeps them as they are

Read in this order::

    hdfs_ops     the edits, one class for each op code
    op_values    the values in them: blocks, permissions, attributes
    op_codec     which fields each has, as bytes and as shown
    inode_kinds, attribute_kinds, record_kinds
                 the kinds of fields, by what they are about
    field_kinds  what a kind of field is, and the plain ones
    protobuf_fields
                 the messages in some of them
    primitives   Java's and Hadoop's integers and strings
    edits_file   header, frames and padding of an edits file
    oev          XML and JSON lines
"""

from journal_manager.hdfs.edits_file import EditsReader, encode_edits_header
from journal_manager.hdfs.hdfs_ops import HdfsOp
from journal_manager.hdfs.op_codec import (
    NEWEST_LAYOUT,
    OLDEST_LAYOUT,
    decode_hdfs_op,
    encode_hdfs_op,
    name_of,
)

__all__ = [
    "NEWEST_LAYOUT",
    "OLDEST_LAYOUT",
    "EditsReader",
    "HdfsOp",
    "decode_hdfs_op",
    "encode_edits_header",
    "encode_hdfs_op",
    "name_of",
]
