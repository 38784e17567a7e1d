"""The command line of a demo: exit status, what is printed, and where everything goes."""

from __future__ import annotations

import argparse
import io
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from examples.demo_kit.command import Demo, DemoOutcome, run_demo, show


class DemoFailedError(Exception):
    """The demo cannot go on."""


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def demo(outcome: DemoOutcome | BaseException, seen: list[argparse.Namespace] | None = None) -> Demo:
    async def tell(arguments: argparse.Namespace, directory: Path, console: Console) -> DemoOutcome:
        if seen is not None:
            seen.append(arguments)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return Demo(name="x", about="about", sabotage="s", short="s", errors=(DemoFailedError,), tell=tell)


def outcome(good: bool = True, problems: int = 0) -> DemoOutcome:
    told = [f"problem [{number}]" for number in range(problems)]
    return DemoOutcome(rows=[("done", "7")], problems=told, last_line=f"x: {'yes' if good else 'no'}", good=good)


def test_the_last_line_is_the_last_and_the_status_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[argparse.Namespace] = []
    assert run_demo(demo(outcome(), seen), ["--dir", str(tmp_path), "--sabotage"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "x: yes"
    assert (seen[0].sabotage, seen[0].short, seen[0].metadata) == (True, False, "sqlite")
    assert run_demo(demo(outcome(good=False)), ["--dir", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "x: no"


def test_a_demo_that_cannot_go_on_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_demo(demo(DemoFailedError("no java [here]")), ["--dir", str(tmp_path)]) == 2
    assert "x: no java [here]" in capsys.readouterr().out
    assert run_demo(demo(KeyboardInterrupt()), ["--dir", str(tmp_path)]) == 130
    assert "interrupted" in capsys.readouterr().out


def test_the_table_is_followed_by_some_problems_and_the_number_of_the_others() -> None:
    out = io.StringIO()
    show(Console(file=out, width=80), outcome(problems=23), 12.0)
    shown = out.getvalue()
    assert all(text in shown for text in ("12 s", "done", "problem [0]", "problem [19]", "… and 3 more"))
    assert "problem [20]" not in shown
