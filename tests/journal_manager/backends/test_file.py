"""Journals as files keep the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contracts.journal_backend import Journal, JournalBackendContract, closing


class TestFileBackend(JournalBackendContract):
    @pytest.fixture
    async def journal(self, tmp_path: Path) -> AsyncIterator[Journal]:
        async for journal in closing(Journal(f"file://{tmp_path}/edits")):
            yield journal
