"""An edit, and what tells it from others: values, their bytes, and rules about runs of them. All of it is pure.

ops              an edit and a batch of edits, as bytes with their checksums
segment          a contiguous run of edits that is stored as one unit
discarded_edits  which edits were discarded, so that their ids are used again
selection        many segments, of one journal or of copies, joined to one run without gaps
fencing          a writer whose epoch was overtaken is refused
requests         requests of clients, told apart so that a repeated one is not carried out twice
"""

from journal_manager.edits.discarded_edits import UNKNOWN_EPOCH, DiscardedEdits
from journal_manager.edits.fencing import fenced, require_current
from journal_manager.edits.ops import MAX_OP_BYTES, MAX_OPCODE, OVERHEAD, Batch, EditRun, Op, encode_batch
from journal_manager.edits.requests import RequestAnswer, RequestId, RequestTable
from journal_manager.edits.segment import SegmentInfo, SegmentState
from journal_manager.edits.selection import MissingEdits, Piece, best_piece, in_order
from journal_manager.fencing_token import FencingToken
from journal_manager.txid import FIRST_TXID, NOTHING, TxId, is_txid

__all__ = [
    "FIRST_TXID",
    "MAX_OPCODE",
    "MAX_OP_BYTES",
    "NOTHING",
    "OVERHEAD",
    "UNKNOWN_EPOCH",
    "Batch",
    "DiscardedEdits",
    "EditRun",
    "FencingToken",
    "MissingEdits",
    "Op",
    "Piece",
    "RequestAnswer",
    "RequestId",
    "RequestTable",
    "SegmentInfo",
    "SegmentState",
    "TxId",
    "best_piece",
    "encode_batch",
    "fenced",
    "in_order",
    "is_txid",
    "require_current",
]
