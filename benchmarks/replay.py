"""How fast a namespace is rebuilt from HDFS's edits, and what of it takes how long.

The log is that of a warehouse: for each file ADD, ALLOCATE_BLOCK_ID, SET_GENSTAMP_V2, ADD_BLOCK, CLOSE and RENAME_OLD,
a hundred files in a directory. Everything is in memory, so that the figures are those of the program alone; they are
edits for each second of CPU time, the best of three.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Final

from benchmarks.report import Aim, Figure, Report
from examples.namenode_sim.namespace import HdfsNamespace
from journal_manager import Op, TxId
from journal_manager.edits.ops import encode_op
from journal_manager.hdfs import EditsReader, HdfsOp, decode_hdfs_op, encode_edits_header, encode_hdfs_op
from journal_manager.hdfs.hdfs_ops import (
    AddBlockOp,
    AddOp,
    AllocateBlockIdOp,
    CloseOp,
    MkdirOp,
    RenameOldOp,
    SetGenstampV2Op,
)
from journal_manager.hdfs.op_values import Block, Permissions

FILES: Final = 10_000
_ROUNDS: Final = 3
_IN_A_DIRECTORY: Final = 100
_AT: Final = 1_795_263_562_493


def warehouse(files: int) -> list[HdfsOp]:
    """The edits that make so many small files."""
    owner, client = Permissions("root", "supergroup", 0o644), bytes(range(16))
    writer, machine = "DFSClient_NONMAPREDUCE_-1727104323_1", "127.0.0.1"
    ops: list[HdfsOp] = []
    inode = 16386
    for number in range(files):
        directory = f"/warehouse-{number // _IN_A_DIRECTORY}"
        if number % _IN_A_DIRECTORY == 0:
            ops.append(MkdirOp(inode, directory, _AT, _AT, owner))
            inode += 1
        temporary, path = f"{directory}/.part-{number}.tmp", f"{directory}/part-{number}"
        block = Block((1 << 30) + number, 0, 1000 + number)
        add = AddOp(
            inode, temporary, 3, _AT, _AT, 1 << 27, (), owner, (), (), writer, machine, True, 0, 0, client, number
        )
        whole = (block._replace(length=1000),)
        ops += [
            add,
            AllocateBlockIdOp(block.id),
            SetGenstampV2Op(block.generation),
            AddBlockOp(temporary, (block,)),
            CloseOp(0, temporary, 3, _AT, _AT, 1 << 27, whole, owner),
            RenameOldOp(temporary, path, _AT, client, number),
        ]
        inode += 1
    return ops


def measure(report: Report, files: int = FILES) -> None:
    """Replay, as a whole and in its parts."""
    ops = warehouse(files)
    frames = [encode_op((encoded := encode_hdfs_op(op))[0], TxId(n), encoded[1]) for n, op in enumerate(ops, 1)]
    data = encode_edits_header(-67) + b"".join(frames)
    edits = list(EditsReader().feed(data))

    def read() -> list[Op]:
        return list(EditsReader().feed(data))

    def decode() -> list[HdfsOp]:
        return [decode_hdfs_op(edit.opcode, edit.body) for edit in edits]

    def apply() -> None:
        namespace = HdfsNamespace()
        for txid, op in enumerate(ops, 1):
            namespace.apply(txid, op)

    def replay() -> None:
        namespace = HdfsNamespace()
        for edit in EditsReader().feed(data):
            namespace.apply(edit.txid, decode_hdfs_op(edit.opcode, edit.body))

    size = f"{len(ops):,} edits of {len(data) / len(ops):.0f} bytes"
    report.add(
        Figure("replay: edits a second into a namespace", _rate(replay, len(ops)), "/s", Aim(200_000, 50_000), size)
    )
    report.add(Figure("replay: frames read, checksums verified", _rate(read, len(ops)), "/s"))
    report.add(Figure("replay: bodies decoded", _rate(decode, len(ops)), "/s"))
    report.add(Figure("replay: edits applied", _rate(apply, len(ops)), "/s"))


def _rate(step: Callable[[], object], count: int) -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        gc.collect()
        began = time.process_time()
        step()
        best = min(best, time.process_time() - began)
    return count / best
