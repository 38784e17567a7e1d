"""Journals in memory keep the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from journal_manager.backends.memory import MemoryHub
from tests.contracts.journal_backend import Journal, JournalBackendContract, closing


class TestMemoryBackend(JournalBackendContract):
    @pytest.fixture
    async def journal(self) -> AsyncIterator[Journal]:
        async for journal in closing(Journal("mem:edits", {"hub": MemoryHub()})):
            yield journal
