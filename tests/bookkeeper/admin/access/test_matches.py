"""A grant that matches nothing says so."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from bookkeeper.access import Amount, Usage
from bookkeeper.meta import Metadata
from tests.bookkeeper.admin.access.clusters import Cluster
from tests.bookkeeper.admin.commands import bk


async def _streams(metadata: Metadata) -> None:
    for name in ("app", "app/x", "apple"):
        await metadata.store.create(metadata.own("segments", "names", quote(name, safe="")), b"", parents=True)


def _notes(cluster: Cluster, on: str, who: str = "etl") -> Any:
    return [note for note in cluster.document("grant", who, "read", on)["notes"] if "mode is" not in note]


def test_a_name_that_nothing_has_is_told_with_those_that_look_like_it(cluster: Cluster) -> None:
    cluster.meanwhile(_streams)
    assert _notes(cluster, "streams:appl") == ["nothing matches streams:appl now; there is apple, app, app/x"]
    assert _notes(cluster, "streams:zebra") == ["nothing matches streams:zebra now"]
    assert _notes(cluster, "journals:app") == ["nothing matches journals:app now"]
    for on in ("streams:app", "streams:app/x", "streams:/", "cluster", "ledgers:/"):
        assert _notes(cluster, on) == []


def test_what_cannot_be_looked_up_is_said(cluster: Cluster) -> None:
    assert _notes(cluster, "paths:/x") == ["whether there is a path /x was not looked up"]
    assert _notes(cluster, "ledgers:bob") == [
        "whether somebody has ledgers as bob is not known: nothing was counted yet"
    ]

    async def count(metadata: Metadata) -> None:
        await metadata.access.write_usage(Usage(1, {}, {"bob": Amount(5, 1)}))

    cluster.meanwhile(count)
    assert _notes(cluster, "ledgers:bob") == []
    assert _notes(cluster, "ledgers:bobby") == ["nothing matches ledgers:bobby now; there is bob"]


def test_a_tenant_that_there_is_not_is_told(cluster: Cluster) -> None:
    cluster.access("tenant", "set", "red", "--member", "etl")
    assert _notes(cluster, "cluster", "tenant:red") == []
    assert _notes(cluster, "cluster", "tenant:rad") == ["there is no tenant rad; there is red"]


def test_streams_and_journals_are_found_where_their_packages_keep_them(embedded: str) -> None:
    assert bk("stream", "create", "team/one", "-m", embedded).status == 0
    shown = bk("access", "grant", "etl", "read", "streams:team", "-m", embedded)
    assert shown.status == 0 and "nothing matches" not in shown.out
    assert bk("journal", "format", f"bk:edits?metadata={embedded}").status == 0
    shown = bk("access", "grant", "etl", "read", "journals:edits", "-m", embedded)
    assert shown.status == 0 and "nothing matches" not in shown.out
