"""A program's state: edits are applied in order, each once, and a snapshot replaces it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial

import pytest

from journal_manager import (
    NOTHING,
    EditLog,
    FencingToken,
    JournalUnavailableError,
    Op,
    ReplicaFailedError,
    RequestId,
    RequestTable,
    SnapshotStore,
    open_snapshots,
)
from journal_manager.backends.memory import MemoryHub
from journal_manager.edits import EditRun
from journal_manager.replicas.program_state import ProgramState, turns
from journal_manager.replicas.replica import Replica
from tests.journal_manager.replicas import Ledger, RefusedError


def state_of(machine: Ledger) -> tuple[ProgramState, Replica]:
    replica = Replica()
    return ProgramState(machine, replica, RequestTable()), replica


async def runs_of(*runs: list[Op], epoch: int = 1) -> AsyncGenerator[EditRun, None]:
    for run in runs:
        yield EditRun(run, epoch)


def edits(first: int, last: int) -> list[Op]:
    return [Op(0, txid, b"%d" % txid) for txid in range(first, last + 1)]


def test_a_run_is_replayed_in_portions_so_that_other_tasks_get_a_turn() -> None:
    run = [Op(0, txid, b"") for txid in range(1000, 3100)]
    portions = [(ops[0].txid, ops[-1].txid) for ops in turns(run)]
    assert portions == [(1000, 1024), (1025, 2048), (2049, 3072), (3073, 3099)]
    assert [op for ops in turns(run) for op in ops] == run


async def test_a_replay_ends_after_a_turn_when_it_is_enough() -> None:
    state, replica = state_of(Ledger())
    assert await state.replay(runs_of(edits(1, 1000), edits(1001, 3000)), lambda: replica.applied >= 2000)
    assert (replica.applied, replica.applied_epoch) == (2048, 1)
    assert not await state.replay(runs_of(edits(2049, 3000)), lambda: False)
    assert replica.applied == 3000


async def test_what_was_applied_before_the_program_raised_is_known() -> None:
    machine = Ledger()
    state, replica = state_of(machine)
    machine.breaks_at = b"3"
    with pytest.raises(ReplicaFailedError, match="raised when edit 3 was replayed"):
        await state.replay(runs_of(edits(1, 5)))
    assert replica.applied == 2 and machine.words == [b"1", b"2"]


async def test_an_edit_that_the_program_refuses_counts_as_none() -> None:
    state, replica = state_of(Ledger())
    replica.elected()
    replica.claimed(FencingToken(1, "a"), NOTHING)
    replica.activate()
    assert state.carry_out(Op(0, 1, b"one")).result == b"1"
    with pytest.raises(RefusedError):
        state.carry_out(Op(0, 2, b"one"))
    assert replica.applied == 1


async def test_a_snapshot_brings_the_program_and_the_answers_to_where_they_were() -> None:
    hub, request = MemoryHub(), RequestId(b"client", 7)
    before, _ = state_of(Ledger())
    await before.replay(runs_of([Op(0, 1, b"one", request), Op(0, 2, b"two")]))
    async with await EditLog.open("mem:x", owner="a", hub=hub) as log:
        await log.log(b"one", request=request)
        await log.log(b"two")
        await log.save_snapshot(2, before.content())
    machine = Ledger()
    after, replica = state_of(machine)
    found = await after.load(partial(open_snapshots, "mem:x", hub=hub))
    assert found is not None and found.at == replica.applied == 2
    assert machine.words == [b"one", b"two"] and after.is_loaded
    answer = after.requests.answer_to(request)
    assert answer is not None and (answer.txid, answer.result) == (1, b"1")


async def test_without_a_snapshot_the_state_is_the_empty_one() -> None:
    hub, machine = MemoryHub(), Ledger()
    async with await EditLog.open("mem:x", owner="a", hub=hub):
        pass
    state, replica = state_of(machine)
    await state.replay(runs_of(edits(1, 3)))
    assert await state.load(partial(open_snapshots, "mem:x", hub=hub)) is None
    assert replica.applied == NOTHING and machine.words == [] and state.is_loaded


async def test_a_state_that_could_not_be_loaded_is_not_taken_for_loaded() -> None:
    async def away() -> SnapshotStore:
        raise JournalUnavailableError("away")

    state, _ = state_of(Ledger())
    state.is_loaded = True
    with pytest.raises(JournalUnavailableError):
        await state.load(away)
    assert not state.is_loaded
