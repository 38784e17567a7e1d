"""The drawing of a ledger: boxes lie where they should, and show what is lacking."""

from __future__ import annotations

import itertools

from bookkeeper.console.drawing import FRAGMENTS, GAPS, NAMES_WIDTH, WIDTH, drawing_of
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import QuorumSpec
from bookkeeper.replication.inspection.explain import CopyState, ExplainedCopy, ExplainedRange, explain_range

SPEC = QuorumSpec(ensemble_size=2, write_quorum=2, ack_quorum=2)
PLACES = {BookieId("b1"): "/rack2", BookieId("b2"): "/rack1", BookieId("b3"): "/rack1"}


def fragment(first: int, end: int | None, *copies: ExplainedCopy) -> ExplainedRange:
    return explain_range(SPEC, EntryId(first), None if end is None else EntryId(end), True, copies)


def copy(bookie: str, state: CopyState = CopyState.SEEN, *lacks: range) -> ExplainedCopy:
    return ExplainedCopy(BookieId(bookie), state, sum(map(len, lacks)), lacks)


def test_bookies_stand_by_rack_and_each_copy_in_its_row_and_column() -> None:
    ranges = [
        fragment(0, 99, copy("b1"), copy("b2", CopyState.GONE)),
        fragment(100, 999, copy("b1"), copy("b3", CopyState.BELIEVED)),
    ]
    drawing = drawing_of(ranges, PLACES)
    rows = {label.text: label.y for label in drawing.names}
    assert list(rows) == ["b2  /rack1", "b3  /rack1", "b1  /rack2"]
    assert [label.text for label in drawing.heads] == ["0", "100"]
    kinds = [(box.kind, box.text) for box in drawing.boxes]
    assert kinds == [("seen", "✓"), ("gone", "✗"), ("seen", "✓"), ("believed", "?")]
    first, gone, second, _ = drawing.boxes
    assert 0 < first.x == gone.x < NAMES_WIDTH and first.x + first.width < second.x and first.y == second.y != gone.y
    assert second.width > first.width > 0 and abs(second.x + second.width - WIDTH) < 1
    assert all(box.y < rows[name] < box.y + box.height for box, name in ((first, "b1  /rack2"), (gone, "b2  /rack1")))
    assert drawing.text == "2 fragments with 4 copies: 2 seen, 1 believed, 1 gone"


def test_what_lacks_is_marked_where_it_is() -> None:
    lacking = copy("b1", CopyState.LACKING, range(50, 60), range(90, 100))
    drawing = drawing_of([fragment(0, 99, lacking, copy("b2"))], PLACES)
    box = drawing.boxes[0]
    assert box.text == "−20" and "lacks 20 entries" in box.title
    assert [round((gap.x - box.x) / box.width, 2) for gap in drawing.gaps] == [0.5, 0.9]
    assert all(abs(gap.width - box.width / 10) < 0.2 for gap in drawing.gaps)


def test_very_many_gaps_run_together_and_stay_inside() -> None:
    lacking = copy("b1", CopyState.LACKING, *(range(n, n + 1) for n in range(0, 4000, 2)))
    drawing = drawing_of([fragment(0, 3999, lacking, copy("b2"))], PLACES)
    box = drawing.boxes[0]
    assert 0 < len(drawing.gaps) <= GAPS
    assert all(box.x <= gap.x and gap.x + gap.width <= box.x + box.width + 1 for gap in drawing.gaps)


def test_as_many_fragments_as_are_shown_do_not_overlap_and_stay_on_the_drawing() -> None:
    ranges = [fragment(n, n, copy("b1"), copy("b2")) for n in range(FRAGMENTS - 2)]
    ranges.append(fragment(FRAGMENTS - 2, 10**12, copy("b1"), copy("b2")))
    ranges.append(fragment(10**12 + 1, None, copy("b1"), copy("b3")))
    drawing = drawing_of(ranges, PLACES)
    boxes = sorted((box for box in drawing.boxes if box.title.startswith("b1")), key=lambda box: box.x)
    assert len(boxes) == FRAGMENTS
    assert all(a.x + a.width <= b.x for a, b in itertools.pairwise(boxes))
    assert WIDTH < boxes[-1].x + boxes[-1].width <= drawing.width


def test_a_ledger_without_entries_has_a_box_too() -> None:
    drawing = drawing_of([fragment(0, -1, copy("b1"), copy("b2"))], PLACES)
    assert len(drawing.boxes) == 2 and all(box.width > 0 for box in drawing.boxes)
