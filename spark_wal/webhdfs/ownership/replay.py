"""One edit of a namespace's journal, applied to the tree: for owners that replay, and for those who follow. Pure."""

from __future__ import annotations

from journal_manager import Op
from spark_wal.webhdfs.errors import WebHdfsError
from spark_wal.webhdfs.files.namespace import Namespace
from spark_wal.webhdfs.files.records import RecordFormatError, decode_record


def replay_edit(namespace: Namespace, op: Op) -> None:
    """Apply an edit that an owner has journaled.

    Raises:
        RecordFormatError: journal and program do not fit, or the edit is damaged.
    """
    record = decode_record(op.opcode, op.body)
    try:
        applied = namespace.apply(record, op.txid)
    except WebHdfsError as error:
        raise RecordFormatError(f"edit {op.txid} of the journal cannot be applied to the tree: {error}") from error
    if not applied.changed:
        raise RecordFormatError(
            f"edit {op.txid} of the journal does not change the tree, although only changes are journaled: "
            f"{type(record).__name__}"
        )
