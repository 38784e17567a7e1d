"""Every race of rolls, failures, take-overs and the end, on a stream whose ledgers are lists."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.outcome import Outcome
from segments.errors import StreamClosedError
from segments.write.segment.rolling import RollLimits, RollReason
from segments.write.segment.segment_machine import Failover, SegmentMachine, outcome_of_rest, take_found, unsent

LIMITS = RollLimits(records_max=5, idle_max_s=60)

events = st.lists(
    st.tuples(
        st.sampled_from(
            ["group"] * 4 + ["durable"] * 3 + ["fail", "change", "finish", "ask", "put off", "owner", "end"]
        ),
        st.integers(0, 6),
    ),
    max_size=80,
)


@dataclass
class Sent:
    group: int
    entry: int
    is_last: bool = True


@dataclass
class Story:
    """A writer with a clock of its own. A group is a number; ``log`` is what the ledgers hold, in order."""

    machine: SegmentMachine = field(default_factory=lambda: SegmentMachine(LIMITS))
    under_way: deque[Sent] = field(default_factory=deque)
    log: list[int] = field(default_factory=list)
    told: dict[int, Outcome] = field(default_factory=dict)
    groups: int = 0
    records: int = 0
    now: float = 0.0
    change: Failover | RollReason | None = None

    def open(self, again: deque[Sent]) -> None:
        self.machine.on_open(self.machine.number + 1, self.now, 0.5)
        self.under_way, self.records = deque(), 0
        for sent in again:
            self.write(sent.group)
        while (group := self.machine.next_waiting()) is not None:
            self.write(group)

    def write(self, group: int) -> None:
        self.under_way.append(Sent(group, self.records))
        self.records += 1
        self.machine.rolling.on_records(self.now)

    def durable(self, sent: Sent) -> None:
        assert sent.group not in self.told
        self.log.append(sent.group)
        self.told[sent.group] = Outcome.APPLIED

    def recover(self, kept: int) -> int:
        """Some of the entries under way are in the ledger after all."""
        last = (self.under_way[0].entry if self.under_way else self.records) - 1 + min(kept, len(self.under_way))
        for sent in take_found(self.under_way, last):
            self.durable(sent)
        return last

    def step(self, what: str, number: int) -> None:
        machine = self.machine
        self.now += number / 100
        if what == "group":
            if machine.ended is not None:
                self.told[self.groups] = Outcome.REJECTED
            elif machine.take(self.groups):
                self.write(self.groups)
            self.groups += 1
        elif what == "durable" and self.under_way and machine.ended is None:
            self.durable(self.under_way.popleft())
        elif what == "fail":
            current = machine.number - number % 2
            assert machine.on_failed(current) == (current == machine.number)
        elif what == "ask":
            empty = not self.records and self.change is None
            assert machine.request_roll(self.records) != empty
        elif what == "change" and self.change is None and machine.begin_change():
            self.change = machine.next_change(self.now, self.records, 0)
            if self.change is None:
                machine.end_change()
            elif isinstance(self.change, RollReason) and number % 2:
                machine.stop()
        elif what == "put off" and isinstance(self.change, RollReason) and machine.is_open:
            machine.rolling.put_off(self.now)
            assert machine.next_change(self.now, self.records, 0) is None
            self.done()
        elif what == "finish" and self.change is not None and machine.ended is None:
            self.finish(number)
        elif what in ("owner", "end") and machine.ended is None:
            self.end(number if what == "owner" else None)

    def finish(self, kept: int) -> None:
        """The change comes to its end; where the ledger failed meanwhile the segment is replaced instead of rolled."""
        if self.machine.next_change(self.now, self.records, 0) is Failover.REPLACE:
            self.recover(kept)
        else:
            self.machine.stop()
            self.recover(len(self.under_way))
        self.open(self.under_way)
        self.done()

    def done(self) -> None:
        self.change = None
        self.machine.end_change()

    def end(self, kept: int | None) -> None:
        """Another owner has the stream, and found so much; or nobody knows."""
        machine = self.machine
        assert machine.end(error := StreamClosedError("over")) and not machine.end(StreamClosedError("again"))
        assert machine.ended is error
        last = None if kept is None else self.recover(kept)
        for sent in self.under_way:
            self.told[sent.group] = outcome_of_rest(last)
        while (group := machine.next_waiting()) is not None:
            self.told[group] = Outcome.REJECTED

    def check(self) -> None:
        machine = self.machine
        assert self.log == sorted(set(self.log))  # each once, in order
        known = [*self.told, *(sent.group for sent in self.under_way if sent.group not in self.told)]
        assert len(known) == len(set(known)) and len(known) + machine.waiting == self.groups
        if machine.ended is not None:
            assert not machine.is_open and not machine.waiting and not machine.begin_change()
            assert machine.next_change(self.now, self.records, 0) is None
            assert machine.wake_at(self.records, 0) is None
        assert not (machine.is_open and machine.waiting)


@given(events)
def test_each_group_is_in_the_stream_once_in_order_or_refused_whatever_happens_when(
    steps: list[tuple[str, int]],
) -> None:
    story = Story()
    story.step("group", 0)  # before the first segment
    story.open(deque())
    for step in steps:
        story.step(*step)
        story.check()
    if story.machine.ended is None:
        story.end(0)
    story.check()
    assert sorted(story.told) == list(range(story.groups))
    applied = [group for group in sorted(story.told) if story.told[group] is Outcome.APPLIED]
    assert applied == story.log


def test_a_failed_segment_is_replaced_whatever_else_is_due() -> None:
    machine = SegmentMachine(LIMITS)
    machine.on_open(1, 0, 0)
    assert machine.request_roll(1) and machine.next_change(0, 1, 0) is RollReason.ASKED
    assert (machine.on_failed(0), machine.is_open) == (False, True)
    assert machine.on_failed(1)
    assert (machine.is_open, machine.next_change(0, 1, 0)) == (False, Failover.REPLACE)
    machine.on_open(2, 0, 0)
    assert (machine.is_open, machine.next_change(0, 1, 0), machine.wake_at(1, 0)) == (True, None, 60)


def test_one_change_at_a_time_and_none_behind_the_end() -> None:
    machine = SegmentMachine(LIMITS)
    machine.on_open(1, 0, 0)
    assert not machine.request_roll(0) and machine.begin_change() and not machine.begin_change()
    assert machine.request_roll(0)  # the change that is under way may end it
    machine.end_change()
    assert machine.begin_change()
    machine.end_change()
    machine.close()
    assert not machine.begin_change() and not machine.is_open
    assert not machine.take("late") and machine.waiting == 1


def test_what_comes_while_a_segment_is_being_ended_waits_for_the_next_one() -> None:
    machine = SegmentMachine(LIMITS)
    machine.on_open(1, 0, 0)
    assert machine.take("first")
    machine.stop()
    assert [machine.take("second"), machine.take("third"), machine.waiting] == [False, False, 2]
    machine.on_open(2, 0, 0)
    assert [machine.next_waiting(), machine.next_waiting(), machine.next_waiting()] == ["second", "third", None]
    assert machine.take("fourth")


def test_a_group_may_be_in_the_stream_only_if_its_last_entry_was_sent() -> None:
    pieces = [Sent(1, 0, is_last=False), Sent(1, 1, is_last=False)]
    assert unsent([]) and unsent(pieces) and not unsent([*pieces, Sent(1, 2)])
