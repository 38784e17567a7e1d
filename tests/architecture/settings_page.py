"""Makes docs/settings.md of the code: ``python -m tests.architecture.settings_page`` writes it."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, Final

import click

from bookkeeper import ClientConfig
from bookkeeper.admin.cli import bk
from bookkeeper.admin.config.apache_names import REASONS
from bookkeeper.admin.config.apache_settings import RULES
from bookkeeper.audit import AuditConfig
from bookkeeper.auth.config import AuthConfig
from bookkeeper.bookie.config import INLINE_SYNC_US, BookieConfig
from bookkeeper.bookie.http_api_config import HttpApiConfig
from bookkeeper.net.tls import ServerTls
from bookkeeper.storage.base.config import StorageConfig

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
SERVERS: Final = (
    ("bookie", "run"),
    ("autorecovery", "run"),
    ("gateway", "webhdfs"),
    ("gateway", "grpc"),
    ("standalone",),
    ("console",),
    ("zookeeper",),
)
"""The verbs that serve."""

_TABLES: Final = (
    ("", BookieConfig),
    ("storage", StorageConfig),
    ("tls", ServerTls),
    ("auth", AuthConfig),
    ("audit", AuditConfig),
    ("http_api", HttpApiConfig),
)
_OTHERWISE: Final = {
    "storage.journal_dir": "`DIRECTORY/journal`",
    "storage.ledger_dir": "`DIRECTORY/ledgers`",
    "storage.inline_sync_us": f"{INLINE_SYNC_US:g}",
}
"""Defaults that the settings of a bookie say, and not those of its storage."""

_HEAD: Final = """\
# Every setting

This page is made from the code (`python -m tests.architecture.settings_page`), and a test compares them.

`bk config check FILE` says whether a bookie would start with its settings, and `bk config show FILE` shows all of them.
With each it says where it comes from: the command line, the environment, the file, or the default.
Both take the options of `bk bookie`, too.
An unknown setting is refused, with the nearest name; an option of the command line replaces the file's.
"""


def page() -> str:
    """The whole text."""
    parts = [_HEAD, "## A bookie's file\n\n`bk bookie --config FILE`: TOML.\n"]
    for table, cls in _TABLES:
        parts.append(f"### `[{table}]`\n" if table else "### Before the first table\n")
        parts.append(_rows(table, cls))
    parts.append("## Options of servers\n")
    for words in SERVERS:
        parts.append(f"### `bk {' '.join(word for word in words if word != 'run')}`\n")
        parts.append(_options(command(words)))
    parts.append("## A client's settings\n\n`ClientConfig`, in a program.\n")
    parts.append(_rows("client", ClientConfig))
    parts.append(_apache())
    return "\n".join(parts)


def command(words: tuple[str, ...]) -> click.Command:
    """A verb of ``bk``."""
    found: click.Command = bk
    for word in words:
        assert isinstance(found, click.Group)
        below = found.get_command(click.Context(found), word)
        assert below is not None, words
        found = below
    return found


def _rows(table: str, cls: type) -> str:
    told = _docstrings(cls)
    lines = ["| setting | default | |", "|---|---|---|"]
    for each in fields(cls):
        if is_dataclass(_made(each)) and table == "" and each.name != "storage":
            lines.append(f"| `[{each.name}]` | | a table of its own, below |")
        elif not (table == "" and each.name == "storage"):
            name = f"{table}.{each.name}" if table not in ("", "client") else each.name
            default = _OTHERWISE.get(name) or _default(each)
            lines.append(f"| `{each.name}` | {default} | {_cell(told[each.name])} |")
    return "\n".join(lines) + "\n"


def _made(each: Field[Any]) -> object:
    return each.default_factory() if each.default_factory is not MISSING else each.default


def _default(each: Field[Any]) -> str:
    value = _made(each)
    match value:
        case _ if value is MISSING:
            return "must be given"
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case int() if value >= 2**20 and value % 2**20 == 0:
            return f"{value >> 20} MiB"
        case float() | int():
            return f"{value:g}" if isinstance(value, float) else str(value)
        case () | {}:
            return "none"
        case str():
            return f"`{value}`" if value else "empty"
    return "its own"


def _docstrings(cls: type) -> dict[str, str]:
    """What stands below each field."""
    (found,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(found, ast.ClassDef)
    told = {}
    for field, text in zip(found.body, found.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            told[field.target.id] = str(text.value.value)
    return told


def _options(verb: click.Command) -> str:
    lines = ["| option | environment | |", "|---|---|---|"]
    for each in verb.params:
        if isinstance(each, click.Option) and not each.hidden:
            names = ", ".join(f"`{name}`" for name in [*each.opts, *each.secondary_opts])
            taken = "" if each.is_flag else f" {_cell(each.make_metavar(click.Context(verb)))}"
            variable = f"`{each.envvar}`" if each.envvar else ""
            told = each.help or ""
            if each.show_default and not each.is_flag:
                told += f"  [default: {each.default}]"
            lines.append(f"| {names}{taken} | {variable} | {_cell(told)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", " ".join(text.split())).replace("``", "`")
    return text.replace("|", "\\|")


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in sorted(names))


def _apache() -> str:
    return "\n".join(
        [
            "## Settings of Apache's bookies",
            "",
            "`bk config import bk_server.conf --dir DIR` translates a file "
            "([migrating](production.md#migrating-from-apache-and-back)).",
            "A setting that Apache's bookies do not have is refused, with the nearest name.",
            "",
            f"Translated, or looked at and refused where the value cannot be kept: {_names(RULES)}.",
            "",
            "Meaningless here:",
            "",
            "| because | settings |",
            "|---|---|",
            *(f"| {_cell(reason)} | {_names(names.split())} |" for reason, names in REASONS.items()),
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"written: {PAGE}\n")
