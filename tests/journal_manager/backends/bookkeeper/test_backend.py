"""Journals on ledgers keep the contract: over a cluster in a dict, which every step of theirs may be cut off at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from journal_manager import JournalConfigError, NamespaceInfo, format_journal, open_reader, open_writer, parse_uri
from tests.contracts.journal_backend import Journal, JournalBackendContract, closing, txids, write_segment
from tests.contracts.journal_model import JournalMachine
from tests.examples_of import examples
from tests.journal_manager.backends.bookkeeper.fake import Cluster, Died


class TestBookKeeperBackend(JournalBackendContract):
    @pytest.fixture
    async def journal(self) -> AsyncIterator[Journal]:
        async for journal in closing(Journal("bk:edits", {"client": Cluster().client()})):
            yield journal


async def test_an_address_says_how_ledgers_are_made() -> None:
    client = Cluster().client()
    writer = await open_writer("bk:edits?ensemble=5&write_quorum=4&ack_quorum=3&digest=crc32", client=client)
    await writer.start_segment(writer.recovery.last_txid + 1, 1)
    assert client.created_with == {
        "ensemble": 5,
        "write_quorum": 4,
        "ack_quorum": 3,
        "digest": "crc32",
        "when_short": "name_absent",
        "owner": "journals:edits",
    }


async def test_one_of_client_and_metadata_is_needed() -> None:
    with pytest.raises(JournalConfigError, match="client"):
        await open_writer("bk:edits")
    with pytest.raises(JournalConfigError, match="names no journal"):
        await open_writer("bk:", client=Cluster().client())


async def test_a_wrong_password_is_an_error_and_no_empty_journal() -> None:
    cluster = Cluster()
    writer = await open_writer("bk:edits", client=cluster.client(), password=b"right")
    await write_segment(writer, 1, 2)
    reader = await open_reader("bk:edits", client=cluster.client(), password=b"wrong")
    with pytest.raises(JournalConfigError):
        await txids(reader)


@pytest.mark.rule("X18")
async def test_a_new_journal_has_a_random_password_that_its_record_keeps() -> None:
    """Cause: the password was empty, so that its key was known to everybody. What an earlier version has made goes on
    without one."""
    cluster = Cluster()
    writer = await open_writer("bk:edits", client=cluster.client())
    await write_segment(writer, 1, 2)
    await format_journal("bk:other", namespace=NamespaceInfo(1, "n"), client=cluster.client())
    other = await open_writer("bk:other", client=cluster.client())
    await write_segment(other, 1, 2)
    passwords = [ledger.password for ledger in cluster.ledgers.values()]
    assert [len(password) for password in passwords] == [32, 32] and passwords[0] != passwords[1]
    assert await txids(await open_reader("bk:edits", client=cluster.client())) == [1, 2]
    again = await open_writer("bk:edits", client=cluster.client())
    await write_segment(again, 3, 4)
    assert {ledger.password for ledger in cluster.ledgers.values()} == set(passwords)
    for opens in (open_reader, open_writer):
        with pytest.raises(JournalConfigError, match="keeps the password of its ledgers in its node"):
            await opens("bk:edits", client=cluster.client(), password=b"mine")
    await again.ensure_owner()  # nobody has claimed the journal


@pytest.mark.rule("X58")
async def test_a_password_comes_from_a_private_file_and_an_address_does_not_show_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Cause: an address was the only place for it outside of a program, and errors showed the whole address."""
    cluster, path = Cluster(), tmp_path / "password"
    path.write_text("planted\n")
    path.chmod(0o600)
    writer = await open_writer(f"bk:edits?password_file={path}", client=cluster.client())
    await write_segment(writer, 1, 2)
    assert "planted" not in caplog.text
    reader = await open_reader("bk:edits?password=planted", client=cluster.client())
    assert await txids(reader) == [1, 2]
    assert "can be read by others" in caplog.text
    assert "planted" not in f"{caplog.text} {parse_uri('bk:e?password=planted')!r}"
    for wrong in ("bk:edits?password=planted&password=x", "bk:edits?password=planted#x", "bk:e?password=planted&x"):
        with pytest.raises(JournalConfigError) as refused:
            await open_reader(wrong, client=cluster.client())
        assert "planted" not in str(refused.value)
    with pytest.raises(JournalConfigError, match="not both"):
        await open_reader(f"bk:edits?password_file={path}", client=cluster.client(), password=b"x")
    path.chmod(0o640)
    with pytest.raises(JournalConfigError, match="chmod 600"):
        await open_reader(f"bk:edits?password_file={path}", client=cluster.client())


class LedgerMachine(JournalMachine):
    def where(self) -> tuple[str, dict[str, Any]]:
        return "bk:edits", {"client": Cluster().client()}


TestLedgerMachine = pytest.mark.rule("C4", "C5", "C6", "C7", "C8", "J1", "J2", "J3", "J4", "J6", "J7")(
    LedgerMachine.TestCase
)
LedgerMachine.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=30, deadline=None)


@pytest.mark.rule("F1")
@pytest.mark.parametrize("formats", [False, True], ids=["opened", "formatted"])
async def test_a_first_use_that_is_cut_short_anywhere_is_repeated_until_the_journal_is_whole(formats: bool) -> None:
    async def first_use(cluster: Cluster) -> None:
        client = cluster.client()
        if formats:
            await format_journal("bk:edits", force=True, client=client)
        writer = await open_writer("bk:edits", client=client)
        first = writer.recovery.last_txid + 1
        await write_segment(writer, first, first + 1)

    for step in range(200):
        cluster = Cluster()
        cluster.die_after(step)
        with suppress(Died):
            await first_use(cluster)
            break
        cluster.die_after(step // 2)
        with suppress(Died):
            await first_use(cluster)
        cluster.die_after(None)
        writer = await open_writer("bk:edits", client=cluster.client())
        last = writer.recovery.last_txid
        assert last in range(5)
        await write_segment(writer, last + 1, last + 2)
        reader = await open_reader("bk:edits", client=cluster.client())
        assert await txids(reader) == list(range(1, last + 3))
    assert step > 15, "many steps were cut"
