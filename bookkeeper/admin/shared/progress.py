"""How far a verb has come: on standard error, where a person looks on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click


@contextmanager
def progress_bar(step: str, said: str) -> Iterator[tuple[Callable[..., Any], Callable[[str], None]]]:
    """A bar between two texts. Gives what changes it (``step``, ``said``, ``completed``, ``total``), and what prints
    a line above it. Where nobody looks on, there is no bar, and lines are printed alone."""
    if not sys.stderr.isatty():
        yield (lambda **changes: None), partial(click.echo, err=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    texts = TextColumn("{task.fields[step]}"), TextColumn("{task.fields[said]}")
    with Progress(texts[0], BarColumn(), texts[1], TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None, step=step, said=said)
        yield partial(bar.update, task), partial(bar.console.print, markup=False, highlight=False)


@contextmanager
def status_line(text: str) -> Iterator[Callable[[str], Any]]:
    """A line that changes. Gives what changes it; nothing where nobody looks on."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status(text) as status:
        yield status.update
