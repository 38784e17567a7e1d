"""When the writer is woken."""

from __future__ import annotations

from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.write.alarm import Alarm
from bookkeeper.ledger.write.effects import Effect


def test_only_an_earlier_time_is_told_and_after_it_rang_any_time() -> None:
    alarm, effects = Alarm(), list[Effect]()
    for time in (5.0, 7.0, 5.0, 3.0):
        alarm.wake_by(time, effects)
    assert (effects, alarm.at) == ([WakeAt(5.0), WakeAt(3.0)], 3.0)
    alarm.on_tick()
    assert alarm.at is None
    alarm.wake_by(7.0, effects)
    assert effects[2:] == [WakeAt(7.0)]
