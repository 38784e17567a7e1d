"""``bk autorecovery``: status and switches. (The process itself: tests/bookkeeper/autorecovery/test_process.py.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bookkeeper.admin.commands import bk


@pytest.fixture
def uri(tmp_path: Path) -> str:
    made = f"sqlite://{tmp_path}/metadata.db"
    assert bk("init", "-m", made).status == 0
    return made


def test_a_cluster_without_an_auditor_says_how_to_get_one(uri: str) -> None:
    shown = bk("autorecovery", "status", "-m", uri)
    assert shown.status == 0 and "auditor: none; run `bk autorecovery`" in shown.out
    assert "last check of all ledgers: not yet" in shown.out and "under-replicated: 0 ledgers" in shown.out


def test_it_is_switched_off_and_on_for_the_cluster(uri: str) -> None:
    assert "autorecovery is disabled" in bk("autorecovery", "disable", "-m", uri).out
    assert bk("autorecovery", "status", "-m", uri, "--json").document["enabled"] is False
    assert "DISABLED" in bk("autorecovery", "status", "-m", uri).out
    assert "autorecovery is enabled" in bk("autorecovery", "enable", "-m", uri).out
    assert bk("autorecovery", "status", "-m", uri, "--json").document["enabled"] is True


def test_to_trigger_what_nobody_hears_is_refused(uri: str) -> None:
    bk("autorecovery", "trigger", "-m", uri).refused("there is no auditor", "bk autorecovery")


def test_a_setting_that_makes_no_sense_is_refused_before_anything_begins(uri: str) -> None:
    bk("autorecovery", "-m", uri, "--parallel", "0").refused("--parallel", status=2)
    bk("autorecovery", "-m", uri, "--throttle", "fast").refused("is not a number of bytes", status=2)
