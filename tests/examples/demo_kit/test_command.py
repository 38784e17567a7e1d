"""The command line of a demo: exit status, what is printed, and where everything goes."""

from __future__ import annotations

import argparse
import io
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from examples.demo_kit.cluster import DemoError
from examples.demo_kit.command import Demo, run_demo, show
from examples.demo_kit.story import DemoPlan, DemoStory
from examples.demo_kit.view import DemoPicture, DemoView
from examples.processes import Children


@dataclass
class Verdict:
    good: bool = True
    problems: tuple[str, ...] = ()


class View(DemoView[DemoPicture]):
    def summary(self) -> str:
        return "so far"

    def rows(self) -> list[RenderableType]:
        return []


class Story(DemoStory[DemoPlan, View, int, Verdict]):
    def __init__(self, directory: Path, children: Children, console: Console, end: Verdict | BaseException) -> None:
        super().__init__(DemoPlan(directory=directory, pause_s=0.0), children, View(DemoPicture(), console), 7)
        self.end = end

    async def start(self) -> None:
        """Nothing has to be up."""

    async def judge(self) -> Verdict:
        if isinstance(self.end, BaseException):
            raise self.end
        return self.end


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def demo(end: Verdict | BaseException, seen: list[argparse.Namespace] | None = None) -> Demo:
    def story(arguments: argparse.Namespace, directory: Path, children: Children, console: Console) -> Story:
        if seen is not None:
            seen.append(arguments)
        return Story(directory, children, console, end)

    def rows(found: Verdict, facts: int) -> list[tuple[str, str]]:
        return [("done", f"{facts}")]

    def last_line(found: Verdict, facts: int) -> str:
        return f"x: {'yes' if found.good else 'no'}"

    return Demo(name="x", about="about", sabotage="s", short="s", story=story, rows=rows, last_line=last_line)


def test_the_last_line_is_the_last_and_the_status_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[argparse.Namespace] = []
    assert run_demo(demo(Verdict(), seen), ["--dir", str(tmp_path / "good"), "--sabotage"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "x: yes"
    assert (seen[0].sabotage, seen[0].short, seen[0].metadata) == (True, False, "sqlite")
    assert run_demo(demo(Verdict(good=False)), ["--dir", str(tmp_path / "bad")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "x: no"


def test_a_demo_that_cannot_go_on_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_demo(demo(DemoError("no java [here]")), ["--dir", str(tmp_path / "stuck")]) == 2
    assert "x: no java [here]" in capsys.readouterr().out
    assert run_demo(demo(KeyboardInterrupt()), ["--dir", str(tmp_path / "interrupted")]) == 130
    assert "interrupted" in capsys.readouterr().out


def test_the_table_is_followed_by_some_problems_and_the_number_of_the_others() -> None:
    out = io.StringIO()
    show(Console(file=out, width=80), [("done", "7")], [f"problem [{number}]" for number in range(23)], 12.0)
    shown = out.getvalue()
    assert all(text in shown for text in ("12 s", "done", "problem [0]", "problem [19]", "… and 3 more"))
    assert "problem [20]" not in shown
