from __future__ import annotations

import io

from rich.console import Console

from examples.demo_pipeline.view import PipelinePicture, PipelineView


def picture() -> PipelinePicture:
    return PipelinePicture(
        processes={"driver1": "killed", "g1": "active"},
        flights=1000,
        flights_in_all=4000,
        planned=4,
        committed=3,
        trigger_ms=812,
        state_rows=77,
        segments={"pipeline/flights": 2},
    )


def test_the_summary_has_what_was_done_and_what_runs() -> None:
    assert PipelineView(picture(), Console(file=io.StringIO())).summary() == (
        "1000 of 4000 flights appended; batch 3 committed, 77 groups in Spark's state; pipeline/flights 2 segments; "
        "driver1 killed, g1 active"
    )


def test_the_table_shows_how_far_the_flights_are() -> None:
    console = Console(file=io.StringIO(), width=160)
    view = PipelineView(picture(), console)
    with console.capture() as captured:
        console.print(view.draw())
    shown = captured.get()
    expected = ("1,000 of 4,000 appended (25%)", "planned 4, committed 3; the last took 812 ms", "driver1: killed")
    assert all(text in shown for text in expected)
