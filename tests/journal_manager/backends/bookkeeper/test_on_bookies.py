"""Journals on ledgers keep the contract on production bookies inside this process, and lose one of three."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bookkeeper import BookKeeper
from tests.contracts.journal_backend import Journal, JournalBackendContract, closing

pytestmark = pytest.mark.asyncio(loop_scope="module")

_names = itertools.count(1)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BookKeeper]:
    """One cluster for all tests of this module; each has a journal of its own."""
    async with BookKeeper.connect(f"embedded://{tmp_path_factory.mktemp('cluster')}/bk?bookies=3") as client:
        yield client


class TestBookKeeperBackendOnBookies(JournalBackendContract):
    @pytest_asyncio.fixture(loop_scope="module")
    async def journal(self, client: BookKeeper) -> AsyncIterator[Journal]:
        async for journal in closing(Journal(f"bk:edits/{next(_names)}", {"client": client})):
            yield journal
