"""Options and helpers of several verbs: the cluster's address, connecting, JSON output, running a coroutine."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from bookkeeper.admin.shared.terminal import harmless
from bookkeeper.admin.shared.verb_audit import audited
from bookkeeper.errors import BookKeeperError, ConfigError, MetadataUnavailableError, NoClusterError, Outcome
from bookkeeper.option_types import WholeNumber
from bookkeeper.real import read_private, run, system_seams
from bookkeeper.secret import without_secrets

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from bookkeeper import AuthConfig, BookKeeper, ClientConfig
    from bookkeeper.net.tls import TlsConfig

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def metadata_option(function: F) -> F:
    """``--metadata URI``, or ``BK_METADATA``; with it, how bookies are reached (:func:`tls_options`)."""
    return click.option(
        "--metadata",
        "-m",
        envvar="BK_METADATA",
        callback=given_cluster,
        metavar="URI",
        help="The cluster: sqlite:///FILE, zk://HOST:PORT/ledgers, embedded:///DIR?bookies=3. [env: BK_METADATA]",
    )(tls_options(function))


def tls_options(function: F) -> F:
    """``--tls-ca``, ``--tls-cert``, ``--tls-key``, ``--tls-identity``, ``--tls-insecure-any-host``, ``--auth`` and
    ``--auth-file``: how to reach bookies.

    ``function`` does not get them: :func:`connected` knows them; :func:`chosen_tls` and :func:`chosen_auth` return
    them.
    """
    file = click.Path(dir_okay=False)
    for option in (
        click.option(
            "--auth-file",
            type=file,
            metavar="FILE",
            callback=_note_auth,
            expose_value=False,
            help="The private file that --auth needs: a token, or user and password. [env: BK_AUTH_FILE]",
        ),
        click.option(
            "--auth",
            metavar="PROVIDER",
            callback=_note_auth,
            expose_value=False,
            help="Credential for bookies besides a certificate: token, sasl, or MODULE:ATTRIBUTE. [env: BK_AUTH]",
        ),
        click.option(
            "--tls-insecure-any-host",
            "tls_insecure_any_host",
            is_flag=True,
            callback=_note_tls,
            expose_value=False,
            help="Accept every certificate that --tls-ca has signed, whatever host it names.",
        ),
        _tls_option(
            "identity",
            str,
            "URI",
            "The name that a bookie's certificate has instead of its host; may contain {bookie_id}.",
        ),
        _tls_option("key", file, "FILE", "PEM: the client's private key. Default: it is in --tls-cert."),
        _tls_option("cert", file, "FILE", "PEM: the client's certificate, for bookies that ask for one."),
        _tls_option("ca", file, "FILE", "PEM: the authority that signs bookies' certificates. Switches TLS on."),
    ):
        function = option(function)
    return function


def _tls_option(name: str, kind: Any, metavar: str, text: str) -> Callable[[F], F]:
    variable = f"BK_TLS_{name.upper()}"
    return click.option(
        f"--tls-{name}",
        envvar=variable,
        type=kind,
        metavar=metavar,
        callback=_note_tls,
        expose_value=False,
        help=f"{text} [env: {variable}]",
    )


SESSION: Final = "BK_METADATA_SESSION"
"""Environment variable: seconds without contact after which the metadata store ends a session."""
_TLS: Final = "bookkeeper.tls"
_AUTH: Final = "bookkeeper.auth"


def _note_tls(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    ctx.meta.setdefault(_TLS, {})[str(param.name).removeprefix("tls_")] = value


def _note_auth(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.meta.setdefault(_AUTH, {})[f"BK_{str(param.name).upper()}"] = value


def chosen_auth() -> AuthConfig | None:
    """How the running verb authenticates, by its options and the environment; None: it does not.

    Raises:
        ConfigError: the options do not fit together.
    """
    from bookkeeper.auth.config import AuthConfig

    ctx = click.get_current_context(silent=True)
    given = ctx.meta.get(_AUTH, {}) if ctx is not None else {}
    return AuthConfig.from_environment({**os.environ, **given})


def chosen_tls() -> TlsConfig | None:
    """The TLS options of the running verb; None to reach bookies without TLS.

    Raises:
        ConfigError: the options do not fit together.
    """
    from bookkeeper.net.tls import client_tls

    ctx = click.get_current_context(silent=True)
    given = ctx.meta.get(_TLS) if ctx is not None else None
    return client_tls(**given) if given else None


def given_cluster(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    """The value of ``--metadata``. Raises: UsageError: there is none."""
    if not value:
        raise click.UsageError("which cluster? Give --metadata URI, or set BK_METADATA", ctx)
    return value


def json_option(function: F) -> F:
    """``--json``: one JSON document instead of a table."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(function)


