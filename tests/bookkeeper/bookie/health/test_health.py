"""What the pages say of a bookie: of use, found by clients, and how it is."""

from __future__ import annotations

from dataclasses import replace

from bookkeeper.bookie.health.health import BookieHealth, health, liveness, readiness

WELL = BookieHealth(
    bookie_id="b1",
    boot=3,
    running=True,
    disk="writable",
    failed=False,
    read_only=False,
    registered=True,
    metadata="connected",
    without_metadata_s=None,
)
CUT_OFF = replace(WELL, registered=False, metadata="suspended", without_metadata_s=12.3)


def statuses(condition: BookieHealth) -> tuple[str, str, str]:
    return tuple(page(condition)["status"] for page in (health, liveness, readiness))


def test_a_bookie_that_serves_and_is_registered_is_well() -> None:
    assert statuses(WELL) == ("ok", "ok", "ok")
    assert (health(WELL)["state"], health(WELL)["sentences"]) == ("writable", [])


def test_without_the_metadata_service_a_bookie_is_live_but_not_ready_and_does_not_say_that_it_is_writable() -> None:
    """The page went by the disk alone: with the metadata service gone it said writable for ever."""
    assert statuses(CUT_OFF) == ("ok", "ok", "unregistered")
    shown = health(CUT_OFF)
    assert (shown["state"], shown["disk"], shown["metadata"]) == ("unregistered", "writable", "suspended")
    assert shown["seconds_without_metadata"] == 12.3
    assert "no contact with the metadata store for 12 s" in shown["sentences"][0]


def test_a_failed_disk_and_a_stop_go_before_everything_else() -> None:
    for condition in (WELL, CUT_OFF):
        assert statuses(replace(condition, failed=True)) == ("failed", "failed", "failed")
        assert statuses(replace(condition, running=False)) == ("stopping", "stopping", "stopping")


def test_a_read_only_bookie_is_ready() -> None:
    read_only = replace(WELL, read_only=True)
    assert statuses(read_only) == ("ok", "ok", "ok")
    assert (health(read_only)["state"], readiness(read_only)["read_only"]) == ("read-only", True)


def test_what_is_not_as_it_should_be_is_said_in_sentences() -> None:
    condition = replace(
        WELL, registered=False, limbo="the journal is gone", nothing_is_collected="M", doing=("A.", "B.")
    )
    said = health(condition)["sentences"]
    assert "not registered" in said[0]
    assert "the journal is gone" in said[1]
    assert said[2].endswith("not collected: M")
    assert said[3:] == ["A.", "B."]
