"""``bk init`` and ``bk bookies``."""

from __future__ import annotations

from pathlib import Path

import pytest

from bookkeeper.meta import Metadata
from bookkeeper.real import run, system_seams
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies, until


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/metadata.db"


def test_init_makes_a_cluster_that_can_be_joined(uri: str) -> None:
    async def instance() -> str:
        metadata = await Metadata.connect(uri, system_seams())
        await metadata.close()
        return metadata.instance_id

    said = bk("init", "-m", uri, "--json").document
    assert said == {"instance_id": run(instance()), "metadata": uri}
    assert bk("bookies", "-m", uri, "--json").document == []


def test_init_says_where_for_people(uri: str) -> None:
    assert bk("init", "-m", uri).out.startswith(f"made a new cluster at {uri}, instance ")


def test_init_refuses_a_cluster_that_is_there_and_leaves_it(uri: str) -> None:
    before = bk("init", "-m", uri, "--json").document
    bk("init", "-m", uri).refused(f"there is already a cluster at {uri}", "and it was not changed")
    assert bk("bookies", "-m", uri).status == 0
    assert before["metadata"] == uri


def test_init_without_a_store_has_changed_nothing_and_does_not_doubt_it(tmp_path: Path) -> None:
    said = bk("init", "-m", f"sqlite://{tmp_path}")
    said.refused(f"{tmp_path} is a directory")
    assert "may have been made" not in said.err
    assert "may or may not" not in said.err


@pytest.mark.parametrize("kind", ["embedded:///nowhere", "memory:"])
def test_init_of_a_cluster_that_needs_none_says_so(kind: str) -> None:
    bk("init", "-m", kind).refused("needs no init", status=2)


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
        assert row == {"bookie": "b3", "state": "absent", "address": None}
        settings = cluster.home / "read-only.toml"
        settings.write_text("read_only = true\n[storage]\njournal_file_bytes = 8388608\nreserve_bytes = 1048576\n")
        cluster.add("b3", "--config", str(settings)).until_said("serves at")
        until(lambda: cluster.states()["b3"] == "read-only", 30, cluster.states)
        cluster["b3"].kill()
    finally:
        cluster.add("b3").until_said("serves at")
        cluster.all_up()
