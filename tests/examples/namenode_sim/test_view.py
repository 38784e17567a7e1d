"""What is shown."""

from __future__ import annotations

import io

from rich.console import Console

from examples.namenode_sim.view import NameNodePicture, NameNodeView

STATUS = {"role": "active", "txid": 1234, "answered": 9, "repeated": 2, "offered": 0, "adopted": 3, "fenced": 1}


def picture() -> NameNodePicture:
    return NameNodePicture(replicas={"nn1": STATUS, "nn2": {"role": "silent"}}, acknowledged=77, checkpoints=(300, 600))


def test_without_a_terminal_everything_that_happens_is_a_line() -> None:
    out = io.StringIO()
    shown = picture()
    view = NameNodeView(shown, Console(file=out, width=60))
    with view:
        view.waits("nn2 answers")
        view.happened("nn1 was [killed]")
        shown.began -= 100
        view.looked()
        view.looked()
    lines = out.getvalue().splitlines()
    assert [line.partition(" s  ")[2] for line in lines[:2]] == ["waiting: nn2 answers ...", "nn1 was [killed]"]
    assert sum("77 requests acknowledged" in line for line in lines) == 2, "once while it runs, once at the end"
    assert "2 checkpoints, 0 segments; nn1 active at edit 1234, nn2 silent" in lines[2]


def test_the_table_shows_both_replicas_and_what_is_waited_for() -> None:
    console = Console(file=io.StringIO(), width=200)
    view = NameNodeView(picture(), console)
    view.waits("nothing")
    with console.capture() as captured:
        console.print(view.draw())
    shown = captured.get()
    expected = ("nn1", "active", "edit 1,234", "fenced 1 time", "nn2", "silent", "300, 600", "s: nothing ...")
    assert all(text in shown for text in expected)
