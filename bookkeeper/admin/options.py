"""What several verbs share: the cluster's address, JSON output, running a coroutine."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table

from bookkeeper.real import run

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def metadata_option(function: F) -> F:
    """``--metadata URI``, or ``BK_METADATA``."""
    return click.option(
        "--metadata",
        "-m",
        envvar="BK_METADATA",
        required=True,
        metavar="URI",
        help="The cluster: sqlite:///FILE, zk://HOST:PORT/ledgers, embedded:///DIR?bookies=3. [env: BK_METADATA]",
    )(function)


def json_option(function: F) -> F:
    """``--json``: one JSON document instead of a table."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(function)


def password_option(function: F) -> F:
    """``--password``: the ledger's, as text."""
    return click.option(
        "--password", default="", envvar="BK_PASSWORD", metavar="TEXT", help="The ledger's password. [env: BK_PASSWORD]"
    )(function)


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a fresh loop."""
    return run(work)


def print_json(document: object) -> None:
    """One JSON document on one line, readable by programs."""
    json.dump(document, sys.stdout, default=str)
    sys.stdout.write("\n")
    sys.stdout.flush()


def print_table(title: str, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    """A table for people; the columns are keys of the rows."""
    table = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*("" if row.get(column) is None else str(row.get(column)) for column in columns))
    Console().print(table)
