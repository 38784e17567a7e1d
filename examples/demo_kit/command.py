"""The command line of a demo: arguments, a directory for everything, the story, the table, and the last line."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bookkeeper.launchers.machine_speed import speed_text
from examples.demo_kit.cluster import DemoError
from examples.demo_kit.story import DemoStory
from examples.processes import Children

_PROBLEMS_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """One demo, as its command line knows it."""

    name: str
    """``make demo-NAME``; of the first one ``demo`` alone."""
    about: str
    sabotage: str
    """What ``--sabotage`` does."""
    story: Callable[[argparse.Namespace, Path, Children, Console], DemoStory[Any, Any, Any, Any]]
    """The story as a person has chosen it, with everything in the directory."""
    rows: Callable[[Any, Any], Sequence[tuple[str, str]]]
    """The table of a verdict and the story's facts."""
    last_line: Callable[[Any, Any], str]
    """The one line that says it."""
    short: str = ""
    """What ``--short`` does; empty: there is none."""
    options: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    """Adds what only this demo lets a person choose."""


async def tell(demo: Demo, arguments: argparse.Namespace, directory: Path, console: Console) -> tuple[Any, Any]:
    """Tell the story to its end: the verdict, and the facts. Ends every child, whatever happens."""
    logs = directory / "logs"
    logs.mkdir(parents=True)
    logging.basicConfig(filename=logs / "demo.log", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    children = Children(logs)
    story = demo.story(arguments, directory, children, console)
    with story.view:
        async with children:
            return await story.run(), story.facts


def run_demo(demo: Demo, words: Sequence[str] | None = None) -> int:
    """Run it as a program. Returns the exit status: 0 if all is good, 1 if not, 2 if it could not go on."""
    arguments = _arguments(demo, words)
    console = Console()
    directory = (arguments.dir or Path(tempfile.mkdtemp(prefix=f"bk-{demo.name}-"))).resolve()
    _say(console, f"everything is in {directory} (logs in {directory / 'logs'}); it may be deleted afterwards")
    _say(console, speed_text())
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    began = time.monotonic()
    try:
        found, facts = asyncio.run(tell(demo, arguments, directory, console))
    except KeyboardInterrupt:
        _say(console, f"interrupted; every child process has been ended, and {directory} may be deleted")
        return 130
    except DemoError as error:
        console.print(f"{demo.name}: {error}", style="red", highlight=False, soft_wrap=True, markup=False)
        return 2
    show(console, demo.rows(found, facts), found.problems, time.monotonic() - began)
    _say(console, f"nothing needs {directory} any more: rm -r {directory}")
    print(demo.last_line(found, facts), flush=True)
    return 0 if found.good else 1


def show(console: Console, rows: Sequence[tuple[str, str]], problems: Sequence[str], seconds: float) -> None:
    """The table, and what is wrong."""
    table = Table(title="what was done, and what came of it", title_justify="left", show_header=False)
    table.add_row("time", f"{seconds:.0f} s")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for line in problems[:_PROBLEMS_SHOWN]:
        _say(console, f"  {line}")
    if len(problems) > _PROBLEMS_SHOWN:
        _say(console, f"  … and {len(problems) - _PROBLEMS_SHOWN} more")


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False)


def _arguments(demo: Demo, words: Sequence[str] | None) -> argparse.Namespace:
    target = demo.name if demo.name == "demo" else f"demo-{demo.name}"
    parser = argparse.ArgumentParser(prog=f"make {target}", description=demo.about)
    parser.add_argument("--metadata", choices=["sqlite", "zk"], default="sqlite", help="where the metadata live")
    parser.add_argument("--sabotage", action="store_true", help=demo.sabotage)
    if demo.short:
        parser.add_argument("--short", action="store_true", help=demo.short)
    parser.add_argument("--dir", type=Path, help="a fresh directory for everything [default: a temporary one]")
    demo.options(parser)
    return parser.parse_args(words)
