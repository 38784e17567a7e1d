"""Two writers and a reader over one journal, in any order and at once, against what they were promised.

A machine for hypothesis: the rules are what the world may do, the invariants are named after the promises.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from journal_manager import (
    EditLog,
    EditLogConfig,
    JournalClosedError,
    JournalFailedError,
    JournalFencedError,
    JournalGapError,
    TxId,
    open_reader,
)
from journal_manager.read import read_ops

SLOTS = st.integers(0, 1)


class JournalMachine(RuleBasedStateMachine):
    """Inherit; say where a fresh journal is."""

    def where(self) -> tuple[str, dict[str, Any]]:
        """Its address and options; called once, inside the machine's loop."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.uri, self.options = self.runner.run(self._where())
        self.logs: dict[int, EditLog] = {}
        self.serial = 0
        self.acknowledged: dict[int, bytes] = {}
        self.seen: dict[int, bytes] = {}
        self.purged_below = 1
        self.last_opened = 0

    async def _where(self) -> tuple[str, dict[str, Any]]:
        return self.where()

    # -- what the world may do -------------------------------------------------------------------------

    @rule(slot=SLOTS)
    def open(self, slot: int) -> None:
        """A writer takes over, from the other or from its own former life."""
        self.runner.run(self._open(slot))

    @rule(slot=SLOTS, counts=st.lists(st.integers(1, 3), min_size=1, max_size=4))
    def log(self, slot: int, counts: list[int]) -> None:
        """Groups of edits, logged at once."""
        self.runner.run(self._log(slot, counts))

    @rule(slot=SLOTS)
    def roll(self, slot: int) -> None:
        self.runner.run(self._attempt(slot, self.logs[slot].roll() if slot in self.logs else None))

    @rule(slot=SLOTS, share=st.floats(0, 1.2))
    def purge(self, slot: int, share: float) -> None:
        self.runner.run(self._purge(slot, share))

    @rule(slot=SLOTS)
    def vanish(self, slot: int) -> None:
        """The process ends without a word."""
        if slot in self.logs:
            self.runner.run(self.logs.pop(slot).abort())

    @rule(slot=SLOTS)
    def close(self, slot: int) -> None:
        if slot in self.logs:
            self.runner.run(self._attempt(slot, self.logs.pop(slot).close()))

    @rule(counts=st.lists(st.integers(1, 3), min_size=1, max_size=3), opener=SLOTS, rolling=st.booleans())
    @precondition(lambda self: self.logs)
    def race(self, counts: list[int], opener: int, rolling: bool) -> None:
        """One takes over while the other logs and rolls."""

        async def both() -> None:
            other = 1 - opener
            roll = self.logs[other].roll() if rolling and other in self.logs else None
            await asyncio.gather(self._log(other, counts), self._attempt(other, roll), self._open(opener))

        self.runner.run(both())

    @rule()
    def look(self) -> None:
        """J2, J4, J6: a reader sees what was acknowledged, and never sees anything change."""
        if self.last_opened:
            self.runner.run(self._look(in_progress=True))

    # -- how -------------------------------------------------------------------------------------------

    async def _open(self, slot: int) -> None:
        if slot in self.logs:
            await self.logs.pop(slot).abort()
        try:
            log = await EditLog.open(
                self.uri, owner=f"w{slot}", config=EditLogConfig(segment_bytes=200), **self.options
            )
        except JournalFencedError:
            return
        assert log.token.epoch > self.last_opened, "J1: epochs rise"
        assert log.recovery.last_txid >= max(self.acknowledged, default=0), "J2, J5"
        self.last_opened = log.token.epoch
        self.logs[slot] = log

    async def _log(self, slot: int, counts: list[int]) -> None:
        if (log := self.logs.get(slot)) is None:
            return
        groups: list[tuple[int, list[bytes], asyncio.Future[TxId]]] = []
        for count in counts:
            bodies = [b"%d by %d" % (self.serial + i, slot) for i in range(count)]
            self.serial += count
            try:
                groups.append((log.next_txid, bodies, log.log_group([(1, body) for body in bodies])))
            except (JournalFencedError, JournalFailedError, JournalClosedError):
                return
        for first, bodies, waiter in groups:
            try:
                last = await waiter
            except (JournalFencedError, JournalFailedError):
                continue
            assert last == first + len(bodies) - 1
            for txid, body in enumerate(bodies, first):
                assert self.acknowledged.setdefault(txid, body) == body, "J1: acknowledged twice"
                assert self.seen.setdefault(txid, body) == body, "J1: acknowledged over what a reader saw"

    async def _attempt(self, slot: int, what: Awaitable[Any] | None) -> None:
        if what is None:
            return
        try:
            await what
        except (JournalFencedError, JournalFailedError, JournalClosedError):
            pass

    async def _purge(self, slot: int, share: float) -> None:
        if (log := self.logs.get(slot)) is None:
            return
        below = TxId(1 + int(share * log.durable_txid))
        try:
            gone = await log.purge(below)
        except (JournalFencedError, JournalFailedError):
            return
        for segment in gone:
            assert segment.last is not None and segment.last < below, "J7"
            assert segment.first == self.purged_below, "J7: a prefix"
            self.purged_below = segment.last + 1

    async def _look(self, *, in_progress: bool) -> None:
        reader = await open_reader(self.uri, **self.options)
        async with reader:
            segments = await reader.segments()
            start = segments[0].first if segments else 1
            assert start <= self.purged_below, "J7"
            expected = start
            async for op in read_ops(reader, TxId(start), in_progress=in_progress):
                assert op.txid == expected, "J4"
                assert self.seen.setdefault(op.txid, op.body) == op.body, "J3, J6: it changed"
                expected += 1
            assert expected > max(self.acknowledged, default=0), "J2"
            if start > 1:
                try:
                    async for _ in read_ops(reader, TxId(start - 1)):
                        raise AssertionError("J4: read across a purge")
                except JournalGapError as gap:
                    assert gap.next_available == start

    def teardown(self) -> None:
        """Liveness: whatever happened, a writer can take over and go on."""

        async def end() -> None:
            await self._open(0)
            log = self.logs[0]
            assert await log.log(b"the end") == log.recovery.last_txid + 1
            await log.roll()
            await self._look(in_progress=False)
            for each in self.logs.values():
                await each.abort()

        try:
            self.runner.run(end())
        finally:
            self.runner.close()
