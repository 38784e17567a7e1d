"""docs/metrics.md is what servers show."""

from __future__ import annotations

from bookkeeper.autorecovery.apache_names import NAMES as REPLICATION
from bookkeeper.bookie.health.apache_names import NAMES
from tests.boards.deployed import alarms
from tests.boards.metrics_page import COUNTERPARTS, PAGE, page
from tests.boards.shown_metrics import metrics, shown


def test_the_page_is_what_servers_show() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m tests.boards.metrics_page"


def test_every_metric_says_what_it_is() -> None:
    assert [name for name, each in metrics().items() if not each.text] == []


def test_counterparts_are_metrics_of_ours_and_names_of_apache_s() -> None:
    assert COUNTERPARTS.keys() <= shown() | metrics().keys()
    known = {*NAMES, *REPLICATION}
    assert {
        name for name in COUNTERPARTS.values() if name not in known and name.rpartition("_")[0] not in known
    } == set()


def test_an_alarm_stands_beside_each_metric_that_it_asks_for() -> None:
    text = PAGE.read_text()
    asked = [each.name for each in alarms() if "up{" not in each.query and "_SERVER_STATUS" not in each.query]
    apache = {"AddsSlow", "JournalSlow", "ReadsFail"}
    assert [name for name in asked if name not in apache and f"`{name}`" not in text] == []
