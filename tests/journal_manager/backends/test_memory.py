"""Journals in memory keep the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import settings

from journal_manager.backends.memory import MemoryHub
from tests.contracts.journal_backend import Journal, JournalBackendContract, closing
from tests.contracts.journal_model import JournalMachine


class TestMemoryBackend(JournalBackendContract):
    @pytest.fixture
    async def journal(self) -> AsyncIterator[Journal]:
        async for journal in closing(Journal("mem:edits", {"hub": MemoryHub()})):
            yield journal


class MemoryMachine(JournalMachine):
    def where(self) -> tuple[str, dict[str, Any]]:
        return "mem:edits", {"hub": MemoryHub()}


TestMemoryMachine = pytest.mark.rule("C4", "C5", "C6", "C7", "C8", "J1", "J2", "J3", "J4", "J6", "J7")(
    MemoryMachine.TestCase
)
MemoryMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
