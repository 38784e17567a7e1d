"""Bookies as real processes: killed, paused, started where they do not belong. Metadata in SQLite, once in ZooKeeper.

Moments are counted in acknowledged entries, not in seconds. Tests share one cluster and leave it whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bookkeeper import BookKeeper, ClientConfig
from bookkeeper.errors import (
    AddTimeoutError,
    BookKeeperError,
    LedgerFencedError,
    MetadataUnavailableError,
    NotEnoughBookiesError,
    Outcome,
)
from bookkeeper.launchers.zookeeper import ZooKeeperServer
from bookkeeper.meta import init_cluster
from bookkeeper.real import run, system_seams
from tests.integration.load import Load, check_all_there
from tests.integration.processes import Bookies, Process, bk, bk_json, bookies, until_async

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

NAMES = ("b1", "b2", "b3")
EXIT_CONFIG = 78


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bookies]:
    with bookies(tmp_path_factory.mktemp("bookies"), NAMES) as found:
        yield found


@pytest.fixture
def cluster(shared: Bookies) -> Iterator[Bookies]:
    """Three bookies, all of them up; up again when the test has ended."""
    yield shared
    for name in set(shared.each) - set(NAMES):
        shared.forget(name)
    shared.all_up()


def absent(cluster: Bookies, ledger_id: int) -> list[list[str]]:
    """The absent bookies of each fragment, as ``bk ledger show`` tells."""
    shown = bk_json("ledger", "show", str(ledger_id), "-m", cluster.uri)
    return [fragment["absent"] for fragment in shown["fragments"]]


# -- killed -----------------------------------------------------------------------------------------------


@pytest.mark.rule("F1", "W1", "W13")
async def test_one_bookie_after_the_other_is_killed_under_load_and_the_caller_sees_nothing(cluster: Bookies) -> None:
    rng = random.Random(7)
    async with BookKeeper.connect(cluster.uri) as client:
        async with await client.create_ledger(password=b"pw") as ledger, Load(ledger) as load:
            for name in rng.sample(NAMES * 2, 5):
                await load.more(rng.randrange(1, 600))
                cluster[name].kill()
                await load.more(rng.randrange(1, 600))
                await cluster.up_again(name)
                await until_async(lambda: not ledger.failed_bookies, 30, ledger)
        assert ledger.last_add_confirmed + 1 == len(load.acked)
        async with await client.open_ledger(ledger.id, b"pw") as reader:
            await check_all_there(reader, load.acked)


@pytest.mark.rule("F1", "R1")
async def test_all_bookies_are_killed_at_once_under_load_and_recovery_finds_all_that_was_acknowledged(
    cluster: Bookies,
) -> None:
    rng = random.Random(11)
    for _ in range(2):
        async with BookKeeper.connect(cluster.uri) as client:
            ledger = await client.create_ledger(password=b"pw")
            async with Load(ledger) as load:
                await load.more(rng.randrange(500, 2000))
                for name in NAMES:
                    cluster[name].kill()
                for name in NAMES:
                    await cluster.up_again(name)
                async with (
                    BookKeeper.connect(cluster.uri) as other,
                    await other.open_ledger(ledger.id, b"pw") as reader,
                ):
                    await load.ended()
                    await check_all_there(reader, load.acked)
        shown = await asyncio.to_thread(bk_json, "ledger", "show", str(ledger.id), "-m", cluster.uri)
        assert shown["state"] == "CLOSED"


@pytest.mark.rule("W13", "W14")
async def test_with_one_of_three_lost_appends_go_on_and_new_ledgers_name_the_absent_one(cluster: Bookies) -> None:
    async with BookKeeper.connect(cluster.uri) as client:
        async with await client.create_ledger() as ledger, Load(ledger) as load:
            await load.more(200)
            cluster["b2"].kill()
            await load.more(2000)
            assert ledger.failed_bookies == ("b2",)
        assert absent(cluster, ledger.id) == [["b2"]]
        await cluster.until_state("b2", "absent")
        with pytest.raises(NotEnoughBookiesError, match="needs 3 bookies, but 2 can be used"):
            await client.create_ledger()
        async with await client.create_ledger(when_short="name_absent") as short:
            await short.append_many([b"durable", b"on two"])
        assert sorted(short.metadata.bookies) == list(NAMES)
        assert short.metadata.spec.ack_quorum == 2
        assert absent(cluster, short.id) == [["b2"]]
        status, out, _ = bk("ledger", "show", str(short.id), "-m", cluster.uri)
        assert (status, "absent now: b2" in out) == (0, True)
        async with await client.open_ledger(short.id) as reader:
            assert [e.payload async for e in reader.read(0, 1)] == [b"durable", b"on two"]
        async with await client.open_ledger(ledger.id) as reader:
            await check_all_there(reader, load.acked)
        await cluster.up_again("b2")
        assert absent(cluster, short.id) == [[]]


@pytest.mark.rule("W4", "W5")
async def test_with_a_spare_a_killed_bookie_is_replaced_and_the_ledger_shows_both_ensembles(cluster: Bookies) -> None:
    async with BookKeeper.connect(cluster.uri) as client:
        async with await client.create_ledger() as ledger, Load(ledger) as load:
            await load.more(100)
            spare = cluster.add("b4")
            await asyncio.to_thread(spare.until_said, "serves at")
            await cluster.until_state("b4", "writable")
            cluster["b1"].kill()
            await until_async(lambda: "b4" in ledger.metadata.last_fragment.ensemble, 60, lambda: repr(ledger))
            await load.more(500)
        shown = bk_json("ledger", "show", str(ledger.id), "-m", cluster.uri)
        ensembles = [sorted(fragment["ensemble"]) for fragment in shown["fragments"]]
        assert ensembles == [["b1", "b2", "b3"], ["b2", "b3", "b4"]]
        assert [fragment["absent"] for fragment in shown["fragments"]] == [["b1"], []]
        async with await client.open_ledger(ledger.id) as reader:
            await check_all_there(reader, load.acked)


@pytest.mark.rule("V1")
async def test_with_all_bookies_gone_appends_end_within_their_time_with_the_reason(cluster: Bookies) -> None:
    config = ClientConfig(add_timeout_ms=2_000)
    async with BookKeeper.connect(cluster.uri, config=config) as client:
        ledger = await client.create_ledger()
        async with Load(ledger) as load:
            await load.more(100)
            for name in NAMES:
                cluster[name].kill()
            errors = await load.ended(20)
        assert {type(error) for error in errors} == {AddTimeoutError}
        assert errors[0].outcome is Outcome.UNKNOWN
        assert any(name in str(errors[0]) for name in NAMES), f"which bookies? {errors[0]}"
        with pytest.raises(AddTimeoutError):
            await ledger.append(b"after the end")
        for name in NAMES:
            await cluster.up_again(name)
        async with await client.open_ledger(ledger.id) as reader:
            await check_all_there(reader, load.acked)


# -- paused -----------------------------------------------------------------------------------------------


@pytest.mark.rule("W15")
async def test_a_bookie_that_is_stopped_in_its_tracks_neither_blocks_nor_fails_appends(cluster: Bookies) -> None:
    async with BookKeeper.connect(cluster.uri) as client:
        async with await client.create_ledger() as ledger, Load(ledger) as load:
            await load.more(500)
            cluster["b3"].pause()
            await load.more(500)
            await until_async(lambda: ledger.failed_bookies == ("b3",), 20, lambda: repr(ledger))
            await load.more(500)
            cluster["b3"].resume()
            await until_async(lambda: not ledger.failed_bookies, 30, lambda: repr(ledger))
            await load.more(500)
        async with await client.open_ledger(ledger.id) as reader:
            await check_all_there(reader, load.acked)


@pytest.mark.rule("W15")
async def test_a_ledger_is_closed_and_read_while_a_bookie_is_stopped(cluster: Bookies) -> None:
    async with BookKeeper.connect(cluster.uri) as client:
        async with await client.create_ledger() as ledger, Load(ledger) as load:
            await load.more(100)
            cluster["b1"].pause()
            await load.more(100)
        async with await client.open_ledger(ledger.id) as reader:
            await check_all_there(reader, load.acked)


# -- a second writer --------------------------------------------------------------------------------------


@pytest.mark.rule("W9", "R1", "R2")
async def test_a_second_writer_fences_the_first_which_is_told_that_the_outcome_is_unknown(cluster: Bookies) -> None:
    async with BookKeeper.connect(cluster.uri) as client, BookKeeper.connect(cluster.uri) as other:
        ledger = await client.create_ledger(password=b"pw")
        async with Load(ledger) as load:
            await load.more(300)
            async with await other.open_ledger(ledger.id, b"pw") as reader:
                errors = await load.ended()
                assert {type(error) for error in errors} == {LedgerFencedError}
                assert {error.outcome for error in errors} == {Outcome.UNKNOWN}
                await check_all_there(reader, load.acked)
        with pytest.raises(LedgerFencedError):
            await ledger.append(b"again")
        with pytest.raises(BookKeeperError):
            await ledger.close()


# -- started where it does not belong ---------------------------------------------------------------------


def refused(cluster: Bookies, name: str, directory: Path, uri: str | None = None) -> str:
    """Start a bookie that must not start; what it complains about."""
    words = ("bookie", "--metadata", uri or cluster.uri, "--dir", str(directory), "--bookie-id", name)
    status, out, err = bk(*words)
    assert (status, out) == (EXIT_CONFIG, ""), err
    assert len(err.splitlines()) == 1, err
    assert err.startswith("bk: ")
    return err


@pytest.mark.rule("K21")
def test_a_bookie_on_another_s_directory_names_both_and_what_to_do(cluster: Bookies) -> None:
    cluster["b2"].kill()
    said = refused(cluster, "b9", cluster.home / "b2")
    assert "b9" in said
    assert "b2" in said
    assert "its own directories" in said, "what to do"
    cluster.restart("b2")


@pytest.mark.rule("K21")
def test_a_bookie_of_another_cluster_names_both_and_what_to_do(cluster: Bookies, tmp_path: Path) -> None:
    here = bk_json("init", "-m", f"sqlite://{tmp_path}/other.db")["instance_id"]
    cluster["b2"].kill()
    said = refused(cluster, "b2", cluster.home / "b2", f"sqlite://{tmp_path}/other.db")
    assert here in said
    assert "its cluster is" in said
    cluster.restart("b2")


@pytest.mark.rule("K21")
@pytest.mark.parametrize("lost", ["ledgers", "journal"])
def test_a_bookie_with_a_lost_directory_does_not_start_as_a_new_one(cluster: Bookies, lost: str) -> None:
    cluster["b3"].kill()
    directory, aside = cluster.home / "b3" / lost, cluster.home / "aside"
    directory.rename(aside)
    try:
        said = refused(cluster, "b3", cluster.home / "b3")
        assert str(directory) in said
        assert "b3" in said
        assert "mount" in said, "what to do"
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        aside.rename(directory)
    cluster.restart("b3")


@pytest.mark.rule("B11")
def test_a_second_bookie_on_one_directory_is_refused_and_the_first_goes_on(cluster: Bookies) -> None:
    said = refused(cluster, "b1", cluster.home / "b1")
    assert "another process" in said
    assert str(cluster.home / "b1") in said
    assert cluster["b1"].running
    assert cluster.states()["b1"] == "writable"


# -- the metadata store is away -----------------------------------------------------------------------------


@pytest.fixture
def on_zookeeper(tmp_path: Path) -> Iterator[tuple[ZooKeeperServer, Bookies]]:
    """A cluster of its own, and the server that holds its metadata."""
    with ZooKeeperServer(tmp_path / "zk", tick_ms=200) as server, bookies(tmp_path, NAMES, server.uri) as found:
        yield server, found


async def until_answered(client: BookKeeper) -> None:
    """Until the metadata store takes a change of this client."""
    while True:
        with contextlib.suppress(MetadataUnavailableError):
            async with await client.create_ledger():
                return


@pytest.mark.zookeeper
@pytest.mark.rule("Z1", "V5")
async def test_zookeeper_goes_away_during_appends_which_go_on_and_changes_end_in_a_clear_error(
    on_zookeeper: tuple[ZooKeeperServer, Bookies],
) -> None:
    server, cluster = on_zookeeper
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as thread:  # the server ends with the thread that starts it
        async with BookKeeper.connect(cluster.uri, config=ClientConfig(metadata_timeout_ms=3_000)) as client:
            async with await client.create_ledger() as ledger, Load(ledger) as load:
                await load.more(200)
                await asyncio.to_thread(server.stop, kill=True)
                await load.more(1000)
                with pytest.raises(MetadataUnavailableError) as caught:
                    await asyncio.wait_for(client.create_ledger(), 60)
                assert caught.value.outcome is Outcome.UNKNOWN
                assert str(server.address) in str(caught.value)
                await load.more(1000)
                await loop.run_in_executor(thread, server.start)
                await load.more(1000)
                await until_answered(client)  # before the ledger is closed, which is tried for three seconds
            for name in NAMES:
                await cluster.until_state(name, "writable")
            async with await client.create_ledger() as after:
                await after.append(b"changes go on")
            async with await client.open_ledger(ledger.id) as reader:
                await check_all_there(reader, load.acked)
        await asyncio.to_thread(server.stop)


@pytest.mark.parametrize("how", ["option", "environment"])
def test_a_log_in_json_has_a_document_on_each_line(tmp_path: Path, how: str) -> None:
    words = ["bookie", "--metadata", f"sqlite://{tmp_path}/m.db", "--dir", str(tmp_path / "b"), "--verbose"]
    given = ["--log", "json"] if how == "option" else []
    run(init_cluster(f"sqlite://{tmp_path}/m.db", system_seams()))
    bookie = Process("b", tmp_path, *words, *given, environment={} if given else {"BK_LOG": "json"}).start()
    bookie.until_said(r"serves at \S+")
    bookie.stop()
    lines = [json.loads(line) for line in bookie.said.splitlines() if line.startswith("{")]
    assert lines, bookie.said
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    assert not [line for line in bookie.said.splitlines() if " INFO " in line or " WARNING " in line]
