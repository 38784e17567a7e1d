"""What each server does with the access policy."""

from __future__ import annotations

import pytest

from bookkeeper.access import Mode
from bookkeeper.access.observation import ObservedDenial
from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import BookieId
from bookkeeper.meta.records.access_servers import BOOKIE, AccessReport, AccessServers
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore

REPORT = AccessReport(
    BOOKIE, "b1:3181", Mode.ENFORCE, "current", 7, (ObservedDenial("etl", "add", "streams:app", 3),), 2
)


def test_a_report_reads_back_as_it_was_written() -> None:
    assert AccessReport.decode(REPORT.encode()) == REPORT
    assert AccessReport.decode(REPORT.encode()[:-1] + b', "later": 1}') == REPORT


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", REPORT.encode().replace(b"enforce", b"maybe")])
def test_what_is_no_report_is_said(data: bytes) -> None:
    with pytest.raises(MetadataFormatError, match="report of access"):
        AccessReport.decode(data)


async def test_one_that_cannot_be_read_hides_no_other(store: MetadataStore) -> None:
    servers = AccessServers(store, Paths())
    assert await servers.reports() == []
    await servers.publish(REPORT)
    await store.create("/ledgers-py/access/servers/odd", b"rubbish")
    assert await servers.reports() == [REPORT]
    assert await servers.is_published(BOOKIE, "b1:3181") and not await servers.is_published(BOOKIE, "b2:3181")
    assert await servers.without_report([BookieId("b1:3181"), BookieId("b2:3181")]) == ["b2:3181"]
    await servers.withdraw(BOOKIE, "b1:3181")
    assert await servers.reports() == []


async def test_a_gateway_with_a_path_in_its_name_has_one_value(store: MetadataStore) -> None:
    servers = AccessServers(store, Paths())
    gateway = AccessReport("webhdfs gateway", "http://gw/a b", Mode.OFF, "none", 0)
    await servers.publish(gateway)
    assert await servers.reports() == [gateway]
