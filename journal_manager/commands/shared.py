"""What the commands for journals share."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import click

from bookkeeper.admin.shared import finish
from bookkeeper.option_types import WholeNumber
from journal_manager.edits import SegmentInfo
from journal_manager.errors import JournalError
from journal_manager.journals import JournalReader

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

OWNER: Final = "bk journal"
"""The owner's name in the journal while a command has it."""


class TxIdType(WholeNumber):
    """A transaction id on the command line."""

    name = "txid"

    def __init__(self) -> None:
        super().__init__(1)


def journal_argument(function: F) -> F:
    """``JOURNAL``: the address of a journal."""
    return click.argument("uri", metavar="JOURNAL")(function)


def take_over_option(function: F) -> F:
    """``--yes``: no question before the journal is taken over."""
    return click.option("--yes", is_flag=True, help="Do not ask before the journal is taken over.")(function)


def ask_to_take_over(uri: str, yes: bool) -> None:
    """Ask, because a running writer ends. Raises Abort."""
    if not yes:
        click.confirm(f"This takes {uri} over: a program that writes to it now is fenced. Continue?", abort=True)


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end. An error of the journal becomes a sentence."""
    try:
        return finish(work)
    except JournalError as error:
        notes = [*getattr(error, "__notes__", ()), *(["trying again may help"] if error.retryable else [])]
        raise click.ClickException(f"{error} ({'; '.join(notes)})" if notes else str(error)) from error


def segment_row(segment: SegmentInfo) -> dict[str, object]:
    """A segment as a row of a table, or as JSON."""
    return {
        "first": segment.first,
        "last": segment.last,
        "state": segment.state.value,
        "epoch": segment.epoch,
        "layout": segment.layout_version,
        "location": segment.location,
    }


async def first_edit(reader: JournalReader) -> int:
    """The first edit that the journal still has; 1 if it has none."""
    segments = await reader.segments()
    return segments[0].first if segments else 1
