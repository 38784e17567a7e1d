"""Callers pause while any volume has too much to write."""

from __future__ import annotations

from bookkeeper.ids import LedgerId
from bookkeeper.volumes.members.pressure import Pressure
from tests.bookkeeper.storage.workload import KEY, make_entry
from tests.bookkeeper.volumes.doors import Door


def test_callers_pause_while_any_volume_has_too_much_to_write() -> None:
    door, said = Door(), list[str]()
    door.volumes.on_pressure(lambda: said.append("pause"), lambda: said.append("resume"))
    for ledger in (1, 2):
        for entry in range(100):
            door.volumes.append_entry(LedgerId(ledger), KEY, make_entry(ledger, entry, size=2000))
    assert {door.volumes.placements.volume_of(ledger) for ledger in (1, 2)} == {1, 2}
    door.volumes.when_durable(lambda error: None)
    assert "pause" in said and "resume" not in said
    door.pump()
    assert said[-1] == "resume" and said.count("resume") == 1, "when the last of them has caught up"


def test_callers_go_on_when_the_last_volume_has_caught_up() -> None:
    pressure, said = Pressure(), list[str]()
    pressure.on_change(lambda: said.append("pause"), lambda: said.append("resume"))
    pressure.begin(1)
    pressure.begin(2)
    pressure.end(1)
    assert said == ["pause", "pause"]
    pressure.end(2)
    assert said == ["pause", "pause", "resume"]
