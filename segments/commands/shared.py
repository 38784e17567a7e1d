"""What the commands for streams share."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import click

from bookkeeper.admin.shared.options import connected, finish, print_json, print_table
from bookkeeper.install import how_to_install
from bookkeeper.outcome import Outcome
from segments.arguments import is_gateway_uri
from segments.chain import StreamSegment
from segments.errors import GatewayTooOldError, SeekFormatError, StreamError
from segments.namespace import StreamNamespace, connect
from segments.position import EARLIEST, LATEST, Position
from segments.retention.holds import Hold
from segments.seek import Seek, parse_seek
from segments.stream import Stream

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def stream_argument(function: F) -> F:
    """``STREAM``: a stream's name."""
    return click.argument("name", metavar="STREAM")(function)


def dry_run_option(function: F) -> F:
    """``--dry-run``: show what would be done."""
    return click.option("--dry-run", is_flag=True, help="Only show what would be done.")(function)


def yes_option(function: F) -> F:
    """``--yes``: no question."""
    return click.option("--yes", is_flag=True, help="Do not ask.")(function)


def settings_option(function: F) -> F:
    """``--set NAME=VALUE``, several times: settings of a stream, as a dictionary."""
    return click.option(
        "settings",
        "--set",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_settings,
        help="A setting of the stream: ensemble=1, roll.max_age_s=3600, retention.max_bytes=none.",
    )(function)


def _settings(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", ctx, param)
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    """A number, true, false or none; anything else is text."""
    if text == "none":
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


HOLD_COLUMNS: Final = ("hold", "by", "from", "to", "until", "active", "note")


class PositionType(click.ParamType[Seek]):
    """A place in a stream on the command line."""

    name = "place"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Seek:
        if not isinstance(value, str):
            seek: Seek = value
            return seek
        try:
            return parse_seek(value)
        except SeekFormatError as error:
            self.fail(str(error), param, ctx)


def place_option(name: str, parameter: str, otherwise: Position | None, what: str) -> Callable[[F], F]:
    """``--from`` or ``--to``: a position in a stream, and its default."""
    return click.option(name, parameter, type=PositionType(), default=otherwise, metavar="POSITION", help=what)


from_option = place_option("--from", "start", EARLIEST, "The first record.  [default: the stream's first]")
to_option = place_option("--to", "stop", LATEST, "The record behind the last one.  [default: the end]")


def complete(work: Coroutine[Any, Any, T], *, changes: bool = False) -> T:
    """Run a coroutine to its end. An error of a stream becomes a sentence.

    With ``changes`` an error whose outcome is unknown says that it may have been done.
    """
    try:
        return finish(work, changes=changes)
    except GatewayTooOldError as error:
        raise click.ClickException(f"{click.get_current_context().command_path} does not work: {error}") from error
    except StreamError as error:
        raise click.ClickException(in_a_line(error, changes=changes)) from error


def with_stream(metadata: str, name: str, step: Callable[[Stream], Awaitable[T]], *, changes: bool = False) -> T:
    """Open a stream, take a step with it and close it; as ``complete``."""

    async def work() -> T:
        async with streams_at(metadata) as namespace:
            return await step(await namespace.open(name))

    return complete(work(), changes=changes)


def print_rows(as_json: bool, title: str, columns: Sequence[str], rows: Sequence[dict[str, object]], none: str) -> None:
    """Rows as JSON, as a table, or the sentence that there are none."""
    if as_json:
        print_json(rows)
    elif rows:
        print_table(title, tuple(columns), rows)
    else:
        click.echo(none)


def in_a_line(error: StreamError, *, changes: bool = True) -> str:
    """The error with what a caller should know about trying again, after an attempt to change something or not."""
    notes = [*getattr(error, "__notes__", ())]
    if changes and error.outcome is Outcome.UNKNOWN:
        notes.append("it may have been done")
    if error.retryable:
        notes.append("trying again may help")
    return f"{error} ({'; '.join(notes)})" if notes else str(error)


@asynccontextmanager
async def streams_at(metadata: str, *, makes: bool = False) -> AsyncIterator[StreamNamespace]:
    """The streams of the cluster at an address, or behind gateways. With ``makes`` an embedded cluster is made if there
    is none."""
    if not is_gateway_uri(metadata):
        async with connected(metadata, makes=makes) as client, connect(metadata, client=client) as namespace:
            yield namespace
        return
    try:
        opening = connect(metadata)
    except ImportError as error:
        raise click.ClickException(f"{metadata} needs the library grpcio: {how_to_install('grpc')}") from error
    async with opening as namespace:
        yield namespace


def position_text(position: Position | None) -> str | None:
    """A position as commands take it."""
    if position is None:
        return None
    return {EARLIEST: "earliest", LATEST: "latest"}.get(position) or str(position)


def segment_row(segment: StreamSegment) -> dict[str, object]:
    """A segment as a row of a table, or as JSON."""
    has = segment.contents
    return {
        "segment": segment.number,
        "ledger": segment.ledger_id,
        "state": segment.state.value,
        "first_seq_no": segment.start_seq_no,
        "records": None if segment.is_open else segment.records,
        "bytes": None if segment.is_open else segment.bytes,
        "first_txid": has.first_txid,
        "last_txid": has.last_txid,
        "created": segment.created.isoformat(timespec="seconds"),
        "completed": None if segment.completed is None else segment.completed.isoformat(timespec="seconds"),
        "epoch": segment.epoch,
    }


def hold_row(hold: Hold, now_ms: int) -> dict[str, object]:
    """A hold as a row of a table, or as JSON."""
    return {
        "hold": hold.name,
        "by": hold.by or None,
        "from": position_text(hold.start),
        "to": position_text(hold.stop),
        "until": None if hold.until is None else hold.until.isoformat(timespec="seconds"),
        "active": hold.is_active(now_ms),
        "note": hold.note,
    }
