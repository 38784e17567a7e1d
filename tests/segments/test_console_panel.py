"""The console's pages of streams, on a simulated cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bookkeeper import BookKeeper
from bookkeeper.console.panels import ByteCount, DetailLink, Panel, StateWord, Tone
from bookkeeper.errors import BookKeeperError
from bookkeeper.testing.cluster import SimCluster
from segments import console_panel
from segments.chain import StreamHead
from segments.config import StreamConfig
from segments.console_panel import PANEL
from segments.names import stream_path
from segments.namespace import StreamNamespace
from segments.record import StoredRecord
from tests.bookkeeper.console.panel_pages import context_of, facts_of, notes_of, rows_of
from tests.segments.retention.streams import make_stream, run


async def nodes_of(client: BookKeeper, path: str) -> dict[str, object]:
    """Every node below a path, with its value and version."""
    store = client.metadata_store.store
    found: dict[str, object] = {path: await store.get(path)}
    for child in await store.children(path):
        found |= await nodes_of(client, f"{path}/{child}")
    return found


def test_it_is_a_panel() -> None:
    assert isinstance(PANEL, Panel) and PANEL.name == "streams"


def test_the_list_has_each_stream_with_its_writer_and_what_its_segments_hold() -> None:
    async def story(client: BookKeeper) -> None:
        await make_stream(client, "orders", segments=2, opened=True)
        await make_stream(client, "a/<b>", segments=1)
        page = await PANEL.snapshot(context_of(client))
        odd, orders = rows_of(page)
        assert odd["stream"] == DetailLink("a/<b>", "a/<b>") and odd["records"] == 6
        assert orders["writer"] == "a writer" and orders["segments"] == 3 and orders["records"] == 12
        assert orders["state"] == StateWord("written", Tone.GOOD)
        assert isinstance(orders["size"], ByteCount) and orders["size"].count > 0
        assert page.summary == "2 streams, 2 with a writer"

    run(story)


def test_a_stream_that_cannot_be_read_is_named_and_the_others_are_shown() -> None:
    async def story(client: BookKeeper) -> None:
        await make_stream(client, "good")
        bad = await make_stream(client, "bad")
        await client.metadata_store.store.set(bad.path, b"rubbish", None)
        page = await PANEL.snapshot(context_of(client))
        assert [row["state"] for row in rows_of(page)] == [
            StateWord("damaged", Tone.BAD),
            StateWord("written", Tone.GOOD),
        ]
        assert any(text.startswith("bad: ") for text in notes_of(page)) and page.tone is Tone.BAD
        with pytest.raises(BookKeeperError, match="no stream's node"):
            await PANEL.detail(context_of(client), "bad")

    run(story)


def test_a_long_list_says_how_many_streams_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_panel, "STREAMS_MAX", 2)

    async def story(client: BookKeeper) -> None:
        for name in ("a", "b", "c"):
            await make_stream(client, name, segments=0)
        page = await PANEL.snapshot(context_of(client))
        assert [row["stream"] for row in rows_of(page)] == [DetailLink("a", "a"), DetailLink("b", "b")]
        assert page.summary.startswith("3 streams")
        assert getattr(page.blocks[0], "total") == 3  # noqa: B009

    run(story)


def test_a_streams_page_has_cursors_with_lag_producers_holds_and_the_reasons_of_retention() -> None:
    """It takes nothing over and writes nothing: the writer goes on, and every node is as it was."""

    async def story(client: BookKeeper) -> None:
        namespace = StreamNamespace(client)
        config = StreamConfig(retention=replace(StreamConfig().retention, max_records=1, cursors="block"))
        stream = await namespace.create("orders", config=config)
        producer = await stream.producer("till-1")
        for number in range(4):
            await producer.append(b"%d" % number)
        async with stream.cursor("report") as cursor:
            records = [record.position async for record in stream.read() if isinstance(record, StoredRecord)]
            await cursor.ack(records[0], records[1], records[3])
        await stream.hold("audit", note="until the audit is done")
        await producer.append(b"4")
        before = await nodes_of(client, stream_path(client.metadata_store, stream.id))
        opened = (await stream.segments())[-1].ledger_id
        ledger = await client.metadata(opened)
        page = await PANEL.detail(context_of(client), "orders")
        assert await client.metadata(opened) == ledger and not ledger.is_closed
        assert page is not None
        assert await nodes_of(client, stream_path(client.metadata_store, stream.id)) == before
        await producer.append(b"5")  # nobody was fenced

        (cursor_row,) = rows_of(page, "Cursors")
        assert cursor_row["cursor"] == "report" and cursor_row["lag in records"] == 2
        (producer_row,) = rows_of(page, "Producers")
        assert producer_row["producer"] == "till-1" and producer_row["last number"] == 4
        (hold_row,) = rows_of(page, "Holds")
        assert hold_row["hold"] == "audit" and hold_row["note"] == "until the audit is done"
        assert hold_row["to"] == "latest"
        (segment_row,) = rows_of(page, "Segments")
        assert segment_row["retention"] == StateWord("stays", Tone.PLAIN)
        assert "it is open" in str(segment_row["why"]) and "hold audit" in str(segment_row["why"])
        assert facts_of(page)["records ever"] == 5
        assert page.summary == "written, 5 records ever; the slowest of 1 cursor lags by 2"
        await producer.close()

    run(story)


def test_segments_that_may_go_are_shown_newest_first() -> None:
    async def story(client: BookKeeper) -> None:
        config = StreamConfig(retention=replace(StreamConfig().retention, max_records=7))
        head = await make_stream(client, config=config, segments=3)
        before = await nodes_of(client, stream_path(client.metadata_store, head.stream_id))
        page = await PANEL.detail(context_of(client), "orders")
        assert page is not None
        assert await nodes_of(client, stream_path(client.metadata_store, head.stream_id)) == before, "no node is made"
        rows = rows_of(page, "Segments")
        assert [row["segment"] for row in rows] == [3, 2, 1]
        assert [getattr(row["retention"], "text") for row in rows] == ["stays", "stays", "may go"]  # noqa: B009

    run(story)


def test_of_a_long_stream_the_newest_segments_are_shown_without_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.segments.chain.pages import fold, make_pages_small

    monkeypatch.setattr(console_panel, "EXPLAINED_MAX", 2)
    make_pages_small(monkeypatch)

    async def story(client: BookKeeper) -> None:
        head = await make_stream(client, segments=5)
        await fold(head)
        page = await PANEL.detail(context_of(client), "orders")
        assert page is not None
        rows = rows_of(page, "Segments")
        assert 0 < len(rows) < 5 and "why" not in rows[0]
        assert any("bk stream explain" in text for text in notes_of(page))

    run(story)


def test_a_damaged_cursor_is_told_and_the_rest_of_the_page_is_there() -> None:
    async def story(client: BookKeeper) -> None:
        head: StreamHead = await make_stream(client)
        store = client.metadata_store.store
        await store.create(stream_path(client.metadata_store, head.stream_id, "cursors", "c"), b"rubbish", parents=True)
        page = await PANEL.detail(context_of(client), "orders")
        assert page is not None and page.tone is Tone.WARN
        assert any("Nobody knows what the cursors need" in text for text in notes_of(page))
        assert len(rows_of(page, "Segments")) == 3

    run(story)


def test_an_unknown_or_impossible_name_has_no_page() -> None:
    async def story(client: BookKeeper) -> None:
        for key in ["none", "", "/", "a//b", "\x00", "x" * 5000]:
            assert await PANEL.detail(context_of(client), key) is None, key

    run(story)


def test_bookies_that_do_not_answer_leave_the_end_open_within_a_bounded_time() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            head = await make_stream(client, segments=1, opened=True)
            for name in cluster.names:
                cluster.node(name).freeze()
            clock = client.services.seams.clock
            began = clock.monotonic()
            page = await PANEL.detail(context_of(client), "orders")
            assert clock.monotonic() - began < console_panel.END_S + 1
            assert page is not None and page.tone is Tone.WARN
            assert facts_of(page)["records ever"] == "at least 6"
            assert head.name == "orders"

    SimCluster(seed=4).run(story)
