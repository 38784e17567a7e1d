"""How a server's log is written: lines for people, or one JSON document on each line (``--log json``).

A JSON line has ``time`` (UTC, milliseconds), ``level``, ``logger``, ``message``, ``fields`` (what the line was given
as ``extra``), and ``error`` with the traceback, where there is one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

TEXT: Final = "text"
JSON: Final = "json"
VARIABLE: Final = "BK_LOG"
"""Environment variable with the same meaning as the option."""

_CHOSEN: Final = "bookkeeper.log"
_LINE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_OWN: Final = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}
"""What every record has."""


class JsonLines(logging.Formatter):
    """Each record as one line of JSON. A value that JSON does not know is written as its text."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if fields := {name: value for name, value in vars(record).items() if name not in _OWN}:
            line["fields"] = fields
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_option(command: F) -> F:
    """``--log text|json`` (``BK_LOG``) of a server; :func:`begin_log` knows what was chosen."""
    return click.option(
        "--log",
        type=click.Choice((TEXT, JSON)),
        envvar=VARIABLE,
        callback=_note,
        expose_value=False,
        help=f"How its log is written to standard error: lines for people, or JSON.  [env: {VARIABLE}; default: text]",
    )(command)


def _note(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    ctx.meta[_CHOSEN] = value or TEXT


def log_form() -> str:
    """How the running verb was told to write its log: ``text`` or ``json``."""
    ctx = click.get_current_context(silent=True)
    return str(ctx.meta.get(_CHOSEN, TEXT)) if ctx is not None else TEXT


def begin_log(level: int) -> None:
    """Write records from this level on to standard error, as the running verb was told. If the program has set up a log
    already, that one stays."""
    form = log_form()
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == JSON else logging.Formatter(_LINE))
    logging.basicConfig(level=level, handlers=[handler])
