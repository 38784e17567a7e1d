"""What every journal backend must show: the contract as tests, also for backends of other packages.

    # conftest.py
    pytest_plugins = ["journal_manager.testing"]

    # test_my_backend.py
    from journal_manager.testing import Journal, JournalBackendContract, closing

    class TestMyBackend(JournalBackendContract):
        @pytest.fixture
        async def journal(self):
            async for journal in closing(Journal("mine:somewhere/new")):
                yield journal

It needs pytest and pytest-asyncio (``asyncio_mode = "auto"``). The promises J1 to J10 stand in docs/rules.md; a backend
on ledgers keeps the rules C by them. A backend that has a capability (``journal_manager.journals.capabilities``) is
asked to show that, too; one that has not must say so.

journal     a journal under test, edits for it
life_cycle  it is formatted, opened, closed
writing     one writer, segments
reading, discards, upgrades, edit_logs, snapshots
            what the others promise
"""

from __future__ import annotations

import pytest

from journal_manager.testing.discards import DiscardContract
from journal_manager.testing.edit_logs import EditLogContract
from journal_manager.testing.journal import (
    NAMESPACE,
    Journal,
    batch,
    body,
    closing,
    ends,
    txids,
    write_others,
    write_segment,
)
from journal_manager.testing.life_cycle import LifeCycleContract
from journal_manager.testing.reading import ReadingContract
from journal_manager.testing.snapshots import SnapshotContract
from journal_manager.testing.upgrades import UpgradeContract
from journal_manager.testing.writing import WritingContract

__all__ = [
    "NAMESPACE",
    "Journal",
    "JournalBackendContract",
    "batch",
    "body",
    "closing",
    "ends",
    "pytest_configure",
    "txids",
    "write_others",
    "write_segment",
]


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known that names the promise which a test guards."""
    config.addinivalue_line("markers", "rule(*ids): the numbered promises this test would catch a violation of")


class JournalBackendContract(
    LifeCycleContract,
    WritingContract,
    ReadingContract,
    DiscardContract,
    UpgradeContract,
    EditLogContract,
    SnapshotContract,
):
    """Inherit; give a fixture ``journal`` (an address under which nothing is yet, closed afterwards)."""
