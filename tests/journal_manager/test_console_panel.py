"""The console's pages of journals, on a simulated cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from bookkeeper import BookKeeper
from bookkeeper.console.panels import ByteCount, DetailLink, LedgerLink, Panel, StateWord, Tone
from bookkeeper.errors import BookKeeperError
from bookkeeper.testing.cluster import SimCluster
from journal_manager import EditLog, console_panel, open_election, open_snapshots
from journal_manager.console_panel import PANEL
from tests.bookkeeper.console.panel_pages import context_of, facts_of, notes_of, rows_of


def run(story: Callable[[BookKeeper], Awaitable[None]]) -> None:
    async def work(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            await story(client)

    SimCluster(seed=1).run(work)


async def write(log: EditLog, count: int) -> None:
    for _ in range(count):
        last = log.log(b"an edit")
    await last


def test_it_is_a_panel() -> None:
    assert isinstance(PANEL, Panel) and PANEL.name == "journals"


def test_the_list_has_each_journal_with_its_owner_and_the_lag_behind_the_snapshot() -> None:
    async def story(client: BookKeeper) -> None:
        assert "no journals" in getattr((await PANEL.snapshot(context_of(client))).blocks[0], "empty")  # noqa: B009
        log = await EditLog.open("bk:names/<1>", owner="nn-1", client=client)
        await write(log, 5)
        await log.roll()
        await log.save_snapshot(await log.sync(), [b"state"])
        await write(log, 2)
        await log.roll()
        (row,) = rows_of(await PANEL.snapshot(context_of(client)))
        assert row["journal"] == DetailLink("names/<1>", "names/<1>") and row["owner"] == "nn-1"
        assert row["last final edit"] == 7 and row["newest snapshot"] == 5 and row["lag"] == 2
        await log.close()

    run(story)


def test_a_journals_page_has_segments_snapshots_offers_and_the_last_durable_edit() -> None:
    """It claims nothing and opens ledgers without recovery: the writer goes on, and its epoch is the same."""

    async def story(client: BookKeeper) -> None:
        log = await EditLog.open("bk:edits", owner="nn-1", client=client)
        await write(log, 5)
        await log.roll()
        await log.save_snapshot(await log.sync(), [b"state"])
        await write(log, 3)
        async with await open_snapshots("bk:edits", client=client) as standby:
            await standby.offer(await log.sync(), [b"state", b"!"])
        election = await open_election("bk:edits", name="replica-1", client=client)
        await election.campaign()
        page = await PANEL.detail(context_of(client), "edits")
        await election.close()
        assert page is not None
        facts = facts_of(page)
        assert facts["last durable edit"] == 8 and facts["lag: edits that a start replays"] == 3
        assert facts["owner"] == "nn-1" and facts["epoch"] == 1 and facts["active replica"] == "replica-1"
        newest, oldest = rows_of(page, "Segments")
        assert newest["state"] == StateWord("open", Tone.GOOD) and newest["last edit"] is None
        assert oldest["last edit"] == 5 and isinstance(oldest["ledger"], LedgerLink)
        (kept,) = rows_of(page, "Snapshots")
        assert kept["at edit"] == 5 and kept["size"] == ByteCount(5)
        (offered,) = rows_of(page, "Offered by standbys")
        assert offered["at edit"] == 8
        await write(log, 1)  # nobody was fenced
        await log.close()

    run(story)


def test_an_open_segment_whose_password_its_users_keep_leaves_the_end_open() -> None:
    async def story(client: BookKeeper) -> None:
        log = await EditLog.open("bk:edits", owner="nn-1", client=client, password=b"ours")
        await write(log, 2)
        page = await PANEL.detail(context_of(client), "edits")
        assert page is not None and page.tone is Tone.WARN
        assert facts_of(page)["last durable edit"] == "at least 0"
        assert any("password" in text for text in notes_of(page))
        await log.close()

    run(story)


def test_a_journal_that_cannot_be_read_is_named_and_the_others_are_shown() -> None:
    async def story(client: BookKeeper) -> None:
        async with await EditLog.open("bk:good", client=client):
            pass
        metadata = client.metadata_store
        await metadata.store.create(metadata.own("journals", "bad"), b"rubbish", parents=True)
        page = await PANEL.snapshot(context_of(client))
        assert [row["state"] for row in rows_of(page)] == [
            StateWord("damaged", Tone.BAD),
            StateWord("empty", Tone.PLAIN),
        ]
        assert page.tone is Tone.BAD and any(text.startswith("bad: ") for text in notes_of(page))
        with pytest.raises(BookKeeperError, match="journal bad cannot be read"):
            await PANEL.detail(context_of(client), "bad")

    run(story)


def test_a_long_list_says_how_many_journals_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_panel, "JOURNALS_MAX", 1)

    async def story(client: BookKeeper) -> None:
        for name in ("a", "b"):
            async with await EditLog.open(f"bk:{name}", client=client):
                pass
        page = await PANEL.snapshot(context_of(client))
        assert len(rows_of(page)) == 1 and page.summary == "2 journals"
        assert getattr(page.blocks[0], "total") == 2  # noqa: B009

    run(story)


def test_an_unknown_or_impossible_name_has_no_page() -> None:
    async def story(client: BookKeeper) -> None:
        for key in ["none", "", ".", "..", "/", "\x00", "x" * 5000]:
            assert await PANEL.detail(context_of(client), key) is None, key

    run(story)


def test_bookies_that_do_not_answer_leave_the_end_open_within_a_bounded_time() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            log = await EditLog.open("bk:edits", client=client)
            await write(log, 2)
            for name in cluster.names:
                cluster.node(name).freeze()
            clock = client.services.seams.clock
            began = clock.monotonic()
            page = await PANEL.detail(context_of(client), "edits")
            assert clock.monotonic() - began < console_panel.END_S + 1
            assert page is not None and facts_of(page)["last durable edit"] == "at least 0"
            for name in cluster.names:
                cluster.node(name).thaw()
            await log.close()

    SimCluster(seed=4).run(story)
