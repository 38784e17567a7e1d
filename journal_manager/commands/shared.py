"""What the commands for journals share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final, TypeVar

import click

from bookkeeper.admin.shared.options import finish
from bookkeeper.option_types import WholeNumber
from journal_manager.edits import SegmentInfo
from journal_manager.errors import JournalError
from journal_manager.journals.backend import JournalReader, JournalWriter
from journal_manager.journals.open_journal import open_writer

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


def complete(work: Coroutine[Any, Any, T], *, changes: bool = False) -> T:
    """Run a coroutine to its end. An error of the journal becomes a sentence. ``changes``: as for ``finish``."""
    try:
        return finish(work, changes=changes)
    except JournalError as error:
        notes = [*getattr(error, "__notes__", ()), *(["trying again may help"] if error.retryable else [])]
        raise click.ClickException(f"{error} ({'; '.join(notes)})" if notes else str(error)) from error


def as_owner(uri: str, yes: bool, step: Callable[[JournalWriter], Awaitable[T]], question: str = "") -> T:
    """Ask, because a running writer ends; become the journal's owner, take a step, and let go of it.

    Args:
        question: if it is not the usual one.

    Raises: Abort. ClickException: an error of the journal, as a sentence.
    """
    usual = f"This takes {uri} over: a program that writes to it now is fenced. Continue?"
    if not yes:
        click.confirm(question or usual, abort=True)

    async def work() -> T:
        async with await open_writer(uri, owner=OWNER, create=False) as writer:
            return await step(writer)

    return complete(work(), changes=True)


def print_removed(segments: Iterable[SegmentInfo]) -> None:
    """The edits that are gone, segment by segment."""
    for segment in segments:
        click.echo(f"removed: the edits from {segment.first} to {segment.last}")


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