def password_option(function: F) -> F:
    """``--password-file``: the verb gets ``password``, the ledger's, as text.

    ``--password TEXT`` is understood, too, and warns: what stands on a command line can be read by others.
    """

    @click.option(
        "--password",
        default="",
        envvar="BK_PASSWORD",
        hidden=True,
        help="The password itself, visible to others on this machine.",
    )
    @click.option(
        "--password-file",
        metavar="FILE",
        help="A file with the ledger's password, which only its owner may read. The environment may hold the password "
        "itself. [env: BK_PASSWORD]",
    )
    @wraps(function)
    def with_password(*words: Any, password: str, password_file: str | None, **options: Any) -> Any:
        return function(*words, password=_chosen_password(password, password_file), **options)

    return cast("F", with_password)


def as_operator_option(function: F) -> F:
    """``--as-operator``: the ledger's metadata say its password, as for the ledgers of streams and journals."""
    return click.option("--as-operator", is_flag=True, help="Use the password that the metadata hold.")(function)


def _chosen_password(password: str, path: str | None) -> str:
    source = click.get_current_context().get_parameter_source("password")
    if source is click.core.ParameterSource.COMMANDLINE:
        if path is not None:
            raise click.UsageError("give the password in one way: --password-file FILE, or BK_PASSWORD")
        click.echo("bk: others on this machine can read --password: use --password-file or BK_PASSWORD", err=True)
    if path is None:
        return password
    try:
        return read_private(path).decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} holds no text, and so no password") from error


