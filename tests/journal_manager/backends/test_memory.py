"""Journals in memory keep the contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import settings

from journal_manager import TxId, open_reader, open_writer
from journal_manager.backends.memory import MemoryHub
from journal_manager.edits import encode_batch
from tests.contracts.journal_backend import Journal, JournalBackendContract, closing
from tests.contracts.journal_model import JournalMachine
from tests.examples_of import examples


class TestMemoryBackend(JournalBackendContract):
    @pytest.fixture
    async def journal(self) -> AsyncIterator[Journal]:
        async for journal in closing(Journal("mem:edits", {"hub": MemoryHub()})):
            yield journal


async def test_a_wait_that_is_cancelled_as_the_change_comes_ends_as_cancelled() -> None:
    hub = MemoryHub()
    async with await open_writer("mem:edits", hub=hub) as writer, await open_reader("mem:edits", hub=hub) as reader:
        segment = await writer.start_segment(TxId(1), 1)
        waiting = asyncio.create_task(reader.changed(60))
        await asyncio.sleep(0.01)
        await segment.append(encode_batch(TxId(1), [(0, b"x")]))
        waiting.cancel()
        await asyncio.wait([waiting], timeout=10)
        assert waiting.cancelled(), "whoever was told to end would go on"


class MemoryMachine(JournalMachine):
    def where(self) -> tuple[str, dict[str, Any]]:
        return "mem:edits", {"hub": MemoryHub()}


TestMemoryMachine = pytest.mark.rule("C4", "C5", "C6", "C7", "C8", "J1", "J2", "J3", "J4", "J6", "J7")(
    MemoryMachine.TestCase
)
MemoryMachine.TestCase.settings = settings(max_examples=examples(150), stateful_step_count=30, deadline=None)
