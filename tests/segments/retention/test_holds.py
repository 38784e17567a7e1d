"""Holds: what they cover, when they end, and how they are stored."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from segments.errors import HoldNotFoundError, StreamConfigError, StreamCorruptError
from segments.position import EARLIEST, LATEST, Position
from segments.protocol.report_messages import get_hold, put_hold
from segments.retention.checked_json import pack_json
from segments.retention.holds import HOLDS_MAX, NOTE_MAX, Hold, Holds, first_held


def at(segment: int, entry: int = 0, slot: int = 0) -> Position:
    return Position(segment, entry, slot)


def test_a_hold_covers_from_its_start_up_to_its_stop() -> None:
    hold = Hold("audit", at(2, 5), at(4))
    assert hold.touches(at(2), at(3)) and hold.touches(at(3), at(4)) and hold.touches(at(2, 5), at(2, 6))
    assert not hold.touches(at(1), at(2)) and not hold.touches(at(2), at(2, 5)) and not hold.touches(at(4), at(5))
    assert Hold("rest", at(3)).touches(at(100), LATEST)


def test_a_hold_ends_at_its_time_and_without_one_never() -> None:
    hold = Hold("query", EARLIEST, LATEST, until_ms=1000, note="report 7")
    assert hold.is_active(999) and not hold.is_active(1000)
    assert Hold("query").is_active(10**15) and Hold("query").until is None
    assert hold.until == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert hold.says() == "hold query until 1970-01-01 00:00:01 UTC (report 7)"


def test_holds_are_put_moved_released_and_swept() -> None:
    holds = Holds().put(Hold("b", at(2), until_ms=10), EARLIEST).put(Hold("a", at(3)), EARLIEST)
    assert [hold.name for hold in holds] == ["b", "a"] and len(holds) == 2
    moved = holds.put(Hold("b", at(5)), EARLIEST)
    assert [hold.name for hold in moved] == ["a", "b"] and len(moved) == 2
    assert [hold.name for hold in holds.active(10)] == ["a"]
    assert [hold.name for hold in holds.sweep(10)] == ["a"]
    assert [hold.name for hold in holds.release("a")] == ["b"]
    with pytest.raises(HoldNotFoundError, match="no hold named c"):
        holds.release("c")


def test_a_hold_cannot_begin_before_the_stream_does() -> None:
    with pytest.raises(StreamConfigError, match="the stream at 3:0:0"):
        Holds().put(Hold("late", at(2)), at(3))
    assert next(iter(Holds().put(Hold("all"), at(3)))).start == at(3)


LONG = Hold("long", note="n" * (NOTE_MAX + 1))


@pytest.mark.parametrize("hold", [Hold(""), Hold("x" * 201), Hold("a\nb"), Hold("empty", at(3), at(3)), LONG])
def test_a_hold_that_cannot_be_is_refused(hold: Hold) -> None:
    with pytest.raises(StreamConfigError):
        Holds().put(hold, EARLIEST)
    assert Holds.decode(Holds({"long": LONG}).encode()).by_name == {"long": LONG}, "one of an earlier version stays"
    assert len(Holds().put(Hold("short", note="n" * NOTE_MAX), EARLIEST)) == 1


def test_there_is_a_bound() -> None:
    full = Holds({str(number): Hold(str(number)) for number in range(HOLDS_MAX)})
    with pytest.raises(StreamConfigError, match="at most"):
        full.put(Hold("one more"), EARLIEST)
    assert len(full.put(Hold("7", at(9)), EARLIEST)) == HOLDS_MAX


def test_the_lowest_hold_of_a_range_is_found() -> None:
    holds = [Hold("far", at(9)), Hold("near", at(4), at(5)), Hold("over", at(1), until_ms=5)]
    found = first_held(holds, 5, at(2), at(20))
    assert found is not None and found.name == "near"
    assert first_held(holds, 5, at(5), at(9)) is None


def test_holds_are_stored_and_read_and_damage_is_noticed() -> None:
    holds = Holds().put(Hold("a", at(2, 3, 4), LATEST, 77, 5, "why"), EARLIEST).put(Hold("b", at(2), at(3)), EARLIEST)
    assert Holds.decode(holds.encode()) == holds
    assert Holds.decode(Holds().encode()) == Holds()
    with pytest.raises(StreamCorruptError):
        Holds.decode(holds.encode().replace(b'"a"', b'"c"'))


def test_who_put_it_is_kept_and_earlier_versions_do_not_look_at_it() -> None:
    holds = Holds().put(Hold("a", at(2), by="etl"), EARLIEST).put(Hold("b", at(3)), EARLIEST)
    assert Holds.decode(holds.encode()) == holds
    assert [hold.by for hold in Holds.decode(holds.encode())] == ["etl", ""]
    assert holds.encode().count(b'"by"') == 1, "a hold of nobody is stored as earlier versions store it"
    assert holds.by_name["a"].says() == "hold a by etl"
    assert next(iter(Holds().put(Hold("all", by="etl"), at(3)))).by == "etl"


@pytest.mark.parametrize("field", ["name", "start", "stop", "until_ms", "created_ms", "note", "by"])
@pytest.mark.parametrize(
    "odd", [None, True, -(10**18), 10**30, 1.5, float("inf"), float("nan"), "\N{SNOWMAN}", [], {}], ids=repr
)
def test_whatever_somebody_has_written_there_is_read_or_is_corrupt(field: str, odd: object) -> None:
    """Cause: who writes the metadata put a number without end into a hold, with a good checksum, and the pass of
    retention that met it ended with an error of Python's."""
    line = json.loads(Holds().put(Hold("a", at(2), until_ms=5, note="why", by="etl"), EARLIEST).encode())["value"][0]
    data = pack_json(1, [{**line, field: odd}])
    try:
        found = Holds.decode(data)
    except StreamCorruptError:
        return
    assert found.sweep(10**15) == Holds() or field == "until_ms"
    for hold in found:
        assert hold.says().startswith("hold ") and get_hold(put_hold(hold)) == hold


@pytest.mark.parametrize("value", [None, 5, "x", {}, [5], [None], [[]]])
def test_what_is_no_list_of_holds_is_corrupt_or_none(value: object) -> None:
    if value == {}:
        assert Holds.decode(pack_json(1, value)) == Holds()
        return
    with pytest.raises(StreamCorruptError):
        Holds.decode(pack_json(1, value))
