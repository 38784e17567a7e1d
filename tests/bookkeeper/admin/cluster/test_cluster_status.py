"""``bk cluster status``."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from pathlib import Path

import pytest

from bookkeeper import BookKeeper
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.real import run
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Process, bookies, until

ONE = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1)


def test_a_cluster_that_is_well(embedded: str) -> None:
    bk("ledger", "append", "-m", embedded, "--size", 10, "--count", 5, *ONE)
    shown = bk("cluster", "status", "-m", embedded)
    assert shown.status == 0, shown.out
    for words in ("1 bookie: 1 writable", "1 ledger: 1 closed; 50 B", "lost: none", "stuck: none", "well: nothing"):
        assert words in shown.out, shown.out
    found = bk("cluster", "status", "-m", embedded, "--json").document
    assert found["well"] and found["lost"] == found["short"] == found["stuck"] == []
    assert found["ledgers"] == {"count": 1, "bytes": 50, "closed": 1}
    assert found["autorecovery"]["enabled"] and found["bookies"][0]["free"] > 0


def test_on_a_narrow_terminal_no_word_is_broken(embedded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bk("ledger", "append", "-m", embedded, "--size", 10, "--count", 5, *ONE)
    monkeypatch.setenv("COLUMNS", "40")
    shown = bk("cluster", "status", "-m", embedded).out
    assert "state: writable" in shown.splitlines()
    assert "\n\n1 ledger: 1 closed" in shown
    assert "┃" not in shown


def test_what_is_short_is_named_and_the_status_says_so(tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/metadata.db"
    bk("init", "-m", uri)

    async def mark() -> None:
        async with BookKeeper.connect(uri) as client:
            for ledger in range(12):
                await client.metadata_store.under_replication.mark(LedgerId(ledger), [BookieId("b1")], 1)

    run(mark())
    shown = bk("cluster", "status", "-m", uri)
    assert shown.status == 1 and "12 ledgers (0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more)" in shown.out
    assert "NOT WELL" in shown.out and "auditor: none; run `bk autorecovery`" in shown.out
    bk("autorecovery", "disable", "-m", uri)
    assert "DISABLED" in bk("cluster", "status", "-m", uri).out
    assert json.loads(bk("cluster", "status", "-m", uri, "--json").out)["short"] == list(range(12))


def test_a_bookie_that_is_registered_and_does_not_answer_is_not_well(tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/metadata.db"
    bk("init", "-m", uri)

    async def look() -> tuple[int, str, str]:
        async with BookKeeper.connect(uri) as client:
            store = client.metadata_store.store
            with socket.socket() as nobody:  # bound, and it listens to no one
                nobody.bind(("127.0.0.1", 0))
                bookie = f"127.0.0.1:{nobody.getsockname()[1]}"
                await store.create(f"/ledgers/available/{bookie}", b"", ephemeral=True, parents=True)
                shown = await asyncio.to_thread(bk, "cluster", "status", "-m", uri)
            return shown.status, shown.out, bookie

    status, out, bookie = run(look())
    assert status == 1 and "NOT WELL" in out, out
    assert "lost: none" in out and f"registered, and no answer: {bookie}" in out, out


def test_a_watch_looks_again_until_it_is_interrupted(tmp_path: Path) -> None:
    with bookies(tmp_path, ("b1", "b2")) as two:
        watch = Process("watch", tmp_path, "cluster", "status", "--watch", "--json", "-m", two.uri).start()
        people = Process("people", tmp_path, "cluster", "status", "--watch", "-m", two.uri).start()
        watch.until_said('"b2", "state": "writable"')
        two["b2"].kill()
        watch.until_said('"b2", "state": "absent"')
        people.until_said("1 writable, 0 read-only, 1 absent")
        until(lambda: watch.said.count("\n") >= 3)
        assert watch.stop(signal.SIGINT) != 0 and "Traceback" not in watch.said
        assert people.stop(signal.SIGINT) != 0 and "Traceback" not in people.said
        looks = [json.loads(line) for line in watch.said.split("\n") if line]
        assert all(look["well"] == (not look["silent"]) for look in looks), "b2 may be silent before it is absent"


def test_bookies_that_do_not_follow_the_access_policy_are_named(tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/metadata.db"
    bk("init", "-m", uri)
    shown: list[str] = []

    async def ask() -> None:
        async with BookKeeper.connect(uri) as client:
            store, paths = client.metadata_store.store, client.metadata_store.paths
            await store.create(paths.available_bookie(BookieId("127.0.0.1:1")), ephemeral=True, parents=True)
            for words in ((), ("--json",)):
                shown.append((await asyncio.to_thread(bk, "cluster", "status", "-m", uri, *words)).out)

    run(ask())
    bk("access", "observe", "-m", uri)
    run(ask())
    assert "access policy" not in shown[0]
    assert json.loads(shown[1])["access"] == {"mode": "off", "not_enforced_by": []}
    assert "access policy: observe" in shown[2] and "NOT ENFORCED by 127.0.0.1:1: Java's" in shown[2]
    assert json.loads(shown[3])["access"] == {"mode": "observe", "not_enforced_by": ["127.0.0.1:1"]}
    run(_damage(uri))
    assert "access policy: CANNOT BE READ" in bk("cluster", "status", "-m", uri).out
    assert bk("cluster", "status", "-m", uri, "--json").document["access"]["mode"] is None


async def _damage(uri: str) -> None:
    async with BookKeeper.connect(uri) as client:
        await client.metadata_store.store.set(client.metadata_store.access.path, b"rubbish", None)
