"""The console's pages of Spark's checkpoints: checkpoints that PySpark made, at a gateway of a simulated cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from bookkeeper import BookKeeper
from bookkeeper.console.panels import ByteCount, DetailLink, Panel, StateWord, Tone
from bookkeeper.testing.cluster import SimCluster
from spark_wal import console_panel
from spark_wal.console_panel import PANEL
from spark_wal.webhdfs.ownership.namespace_owner import NamespaceOwner
from tests.bookkeeper.console.panel_pages import context_of, facts_of, notes_of, rows_of
from tests.spark_wal.checkpoints.samples import SampleStore
from tests.spark_wal.webhdfs.ownership.test_cluster_backing import gateway_on, put, temporary


def run(story: Callable[[BookKeeper, NamespaceOwner], Awaitable[None]]) -> None:
    async def work(cluster: SimCluster) -> None:
        gateway = await gateway_on(cluster, cluster.client)
        await gateway.start()
        async with cluster.connect() as client:
            await story(client, await gateway.owner())
        await gateway.close()

    SimCluster(seed=3).run(work)


async def put_sample(owner: NamespaceOwner, directory: str, sample: SampleStore) -> None:
    for path, data in sample.files.items():
        await put(owner, f"{directory}/{path}", data)


def test_it_is_a_panel() -> None:
    assert isinstance(PANEL, Panel) and PANEL.name == "checkpoints"


def test_a_cluster_without_gateways_has_no_checkpoints() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            page = await PANEL.snapshot(context_of(client))
            assert page.summary == "0 checkpoints" and not rows_of(page, "Gateways")
            assert await PANEL.detail(context_of(client), "n/c") is None

    SimCluster(seed=1).run(story)


def test_the_list_has_each_query_with_its_batches_and_who_writes() -> None:
    async def story(client: BookKeeper, owner: NamespaceOwner) -> None:
        sample = SampleStore("hdfs")
        await put_sample(owner, "/ckpt/<b>", sample)
        del sample.files["commits/8"]
        sample.files["metadata"] = b"{"
        await put_sample(owner, "/ckpt/late", sample)
        page = await PANEL.snapshot(context_of(client))
        first, late = rows_of(page, "Checkpoints")
        assert first["checkpoint"] == DetailLink("/ckpt/<b>", "n/ckpt/<b>")
        assert first["query"] == "5297b900-ebbf-4bde-bcb6-f68442b18f52"
        assert first["state"] == StateWord("batch 8 done", Tone.GOOD)
        assert first["written by"] == "a" and isinstance(first["size of state"], ByteCount)
        assert late["state"] == StateWord("batch 8 planned, not done", Tone.PLAIN)
        assert late["query"] == StateWord("damaged", Tone.BAD)
        (gateway,) = rows_of(page, "Gateways")
        assert gateway["gateway"] == "client:1" and gateway["checkpoints"] == 2
        await put(owner, "/ckpt/late/commits/8", b"v1\n{}")  # the gateway goes on, and so does what the panel shows
        _, late = rows_of(await PANEL.snapshot(context_of(client)), "Checkpoints")
        assert late["state"] == StateWord("batch 8 done", Tone.GOOD)

    run(story)


def test_a_checkpoints_page_has_its_batches_operators_state_and_what_is_being_written() -> None:
    async def story(client: BookKeeper, owner: NamespaceOwner) -> None:
        sample = SampleStore("hdfs")
        await put_sample(owner, "/c", sample)
        await put(owner, temporary("/c/offsets/9", 9), b"v1")
        page = await PANEL.detail(context_of(client), "n/c")
        assert page is not None and page.tone is Tone.PLAIN
        known = sample.checkpoint()
        facts = facts_of(page)
        assert facts["query"] == known.query_id and facts["next batch"] == 9 and facts["gateway"] == "client:1"
        batches = rows_of(page, f"The last {len(known.offsets)} batches")
        assert [row["batch"] for row in batches] == sorted(known.offsets, reverse=True)
        assert all(row["state"] == StateWord("done", Tone.GOOD) for row in batches)
        assert str(batches[0]["where its sources end"]).startswith("0: ")
        assert len(rows_of(page, "Operators with state")) == len(known.operators) > 0
        assert len(rows_of(page, "Partitions of state")) == len(known.state_files) == 2
        (written,) = rows_of(page, "Temporary files")
        assert written["file"] == temporary("/c/offsets/9", 9).removeprefix("/c/") and written["by"] == "a"

    run(story)


def test_large_and_damaged_files_of_the_logs_are_read_from_ledgers_or_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file above the gateway's limit lies in a ledger; where several are too large together, that is told."""
    long = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":7}\n' + b'"' + b"x" * 20_000 + b'"'
    monkeypatch.setattr(console_panel, "READ_MAX", 30_000)

    async def story(client: BookKeeper, owner: NamespaceOwner) -> None:
        await put(owner, "/c/metadata", b'{"id":"q"}')
        await put(owner, "/c/offsets/0", long)
        await put(owner, "/c/offsets/1", long)
        await put(owner, "/c/offsets/2", b"v9")
        page = await PANEL.detail(context_of(client), "n/c")
        assert page is not None and page.tone is Tone.WARN
        (batch,) = rows_of(page, "The last 1 batch")
        assert batch["batch"] == 0 and "20005 characters" in str(batch["where its sources end"])
        told = notes_of(page)
        assert any(text.startswith("offsets/1 is not shown") for text in told)
        assert any(text.startswith("offsets/2 cannot be read: it has version 9") for text in told)

    run(story)


def test_an_unknown_or_impossible_name_has_no_page() -> None:
    async def story(client: BookKeeper, owner: NamespaceOwner) -> None:
        await put(owner, "/c/metadata", b'{"id":"q"}')
        await put(owner, "/c/offsets/0", b"v1")
        for key in ["", "/", "n", "n/", "n/none", "x/c", "%/c", "n/c/offsets"]:
            assert await PANEL.detail(context_of(client), key) is None, key

    run(story)


def test_a_namespace_that_cannot_be_read_is_told_beside_the_others() -> None:
    async def story(client: BookKeeper, owner: NamespaceOwner) -> None:
        await put(owner, "/c/metadata", b'{"id":"q"}')
        await put(owner, "/c/offsets/0", b"v1")
        metadata = client.metadata_store
        await metadata.store.create(metadata.own("journals", "webhdfs%2Fbad"), b"rubbish")
        page = await PANEL.snapshot(context_of(client))
        assert len(rows_of(page, "Checkpoints")) == 1 and page.tone is Tone.BAD
        assert any("namespace bad cannot be read" in text for text in notes_of(page))
        bad, good = rows_of(page, "Gateways")
        assert bad["gateway"] == StateWord("no gateway", Tone.WARN) and good["gateway"] == "client:1"

    run(story)
