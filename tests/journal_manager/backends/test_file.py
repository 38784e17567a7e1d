"""Journals as files keep the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings

from bookkeeper.testing.disk import SimDisk
from tests.contracts.journal_backend import Journal, JournalBackendContract, closing
from tests.contracts.journal_model import JournalMachine


class TestFileBackend(JournalBackendContract):
    @pytest.fixture
    async def journal(self, tmp_path: Path) -> AsyncIterator[Journal]:
        async for journal in closing(Journal(f"file://{tmp_path}/edits")):
            yield journal


class FileMachine(JournalMachine):
    def where(self) -> tuple[str, dict[str, Any]]:
        return "file:///edits", {"files": SimDisk(Random(1)), "threads": False}


TestFileMachine = pytest.mark.rule("C4", "C5", "C6", "C7", "C8")(FileMachine.TestCase)
FileMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
