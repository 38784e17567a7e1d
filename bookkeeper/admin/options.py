"""What several verbs share: the cluster's address, connecting to it, JSON output, running a coroutine."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bookkeeper.errors import BookKeeperError, MetadataUnavailableError, NoClusterError, Outcome
from bookkeeper.real import run

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, ClientConfig

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def metadata_option(function: F) -> F:
    """``--metadata URI``, or ``BK_METADATA``."""
    return click.option(
        "--metadata",
        "-m",
        envvar="BK_METADATA",
        callback=_given,
        metavar="URI",
        help="The cluster: sqlite:///FILE, zk://HOST:PORT/ledgers, embedded:///DIR?bookies=3. [env: BK_METADATA]",
    )(function)


def _given(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    if not value:
        raise click.UsageError("which cluster? Give --metadata URI, or set BK_METADATA", ctx)
    return value


def json_option(function: F) -> F:
    """``--json``: one JSON document instead of a table."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(function)


def password_option(function: F) -> F:
    """``--password``: the ledger's, as text."""
    return click.option(
        "--password", default="", envvar="BK_PASSWORD", metavar="TEXT", help="The ledger's password. [env: BK_PASSWORD]"
    )(function)


class LedgerNumber(click.IntRange):
    """A ledger's id on the command line."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"{value!r} is no ledger id: ids are whole numbers from 0 on", param, ctx)


def ledger_argument(function: F) -> F:
    """``LEDGER``: the id of a ledger."""
    return click.argument("ledger_id", type=LedgerNumber(0), metavar="LEDGER")(function)


def finish(work: Coroutine[Any, Any, T], *, changes: bool = False) -> T:
    """Run a coroutine to its end on a fresh loop.

    With ``changes`` an error whose outcome is unknown says so: what was to be changed may have been.
    """
    try:
        return run(work)
    except BookKeeperError as error:
        if changes and error.outcome is Outcome.UNKNOWN:
            error.add_note("it may or may not have happened")
        raise


@asynccontextmanager
async def connected(uri: str, config: ClientConfig | None = None) -> AsyncIterator[BookKeeper]:
    """A client of the cluster at ``uri``. What goes wrong before it is connected names the address.

    Raises:
        ClickException: there is no cluster, or the store does not answer: nothing has happened.
        ConfigError: not such an address.
    """
    from bookkeeper import BookKeeper

    try:
        client = await BookKeeper.connect(uri, config=config)
    except NoClusterError as error:
        raise click.ClickException(str(error)) from error
    except MetadataUnavailableError as error:
        raise click.ClickException(f"cannot reach {uri}: {error}") from error
    async with client:
        yield client


def print_json(document: object) -> None:
    """One JSON document on one line, readable by programs."""
    json.dump(document, sys.stdout, default=str)
    sys.stdout.write("\n")
    sys.stdout.flush()


def print_table(title: str, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    """A table for people; the columns are keys of the rows. A list is shown as its items, side by side."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    Console().print(table)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def counted(number: int, noun: str) -> str:
    """``1 ledger``, ``2 ledgers``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
