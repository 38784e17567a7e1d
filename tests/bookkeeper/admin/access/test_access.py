"""``bk access``: grants, and who may do what."""

from __future__ import annotations

import pytest

from bookkeeper.access import Mode
from bookkeeper.access.observation import ObservedDenial
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.access_servers import BOOKIE, AccessReport
from tests.bookkeeper.admin.access.clusters import Cluster


def test_without_a_policy_it_says_that_nobody_is_asked(cluster: Cluster) -> None:
    shown = cluster.access()
    assert "mode off: nobody is asked" in shown.out and "0 grants" in shown.out
    assert cluster.document() == {
        "mode": "off",
        "grants": [],
        "tenants": [],
        "quotas": [],
        "changes": [],
        "servers": [],
        "bookies_that_do_not_follow": [],
    }


def test_a_grant_is_listed_and_taken_back_and_the_history_says_who_did_it(cluster: Cluster) -> None:
    assert "granted: etl append,read streams:app" in cluster.access("grant", "etl", "append,read", "streams:app").out
    assert cluster.document()["grants"] == [{"who": "etl", "rights": ["append", "read"], "on": "streams:app"}]
    assert cluster.document("revoke", "etl", "append", "streams:app")["revoked"]["rights"] == ["append"]
    found = cluster.document()
    assert found["grants"] == [{"who": "etl", "rights": ["read"], "on": "streams:app"}]
    assert [each["what"] for each in found["changes"]] == [
        "grant etl append,read streams:app",
        "revoke etl append streams:app",
    ]
    assert all(" on " in each["by"] and each["at_ms"] > 0 for each in found["changes"])
    assert found["changes"][0]["by"] in cluster.access("list").out


def test_what_is_not_granted_cannot_be_taken_back(cluster: Cluster) -> None:
    cluster.access("grant", "etl", "read", "streams:app")
    cluster.access("revoke", "etl", "append,read", "streams:app").refused("there is: etl read streams:app")
    cluster.access("revoke", "etl", "read", "streams:app/x").refused("nothing was changed", "`bk access list`")
    assert len(cluster.document()["changes"]) == 1


@pytest.mark.rule("X12")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("etl", "read", "streams:*"), "there are none: a name covers everything below it"),
        (("etl", "read", "streams:app*"), "there are none"),
        (("etl", "read", "streams:app/"), "ends with '/'"),
        (("etl", "read", "streams:"), "must not be empty"),
        (("etl", "read", "streams:app "), "blanks around it"),
        (("etl", "read", "streams:a%2Fb"), "write the character itself"),
        (("etl", "read", "streams:caf\u0065\u0301"), "composed form"),
        (("etl", "fly", "cluster"), "the rights are append"),
        (("", "read", "cluster"), "must not be empty"),
        (("etl", "read", "app"), "is no resource"),
    ],
)
def test_a_grant_in_another_form_is_refused_and_says_which_form_there_is(
    cluster: Cluster, words: tuple[str, ...], said: str
) -> None:
    cluster.access("grant", *words).refused(said)
    assert cluster.document()["changes"] == []


@pytest.mark.rule("X12")
def test_check_shows_the_grant_that_decided_and_its_status_is_the_answer(cluster: Cluster) -> None:
    cluster.access("grant", "role:writer", "append", "streams:app")
    yes = cluster.access("check", "etl", "append", "streams:app/x", "--role", "writer")
    assert yes.status == 0 and "yes: granted: role:writer append streams:app" in yes.out
    assert "mode is off: nothing is denied" in yes.out
    no = cluster.access("check", "etl", "append", "streams:apple", "--role", "writer")
    assert no.status == 1 and "no grant gives etl the right to append on streams:apple" in no.out
    assert cluster.access("check", "etl", "append", "streams:app").status == 1


def test_a_name_may_do_something_only_if_it_may_however_it_is_shown(cluster: Cluster) -> None:
    cluster.access("grant", "token:etl", "read", "streams:app")
    assert cluster.access("check", "token:etl", "read", "streams:app").status == 0
    shown = cluster.access("check", "etl", "read", "streams:app")
    assert shown.status == 1 and "it depends on how the name is shown" in shown.out
    assert "token: yes: granted: token:etl read streams:app" in shown.out
    cluster.access("check", "role:x", "read", "cluster").refused("--role x")
    assert cluster.access("check", "anyone", "read", "cluster").status == 1


def test_servers_and_bookies_that_do_not_follow_are_shown(cluster: Cluster) -> None:
    async def be_up(metadata: Metadata) -> None:
        report = AccessReport(BOOKIE, "b1:3181", Mode.OBSERVE, "current", 1, (ObservedDenial("x", "add", "y", 1),))
        await metadata.access_servers.publish(report)
        await metadata.store.create(f"{metadata.paths.available}/java:3181", b"", ephemeral=True, parents=True)
        await metadata.store.create(f"{metadata.paths.available}/b1:3181", b"", ephemeral=True, parents=True)
        shown.append(await _later(cluster, "list", "--json"))
        shown.append(await _later(cluster, "list"))

    shown: list[str] = []
    cluster.access("observe")
    cluster.meanwhile(be_up)
    assert '"bookies_that_do_not_follow": ["java:3181"]' in shown[0]
    assert '{"server": "bookie b1:3181", "mode": "observe", "copy": "current", "up_to_date": false}' in shown[0]
    assert "NOT ENFORCED by java:3181: Java's, or of an earlier version" in shown[1]


async def _later(cluster: Cluster, *words: str) -> str:
    """``bk access WORDS`` in a thread of its own, while somebody else has a session."""
    import asyncio

    return (await asyncio.to_thread(cluster.access, *words)).out
