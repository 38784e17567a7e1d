"""Journals as files keep the contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings

from bookkeeper.testing.world import SimDisk
from journal_manager import EditLog, JournalConfigError, JournalFencedError, open_writer
from tests.contracts.journal_backend import Journal, JournalBackendContract, closing
from tests.contracts.journal_model import JournalMachine
from tests.examples_of import examples


class TestFileBackend(JournalBackendContract):
    @pytest.fixture
    async def journal(self, tmp_path: Path) -> AsyncIterator[Journal]:
        async for journal in closing(Journal(f"file://{tmp_path}/edits")):
            yield journal


class FileMachine(JournalMachine):
    def where(self) -> tuple[str, dict[str, Any]]:
        return "file:///edits", {"files": SimDisk(Random(1)), "threads": False}


TestFileMachine = pytest.mark.rule("C4", "C5", "C6", "C7", "C8", "J1", "J2", "J3", "J4", "J6", "J7")(
    FileMachine.TestCase
)
FileMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)


@pytest.mark.parametrize("uri", ["file:edits", "file://host/edits", "file:./edits"])
async def test_a_directory_is_given_from_the_root(uri: str) -> None:
    with pytest.raises(JournalConfigError, match="file:///DIRECTORY"):
        await open_writer(uri)


async def test_two_processes_worth_of_writers_share_a_directory_by_epochs(tmp_path: Path) -> None:
    logs = await asyncio.gather(*(EditLog.open(f"file://{tmp_path}/x", owner=f"{i}") for i in range(4)))
    newest = max(logs, key=lambda log: log.token.epoch)
    assert sorted(log.token.epoch for log in logs) == [1, 2, 3, 4]
    for log in logs:
        if log is not newest:
            with pytest.raises(JournalFencedError):
                await log.log(b"refused")
    assert await newest.log(b"kept") == 1
    for log in logs:
        await log.close()
