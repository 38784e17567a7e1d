"""The auditor finds what is lost, what was applied twice, and replicas that differ; and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from examples.namenode_sim.audit import JournalAuditor, may_read_on
from examples.namenode_sim.client import NameNodeClient
from examples.namenode_sim.decisions import ClientRequest, decide
from examples.namenode_sim.name_node import NameNodeRole
from examples.namenode_sim.workload import WarehouseClient
from journal_manager import Op, TxId
from journal_manager.hdfs import encode_hdfs_op
from journal_manager.hdfs.hdfs_ops import AddOp, DeleteOp, HdfsOp, MkdirOp
from journal_manager.hdfs.op_values import Permissions
from tests.examples.namenode_sim.test_name_node import until
from tests.examples.namenode_sim.test_replica import served


def audited(*ops: HdfsOp) -> JournalAuditor:
    auditor = JournalAuditor()
    for txid, op in enumerate(ops, 1):
        auditor.read(Op((encoded := encode_hdfs_op(op))[0], TxId(txid), encoded[1]))
    return auditor


def client(**expected: int | None) -> WarehouseClient:
    made = WarehouseClient(0, NameNodeClient([], b"c" * 16), pause_s=0, rng=Random(1))
    made.expected = {f"/c0/{name}": length for name, length in expected.items()}
    made.acknowledged = 3
    return made


def journal_with(*names: str) -> JournalAuditor:
    auditor = JournalAuditor()
    for call, name in enumerate(names):
        request = ClientRequest("create", {"path": f"/c0/{name}"}, b"c" * 16, call)
        for op in decide(auditor.namespace, request, 5):
            opcode, body = encode_hdfs_op(op)
            auditor.read(Op(opcode, TxId(auditor.namespace.txid + 1), body))
    return auditor


def test_what_clients_were_told_is_there() -> None:
    found = journal_with("f").judge([client(f=None)], {})
    assert (found.good, found.acknowledged, found.edits) == (True, 3, 2)


def test_what_was_acknowledged_and_is_not_there_is_lost() -> None:
    found = journal_with("f").judge([client(f=None, g=5)], {})
    assert found.lost == ["/c0/g was acknowledged, and is not there"]
    found = journal_with("f").judge([client(f=9)], {})
    assert found.lost == ["/c0/f has None bytes, and 9 were acknowledged"]
    assert JournalAuditor().judge([client(f=1)], {}).lost


def test_what_is_there_and_must_not_be_came_twice() -> None:
    found = journal_with("f", "g").judge([client(f=None)], {})
    assert found.doubled == ["/c0/g is there, and must have been moved or deleted"]


def test_one_request_in_two_edits_was_applied_twice() -> None:
    permissions = Permissions("u", "g", 0o644)
    add = AddOp(16386, "/f", 3, 1, 1, 1, (), permissions, client_name="c", client_id=b"c" * 16, call_id=1)
    again = DeleteOp("/f", 1, b"c" * 16, 1)
    assert audited(add, again).judge([], {}).doubled == ["the request of edit 1 was applied again by edit 2"]
    assert audited(add, again._replace(call_id=2)).judge([], {}).good


def test_an_edit_that_does_not_fit_was_applied_twice_and_ends_the_audit() -> None:
    mkdir = MkdirOp(16386, "/d", 1, 1, Permissions("u", "g", 0o755))
    auditor = audited(mkdir)
    assert not auditor.ended
    auditor = audited(mkdir, mkdir, DeleteOp("/d", 1))
    assert (auditor.namespace.txid, auditor.ended) == (1, True)
    [problem] = auditor.judge([], {}).doubled
    assert "edit 2 (MkdirOp) does not fit" in problem


def test_an_auditor_that_cannot_read_on_says_so_and_nothing_else() -> None:
    auditor = journal_with("f")
    auditor.stop("edit 3 is gone")
    assert auditor.ended
    assert auditor.judge([client(g=None)], {}).problems == ["the auditor could not read on: edit 3 is gone"]


def test_a_replica_that_differs_is_found() -> None:
    auditor = journal_with("f")
    own = auditor.digest()
    found = auditor.judge([client(f=None)], {"nn1": own, "nn2": own | {"sha256": "0"}, "nn3": own | {"txid": 1}})
    assert [line.partition(" ")[0] for line in found.different] == ["nn2", "nn3"]


def test_a_replica_is_waited_for_unless_it_can_never_come_to_later_edits() -> None:
    """A fenced one stands by again and reads on, unless sabotage keeps it from that."""
    roles = [role for role in NameNodeRole if not may_read_on(role, unfenced=False)]
    assert roles == [NameNodeRole.FAILED]
    roles = [role for role in NameNodeRole if not may_read_on(role, unfenced=True)]
    assert roles == [NameNodeRole.FENCED, NameNodeRole.FAILED]


def test_what_clients_ran_into_is_a_problem() -> None:
    one = client(f=None)
    one.problems.append("/c0: refused")
    assert journal_with("f").judge([one], {}).problems == ["/c0: refused"]


async def test_a_client_remembers_what_it_was_told_across_a_take_over(tmp_path: Path) -> None:
    async with served(tmp_path) as (nodes, paths):
        await nodes[0].become_active()
        one = WarehouseClient(3, NameNodeClient(paths, b"c" * 16), pause_s=0.0001, rng=Random(1))
        work = asyncio.create_task(one.run())
        await until(lambda: one.acknowledged > 150)
        await nodes[1].become_active()
        await until(lambda: one.acknowledged > 250)
        one.stop()
        await work
        directory = nodes[1].namespace.directory("/c3")
        there = {f"/c3/{name}": inode.length for name, inode in directory.children.items()}  # type: ignore[attr-defined]
    assert there == one.expected
    assert one.problems == []
    assert len(there) <= 31


async def test_a_refusal_in_its_own_directory_is_a_problem(tmp_path: Path) -> None:
    async with served(tmp_path) as (nodes, paths):
        await nodes[0].become_active()
        await nodes[0].submit(ClientRequest("create", {"path": "/c4/f0.tmp"}))
        one = WarehouseClient(4, NameNodeClient(paths, b"c" * 16), pause_s=0, rng=Random(1))
        await one.run()
    [problem] = one.problems
    assert "refused, though it must be possible" in problem


async def test_a_file_that_is_shown_as_it_never_was_is_a_problem(tmp_path: Path) -> None:
    async with served(tmp_path) as (nodes, paths):
        await nodes[0].become_active()
        one = WarehouseClient(5, NameNodeClient(paths, b"c" * 16), pause_s=0.0001, rng=Random(1))
        work = asyncio.create_task(one.run())
        await until(lambda: one.acknowledged > 40)
        make = one._make_file

        async def make_another(path: str) -> None:
            await make(path)
            one.expected[path] = -1

        one._make_file = make_another  # type: ignore[method-assign]
        await until(lambda: bool(one.problems))
        one.stop()
        await work
    assert "must have -1 bytes, and was shown as" in one.problems[0]


@pytest.mark.parametrize("broken", [b"", b"\x01"])
def test_bytes_that_are_no_edit_end_the_audit(broken: bytes) -> None:
    auditor = JournalAuditor()
    auditor.read(Op(0, TxId(1), broken))
    assert not auditor.judge([], {}).good
