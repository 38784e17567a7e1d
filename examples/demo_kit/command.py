"""The command line of a demo: arguments, a directory for everything, the story, the table, and the last line."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.console import Console
from rich.table import Table

from bookkeeper.launchers.machine_speed import told
from examples.demo_kit.view import DemoView
from examples.processes import Children

_PROBLEMS_SHOWN: Final = 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """What came of a demo."""

    rows: Sequence[tuple[str, str]]
    """For the table."""
    problems: Sequence[str]
    last_line: str
    good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """One demo, as its command line knows it."""

    name: str
    """``make demo-NAME``."""
    about: str
    sabotage: str
    """What ``--sabotage`` does."""
    short: str
    """What ``--short`` does."""
    errors: tuple[type[Exception], ...]
    """The demo could not go on; the message says why."""
    tell: Callable[[argparse.Namespace, Path, Console], Coroutine[Any, Any, DemoOutcome]]
    """Run the story to its end, with everything in the directory."""


async def among_children(directory: Path, view: DemoView[Any], story: Callable[[Children], Awaitable[T]]) -> T:
    """Show the picture while the story runs. Ends every child, whatever happens."""
    logs = directory / "logs"
    logs.mkdir(parents=True)
    logging.basicConfig(filename=logs / "demo.log", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with view:
        async with Children(logs) as children:
            return await story(children)


def run_demo(demo: Demo, words: Sequence[str] | None = None) -> int:
    """Run it as a program. Returns the exit status: 0 if all is good, 1 if not, 2 if it could not go on."""
    arguments = _arguments(demo, words)
    console = Console()
    directory = (arguments.dir or Path(tempfile.mkdtemp(prefix=f"bk-{demo.name}-"))).resolve()
    _say(console, f"everything is in {directory} (logs in {directory / 'logs'}); it may be deleted afterwards")
    _say(console, told())
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    began = time.monotonic()
    try:
        outcome = asyncio.run(demo.tell(arguments, directory, console))
    except KeyboardInterrupt:
        _say(console, f"interrupted; every child process has been ended, and {directory} may be deleted")
        return 130
    except demo.errors as error:
        console.print(f"{demo.name}: {error}", style="red", highlight=False, soft_wrap=True, markup=False)
        return 2
    show(console, outcome, time.monotonic() - began)
    _say(console, f"nothing needs {directory} any more: rm -r {directory}")
    print(outcome.last_line, flush=True)
    return 0 if outcome.good else 1


def show(console: Console, outcome: DemoOutcome, seconds: float) -> None:
    """The table, and what is wrong."""
    table = Table(title="what was done, and what came of it", title_justify="left", show_header=False)
    table.add_row("time", f"{seconds:.0f} s")
    for row in outcome.rows:
        table.add_row(*row)
    console.print(table)
    for line in outcome.problems[:_PROBLEMS_SHOWN]:
        _say(console, f"  {line}")
    if len(outcome.problems) > _PROBLEMS_SHOWN:
        _say(console, f"  … and {len(outcome.problems) - _PROBLEMS_SHOWN} more")


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False)


def _arguments(demo: Demo, words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"make demo-{demo.name}", description=demo.about)
    parser.add_argument("--metadata", choices=["sqlite", "zk"], default="sqlite", help="where the metadata live")
    parser.add_argument("--sabotage", action="store_true", help=demo.sabotage)
    parser.add_argument("--short", action="store_true", help=demo.short)
    parser.add_argument("--dir", type=Path, help="a fresh directory for everything [default: a temporary one]")
    return parser.parse_args(words)
