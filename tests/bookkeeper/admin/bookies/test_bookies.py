"""``bk bookies``."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bookkeeper.ids import Address, BookieId
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.records.service_info import ServiceInfo, encode
from bookkeeper.real import system_seams
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies, until

ONE = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1)


def test_the_only_copy_keeps_its_bookie_from_being_stopped(embedded: str) -> None:
    bk("ledger", "append", "-m", embedded, "--size", 10, "--count", 5, *ONE)
    no = bk("bookies", "safe-to-stop", "b1", "-m", embedded)
    assert no.status == 1 and no.out.startswith("no: do not stop b1 now") and "1 ledger would suffer" in no.out


def test_a_bookie_is_ordered_to_be_read_only_and_back(cluster: Bookies) -> None:
    assert "b1 is ordered to take no new entries" in bk("bookies", "read-only", "b1", "-m", cluster.uri).out
    until(lambda: cluster.states()["b1"] == "read-only")
    assert "may take new entries again" in bk("bookies", "read-only", "b1", "--off", "-m", cluster.uri).out
    until(lambda: cluster.states()["b1"] == "writable")


def test_nobody_is_ordered_whom_the_cluster_does_not_know(cluster: Bookies) -> None:
    bk("bookies", "read-only", "b9", "-m", cluster.uri).refused("there is no bookie b9; known are b1, b2, b3")


@pytest.mark.rule("Q6")
def test_where_bookies_stand_is_said_shown_and_explained(cluster: Bookies) -> None:
    bk("ledger", "append", "-m", cluster.uri, "--size", 10, "--count", 5)
    ledger = bk("ledger", "list", "-m", cluster.uri, "--json").document[-1]["ledger"]
    assert bk("bookies", "place", "b1", "rack1/", "-m", cluster.uri).out == "b1 stands in /rack1\n"
    assert bk("bookies", "place", "b1", "/rack1", "-m", cluster.uri).out == "b1 stands in /rack1, as before\n"
    bk("bookies", "place", "b2", "/east/rack2", "-m", cluster.uri)
    rows = bk("bookies", "-m", cluster.uri, "--json").document
    assert [row["location"] for row in rows] == ["/rack1", "/east/rack2", "/default-rack"]
    explained = bk("ledger", "explain", ledger, "-m", cluster.uri)
    assert "the loss of any one rack (/default-rack, /east/rack2, /rack1) would lose nothing" in explained.out
    for name in ("b2", "b3"):
        bk("bookies", "place", name, "/rack1", "-m", cluster.uri)
    bk("bookies", "place", "b1", "--forget", "-m", cluster.uri)
    lost = bk("ledger", "explain", ledger, "-m", cluster.uri, "--json").document["racks"]
    assert {rack: loss["entries"] for rack, loss in lost.items()} == {"/default-rack": 0, "/rack1": 0}
    for name in ("b2", "b3"):
        said = bk("bookies", "place", name, "--forget", "-m", cluster.uri).out
        assert said == f"{name} stands where nobody knows, and counts as in /default-rack\n"


def test_a_place_that_is_none_is_refused(cluster: Bookies) -> None:
    bk("bookies", "place", "b1", "/a b", "-m", cluster.uri).refused(
        "is no network location: write /RACK or /REGION/RACK"
    )
    bk("bookies", "place", "b9", "/a", "-m", cluster.uri).refused("there is no bookie b9")
    assert bk("bookies", "place", "b1", "-m", cluster.uri).status == 2


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("foo://x", ["foo"]),
        ("sqlite:relative.db", ["relative.db"]),
        ("zk://127.0.0.1:1/ledgers", ["cannot reach zk://127.0.0.1:1/ledgers", "127.0.0.1:1"]),
        ("embedded://x", ["three slashes"]),
        ("embedded:///x?bookies=0", ["bookies=0"]),
        ("no address at all", ["no address at all"]),
    ],
)
def test_a_bad_address_is_one_sentence(address: str, words: list[str]) -> None:
    bk("bookies", "-m", address).refused(*words)


def test_an_embedded_address_that_is_no_directory_names_it(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    bk("bookies", "-m", f"embedded://{taken}").refused(str(taken))


@pytest.mark.rule("X29")
def test_a_registration_that_cannot_be_used_is_shown_beside_the_others(tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/metadata.db"
    bk("init", "-m", uri)

    async def register() -> None:
        metadata = await Metadata.connect(uri, system_seams())
        try:
            await metadata.store.create(Paths().available_bookie(BookieId("b1:1")), b"\x32\xff")
            good = encode(ServiceInfo.bookie(Address("h", 3181)))
            await metadata.store.create(Paths().available_bookie(BookieId("b2:1")), good)
        finally:
            await metadata.close()

    asyncio.run(register())
    bad, good = bk("bookies", "-m", uri, "--json").document
    assert bad["address"] is None and bad["problem"].startswith("b1:1: a bookie's registration of 2 bytes")
    assert good["address"] == "h:3181" and "problem" not in good
    said = bk("bookies", "-m", uri).out
    assert "problem" in said and "b2:1" in said


def test_bookies_tells_who_is_there(cluster: Bookies) -> None:
    rows = bk("bookies", "-m", cluster.uri, "--json").document
    assert [(row["bookie"], row["state"]) for row in rows] == [(name, "writable") for name in ("b1", "b2", "b3")]
    assert all(row["address"].startswith("127.0.0.1:") for row in rows)
    said = bk("bookies", "-m", cluster.uri).out
    assert "3 bookies" in said
    assert all(word in said for word in ("b1", "b2", "b3", "writable", rows[0]["address"]))


def test_a_bookie_that_is_killed_is_absent_at_once_and_read_only_by_order_is_shown(cluster: Bookies) -> None:
    cluster["b3"].kill()
    try:
        until(lambda: cluster.states()["b3"] == "absent", 30, cluster.states)
        row = bk("bookies", "-m", cluster.uri, "--json").document[2]
        assert row == {"bookie": "b3", "state": "absent", "address": None, "location": "/default-rack"}
        settings = cluster.home / "read-only.toml"
        settings.write_text("read_only = true\n[storage]\njournal_file_bytes = 8388608\nreserve_bytes = 1048576\n")
        cluster.add("b3", "--config", str(settings)).until_said("serves at")
        until(lambda: cluster.states()["b3"] == "read-only", 30, cluster.states)
        cluster["b3"].kill()
    finally:
        cluster.add("b3").until_said("serves at")
        cluster.all_up()