class LedgerIdType(WholeNumber):
    """A ledger's id on the command line."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a ledger id: a ledger id is a whole number from 0 on", param, ctx)


def ledger_argument(function: F) -> F:
    """``LEDGER``: the id of a ledger."""
    return click.argument("ledger_id", type=LedgerIdType(0), metavar="LEDGER")(function)


def finish(work: Coroutine[Any, Any, T], *, changes: bool = False) -> T:
    """Run a coroutine to its end on a fresh loop.

    With ``changes`` it is noted in the user's audit log, if there is one, and an error whose outcome is unknown says
    that the change may have been made.
    """
    try:
        if not changes:
            return run(work)
        with closing(work), audited():
            return run(work)
    except BookKeeperError as error:
        if changes and error.outcome is Outcome.UNKNOWN:
            error.add_note("the change may or may not have been made")
        raise


def _milliseconds(session: str) -> int:
    try:
        return int(float(session) * 1000)
    except (ValueError, OverflowError):
        raise ConfigError(f"{SESSION} in the environment is a number of seconds, not {session!r}") from None


@asynccontextmanager
async def connected(uri: str, config: ClientConfig | None = None, *, makes: bool = False) -> AsyncIterator[BookKeeper]:
    """A client of the cluster at ``uri``. An error before it is connected names the address.

    Only with ``makes`` this makes an embedded cluster (``embedded:``) that does not exist yet. For other verbs a
    missing cluster means that the address is wrong.

    Raises:
        ClickException: there is no cluster, or the store does not answer. Nothing has changed.
        ConfigError: the address cannot be used.
    """
    from bookkeeper import BookKeeper, ClientConfig

    config = config or ClientConfig()
    if (tls := chosen_tls()) is not None:
        config = replace(config, tls=tls)
    if (auth := chosen_auth()) is not None:
        config = replace(config, auth=auth)
    if session := os.environ.get(SESSION):
        config = replace(config, metadata_session_ms=_milliseconds(session))
    try:
        if not makes and uri.startswith("embedded:"):
            from bookkeeper.embedded import require_cluster

            require_cluster(uri, system_seams())
        client = await BookKeeper.connect(uri, config=config)
    except NoClusterError as error:
        raise click.ClickException(str(error)) from error
    except MetadataUnavailableError as error:
        raise click.ClickException(f"cannot reach {without_secrets(uri)}: {error}") from error
    async with client:
        yield client


def print_json(document: object) -> None:
    """Print one JSON document on one line, for programs."""
    json.dump(document, sys.stdout, default=str)
    sys.stdout.write("\n")
    sys.stdout.flush()


def screen_console(**options: Any) -> Console:
    """Standard output for tables. If its reader has gone (``bk ... | head``), that is a BrokenPipeError, as for plain
    output; by default rich would end the process with status 1."""
    from rich.console import Console

    class ScreenConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return ScreenConsole(**options)


WORD_MAX: Final = 12
"""Words of tables up to this length, numbers above all, are never broken; longer ones, paths, may be."""


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Mapping[str, object]], *, most: int | None = None
) -> None:
    """Print a line, and below it :func:`table_of` these rows, ``most`` of them. Without rows the line says so."""
    from rich.text import Text

    if not rows:
        click.echo(harmless(title if title.startswith("0 ") else f"{title}: none"))
        return
    console = screen_console(markup=False, emoji=False)  # what others have written is shown as it is
    shown = table_of(columns, rows[:most], console.width)
    click.echo(harmless(title))  # above the table, and not in it, where it would be broken at the table's width
    if isinstance(shown, Text):
        click.echo(shown.plain)  # the terminal breaks the lines, and what is copied from it has no breaks
    else:
        console.print(shown)
    if most is not None and len(rows) > most:
        click.echo(f"and {len(rows) - most} more (--json lists all)")


def table_of(columns: Sequence[str], rows: Sequence[Mapping[str, object]], width: int) -> Table | Text:
    """A table for people; the columns are keys of the rows. See :func:`in_cell` for the values.

    Where ``width`` is so small that words would be broken, it is text: each row is lines of their own.
    """
    from rich.table import Table
    from rich.text import Text

    heads = [column.replace("_", " ") for column in columns]
    cells = [[in_cell(row.get(column)) for column in columns] for row in rows]
    by_column = list(zip(heads, *cells, strict=True))
    least = [min(max(map(_longest_word, column)), WORD_MAX) for column in by_column]
    room = width - (3 * len(columns) + 1) - sum(least)
    if room < 0:
        return Text("\n".join(_row_lines(heads, cells)))
    table = Table(header_style="bold")
    for head, wide in zip(heads, _shared_out(room, least, [_width(column) for column in by_column]), strict=True):
        table.add_column(head, overflow="fold", width=wide)
    for row in cells:
        table.add_row(*map(Text, row))
    return table


def _row_lines(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in cells:
        yield ""
        for head, cell in zip(heads, row, strict=True):
            if cell:
                text = cell.replace("\n", "\n  ")
                yield f"{head}: {text}" if head else text


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _width(column: Sequence[str]) -> int:
    return max((len(line) for cell in column for line in cell.splitlines()), default=0)


def _shared_out(room: int, least: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """The widths of columns, of which each gets at least what it needs: the rest goes to those that want little more
    before those that want much."""
    widths = list(least)
    order = sorted(range(len(widths)), key=lambda at: wanted[at] - least[at])
    for left, at in zip(range(len(order), 0, -1), order, strict=True):
        more = min(max(wanted[at] - least[at], 0), room // left)
        widths[at] += more
        room -= more
    return widths


def in_cell(value: object) -> str:
    """A value for people, on one line: a list is its items, side by side; nothing is empty; a truth is yes or no. The
    items of a tuple have a line each."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "\n".join(harmless(str(each), lines=False) for each in value)
    return harmless(" ".join(map(str, value)) if isinstance(value, list) else str(value), lines=False)


def moment(ms: int | None, unknown: str = "") -> str:
    """Milliseconds since 1970 as a time of this place."""
    if ms is None:
        return unknown
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000))
    except (OverflowError, OSError, ValueError):  # a time that no calendar here has
        return f"{ms} ms after 1970"
