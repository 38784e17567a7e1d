"""The live picture of any demo. What a demo adds is tested with the demo."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

from examples.demo_kit.view import DemoPicture, DemoView


class CounterView(DemoView[DemoPicture]):
    title = "counting"
    shown = 2

    def summary(self) -> str:
        return f"{len(self.picture.happened)} things happened"

    def rows(self) -> list[RenderableType]:
        return ["a row"]


def test_elsewhere_what_happens_is_a_line_and_the_summary_comes_now_and_then() -> None:
    out = io.StringIO()
    picture = DemoPicture()
    with CounterView(picture, Console(file=out, width=80)) as view:
        view.waits("something")
        assert picture.waits_for == "something"
        view.happened("it [came]")
        assert picture.waits_for == ""
        picture.began -= 100
        view.looked()
        view.looked()
    lines = [line.partition(" s  ")[2] for line in out.getvalue().splitlines()]
    summary = "1 things happened"
    assert lines == ["waiting: something ...", "it [came]", f"  {summary}", summary]


def test_on_a_terminal_the_newest_of_the_story_are_below_the_rows() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    view = CounterView(DemoPicture(), console)
    for text in ("first", "second", "third"):
        view.happened(text)
    view.waits("more")
    with console.capture() as captured:
        console.print(view.draw())
    shown = captured.get()
    assert all(text in shown for text in ("counting", "a row", "second", "third", "s: more ..."))
    assert "first" not in shown
