"""``bk stream append``, ``read``, ``tail``, ``count``."""

from __future__ import annotations

import base64
import sys
from typing import BinaryIO, Final

import click

from bookkeeper.admin.interruption import Interruption
from bookkeeper.admin.line_input import LineInput
from bookkeeper.admin.options import counted, json_option, metadata_option, print_json
from segments.commands.shared import Place, complete, namespace_at, stream_argument, told
from segments.errors import StreamError
from segments.namespace import StreamNamespace
from segments.position import EARLIEST, LATEST
from segments.record import AppendResult, Gap, Record, StoredRecord
from segments.seek import Seek
from segments.stream import Stream

OWNER: Final = "bk stream append"

place_option = click.option(
    "--from", "start", type=Place(), metavar="PLACE", help="The first record.  [default: the stream's first]"
)
gap_option = click.option(
    "--on-gap",
    type=click.Choice(["raise", "yield", "skip"]),
    default="raise",
    show_default=True,
    help="Where records are missing: fail, say so on standard error and go on, or go on silently.",
)
lines_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document per line, bytes in base64."
)


@click.command()
@metadata_option
@json_option
@click.option("--producer", metavar="NAME", help="Append as this idempotent producer; it numbers the lines from --seq.")
@click.option(
    "--seq", type=click.IntRange(0), metavar="N", help="With --producer: the first line's sequence number, for a retry."
)
@click.option("--key-separator", metavar="TEXT", help="Each line is a key, TEXT, and the value.")
@click.option("--txid", type=click.IntRange(0), metavar="N", help="The transaction id of all these records.")
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

    def record(line: bytes) -> Record | bytes:
        if key_separator is None and txid is None:
            return line
        key = None
        if key_separator is not None:
            first, found, rest = line.partition(key_separator.encode())
            if found:
                key, line = first, rest
        return Record(line, txid=txid, key=key)

    async def work() -> _Appended:
        done = _Appended()
        with Interruption() as asked:
            async with namespace_at(metadata, makes=makes) as namespace:
                stream = await namespace.open(name, create=makes)
                lines = LineInput(source, line_max=stream.config.limits.record_bytes)
                asked.tell(lines.stop)
                try:
                    if producer is None:
                        async with stream.writer(owner=OWNER) as writer:
                            async for run in lines.runs():
                                done.note(await writer.append_batch(list(map(record, run)), atomic=False), len(run))
                    else:
                        async with stream.producer(producer, owner=OWNER) as sender:
                            at = seq
                            async for run in lines.runs():
                                done.note(await sender.append_batch(list(map(record, run)), seq=at), len(run))
                                at = None if at is None else at + len(run)
                except StreamError as error:
                    error.add_note(f"{counted(done.records, 'record')} before it are durable")
                    raise
                finally:
                    lines.close()
        if asked:
            asked.end(str(done))
        return done

    done = complete(work())
    if as_json:
        print_json(
            {
                "records": done.records,
                "duplicates": done.duplicates,
                "first": told(None if done.first is None else done.first.position),
                "last": told(None if done.last is None else done.last.last),
            }
        )
    else:
        click.echo(str(done))


class _Appended:
    """What was appended so far."""

    def __init__(self) -> None:
        self.records = self.duplicates = 0
        self.first: AppendResult | None = None
        self.last: AppendResult | None = None

    def note(self, result: AppendResult, records: int) -> None:
        self.first = self.first or result
        self.last = result
        self.records += records
        self.duplicates += records if result.duplicate else 0

    def __str__(self) -> str:
        if self.first is None or self.last is None:
            return "no records"
        again = f", {self.duplicates} of them appended before" if self.duplicates else ""
        return f"{counted(self.records, 'record')} from {self.first.position} to {self.last.last}{again}, all durable"


@click.command()
@metadata_option
@lines_option
@place_option
@click.option("--to", "stop", type=Place(), metavar="PLACE", help="The record behind the last one.  [default: the end]")
@click.option("--count", "limit", type=click.IntRange(1), metavar="N", help="Stop after this many records.")
@gap_option
@stream_argument
def read(
    metadata: str, as_json: bool, start: Seek | None, stop: Seek | None, limit: int | None, on_gap: str, name: str
) -> None:
    """Print the records of a stream, as far as they are confirmed now. This fences nobody."""

    async def work() -> None:
        async with namespace_at(metadata) as namespace:
            await _print(namespace, name, EARLIEST if start is None else start, stop, limit, on_gap, as_json, False)

    complete(work())


@click.command()
@metadata_option
@lines_option
@click.option("--from", "start", type=Place(), metavar="PLACE", help="The first record.  [default: what comes next]")
@click.option("--count", "limit", type=click.IntRange(1), metavar="N", help="Stop after this many records.")
@gap_option
@stream_argument
def tail(metadata: str, as_json: bool, start: Seek | None, limit: int | None, on_gap: str, name: str) -> None:
    """Print the records of a stream as they come, until Ctrl-C, or until the stream is sealed."""

    async def work() -> None:
        async with namespace_at(metadata) as namespace:
            await _print(namespace, name, LATEST if start is None else start, None, limit, on_gap, as_json, True)

    complete(work())


async def _print(
    namespace: StreamNamespace,
    name: str,
    start: Seek,
    stop: Seek | None,
    limit: int | None,
    on_gap: str,
    as_json: bool,
    follow: bool,
) -> None:
    stream: Stream = await namespace.open(name)
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
            "position": record.position.encode(),
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
        print_json({"gap": gap.kind.value, "first": told(gap.first), "last": told(gap.last), "records": gap.records})
    else:
        how_many = "records" if gap.records is None else counted(gap.records, "record")
        click.echo(f"bk: {how_many} from {gap.first} to {gap.last} missing: {gap.kind.value} {gap.detail}", err=True)


@click.command()
@metadata_option
@json_option
@place_option
@click.option("--to", "stop", type=Place(), metavar="PLACE", help="The record behind the last one.  [default: the end]")
@stream_argument
def count(metadata: str, as_json: bool, start: Seek | None, stop: Seek | None, name: str) -> None:
    """Count the records between two places, from metadata as far as that goes."""

    async def work() -> int:
        async with namespace_at(metadata) as namespace:
            stream = await namespace.open(name)
            return await stream.count(EARLIEST if start is None else start, LATEST if stop is None else stop)

    number = complete(work())
    if as_json:
        print_json({"stream": name, "records": number})
    else:
        click.echo(number)
