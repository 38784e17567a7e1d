"""``bk stream append``, ``read``, ``tail``, ``count``."""

from __future__ import annotations

import base64
import sys
from typing import BinaryIO

import click

from bookkeeper.admin.shared.interruption import Interruption
from bookkeeper.admin.shared.options import json_option, metadata_option, print_json
from bookkeeper.amounts import counted
from bookkeeper.option_types import WholeNumber
from segments.arguments import is_gateway_uri
from segments.commands.line_records import AppendTally, Lines, append_lines, sender
from segments.commands.shared import (
    complete,
    from_option,
    place_option,
    position_text,
    stream_argument,
    streams_at,
    to_option,
    with_stream,
)
from segments.errors import StreamError
from segments.position import LATEST
from segments.position_format import encode_position
from segments.record import Gap, StoredRecord
from segments.seek import Seek
from segments.stream import Stream

gap_option = click.option(
    "--on-gap",
    type=click.Choice(["raise", "yield", "skip"]),
    default="raise",
    show_default=True,
    help="Where records are missing: fail, report them on standard error and go on, or go on silently.",
)
lines_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document per line, bytes in base64."
)


@click.command()
@metadata_option
@json_option
@click.option("--producer", metavar="NAME", help="Append as this idempotent producer; it numbers the lines from --seq.")
@click.option(
    "--seq",
    type=WholeNumber(0),
    metavar="N",
    help="With --producer: the first line's sequence number, for a retry.  [default: what follows its last one]",
)
@click.option("--key-separator", metavar="TEXT", help="Each line is a key, TEXT, and the value.")
@click.option("--txid", type=WholeNumber(0), metavar="N", help="The transaction id of all these records.")
@click.option("--create", "makes", is_flag=True, help="Make the stream if there is none.")
@stream_argument
@click.argument("source", type=click.File("rb"), default="-")
def append(
    metadata: str,
    as_json: bool,
    producer: str | None,
    seq: int | None,
    key_separator: str | None,
    txid: int | None,
    makes: bool,
    name: str,
    source: BinaryIO,
) -> None:
    """Append the lines of SOURCE (default: standard input) as records. This takes the stream over.

    Lines that arrive together become durable together. Ctrl-C ends the input: the lines until then are durable.

    \b
    Examples:
      seq 1000 | bk stream append orders
      printf 'anna=1\\nbert=2\\n' | bk stream append --key-separator = balances
      bk stream append --producer loader --seq 0 orders lines.txt      # may be repeated
    """
    if seq is not None and producer is None:
        raise click.UsageError("--seq needs --producer")
    if key_separator == "":
        raise click.UsageError("--key-separator is empty: give the text between key and value")
    lines = Lines(source, key_separator, txid)

    async def work() -> AppendTally:
        done = AppendTally()
        with Interruption() as asked:
            async with streams_at(metadata, makes=makes) as namespace:
                stream = await namespace.open(name, create=makes)
                asked.on_interrupt(lines.open(stream.config.limits.record_bytes).stop)
                try:
                    async with sender(stream, producer, behind_gateway=is_gateway_uri(metadata)) as to:
                        await append_lines(lines, to, done, seq=seq)
                except StreamError as error:
                    error.add_note(f"{counted(done.records, 'record')} before it are durable")
                    raise
                finally:
                    lines.close()
        if asked:
            asked.end(str(done))
        return done

    done = complete(work(), changes=True)
    if as_json:
        print_json(
            {
                "records": done.records,
                "duplicates": done.duplicates,
                "first": position_text(None if done.first is None else done.first.position),
                "last": position_text(None if done.last is None else done.last.last),
            }
        )
    else:
        click.echo(str(done))


@click.command()
@metadata_option
@lines_option
@from_option
@place_option("--to", "stop", None, "The record behind the last one.  [default: the end]")
@click.option("--count", "limit", type=WholeNumber(1), metavar="N", help="Stop after this many records.")
@gap_option
@stream_argument
def read(
    metadata: str, as_json: bool, start: Seek, stop: Seek | None, limit: int | None, on_gap: str, name: str
) -> None:
    """Print the records of a stream, as far as they are confirmed now. This fences nobody."""
    with_stream(metadata, name, lambda stream: _print(stream, start, stop, limit, on_gap, as_json, False))


@click.command()
@metadata_option
@lines_option
@place_option("--from", "start", LATEST, "The first record.  [default: what comes next]")
@click.option("--count", "limit", type=WholeNumber(1), metavar="N", help="Stop after this many records.")
@gap_option
@stream_argument
def tail(metadata: str, as_json: bool, start: Seek, limit: int | None, on_gap: str, name: str) -> None:
    """Print the records of a stream as they come, until Ctrl-C, or until the stream is sealed."""
    with_stream(metadata, name, lambda stream: _print(stream, start, None, limit, on_gap, as_json, True))


async def _print(
    stream: Stream, start: Seek, stop: Seek | None, limit: int | None, on_gap: str, as_json: bool, follow: bool
) -> None:
    printed = 0
    async with stream.read(start, stop=stop, follow=follow, on_gap=on_gap) as reader:  # type: ignore[arg-type]
        async for item in reader:
            if isinstance(item, Gap):
                _print_gap(item, as_json)
                continue
            _print_record(item, as_json)
            printed += 1
            if printed == limit:
                return


def _print_record(record: StoredRecord, as_json: bool) -> None:
    if not as_json:
        sys.stdout.buffer.write(record.value + b"\n")
        sys.stdout.buffer.flush()
        return
    print_json(
        {
            "position": encode_position(record.position),
            "at": str(record.position),
            "seq_no": record.seq_no,
            "txid": record.txid,
            "key": _base64(record.key),
            "value": _base64(record.value),
            "headers": {key: _base64(value) for key, value in record.headers.items()},
            "event_time": None if record.event_time is None else record.event_time.isoformat(),
            "append_time": record.append_time.isoformat(),
            "producer": None if record.producer is None else list(record.producer),
        }
    )


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _print_gap(gap: Gap, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "gap": gap.kind.value,
                "first": position_text(gap.first),
                "last": position_text(gap.last),
                "records": gap.records,
            }
        )
    else:
        how_many = "records" if gap.records is None else counted(gap.records, "record")
        why = f"{gap.kind.value}: {gap.detail}" if gap.detail else gap.kind.value
        click.echo(f"bk: missing: {how_many} from {gap.first} to {gap.last} ({why})", err=True)


@click.command()
@metadata_option
@json_option
@from_option
@to_option
@stream_argument
def count(metadata: str, as_json: bool, start: Seek, stop: Seek, name: str) -> None:
    """Count the records between two places, from metadata as far as that goes."""
    number = with_stream(metadata, name, lambda stream: stream.count(start, stop))
    if as_json:
        print_json({"stream": name, "records": number})
    else:
        click.echo(number)
