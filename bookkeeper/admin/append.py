"""``bk ledger append``: creates a ledger, writes, closes it and prints its id. A ledger is never reopened for writing.

``--deferred`` appends without waiting for the disk and forces once, in the end; ``--with-ids`` takes the entry
ids from the lines.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click
from click.core import ParameterSource

from bookkeeper.admin.interruption import Interruption, note
from bookkeeper.admin.line_input import LineInput
from bookkeeper.admin.options import (
    connected,
    counted,
    finish,
    json_option,
    metadata_option,
    password_option,
    print_json,
)
from bookkeeper.errors import BookKeeperError, TooManyRequestsError

if TYPE_CHECKING:
    from rich.progress import Progress

    from bookkeeper.client.bookkeeper import BookKeeper
    from bookkeeper.client.ledgers.ledger_creation import WhenShortName
    from bookkeeper.client.write.advanced_handle import AdvancedHandle
    from bookkeeper.client.write.write_handle import WriteHandle

_RUN = 512
"""Entries handed to the client at once: enough to be cheap, few enough to bound what waits in memory."""

_IN_FLIGHT = 4
"""Such runs on their way at a time."""

COUNT: Final = 1000
_NUMBERED = re.compile(rb"(\d{1,18})(?:[ \t](.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What is to be written, and how."""

    source: BinaryIO
    size: int | None
    count: int
    with_ids: bool
    deferred: bool
    password: bytes
    digest: str
    ensemble: int
    write_quorum: int
    ack_quorum: int
    when_short: WhenShortName


@click.command()
@metadata_option
@password_option
@json_option
@click.argument("source", type=click.File("rb"), default="-")
@click.option(
    "--size", type=click.IntRange(0), metavar="BYTES", help="Write entries of this many bytes instead of lines."
)
@click.option(
    "--count", type=click.IntRange(1), default=COUNT, show_default=True, help="With --size: how many entries."
)
@click.option("--with-ids", is_flag=True, help="Each line begins with its entry's id and a blank; in any order.")
@click.option(
    "--deferred",
    is_flag=True,
    help="Do not wait for the disks with each entry; make all of them durable in the end, on every bookie.",
)
@click.option("--ensemble", type=click.IntRange(1), default=3, show_default=True, help="Bookies that share the ledger.")
@click.option("--write-quorum", type=click.IntRange(1), default=3, show_default=True, help="Copies of each entry.")
@click.option("--ack-quorum", type=click.IntRange(1), default=2, show_default=True, help="Copies that must be durable.")
@click.option("--digest", type=click.Choice(["crc32c", "crc32", "hmac", "dummy"]), default="crc32c", show_default=True)
@click.option(
    "--when-short",
    type=click.Choice(["fail", "name_absent"]),
    default="fail",
    show_default=True,
    help="With fewer bookies up than the ensemble needs: fail, or name absent ones while an ack quorum is up.",
)
def append(
    metadata: str,
    password: str,
    as_json: bool,
    source: BinaryIO,
    size: int | None,
    count: int,
    with_ids: bool,
    deferred: bool,
    ensemble: int,
    write_quorum: int,
    ack_quorum: int,
    digest: str,
    when_short: WhenShortName,
) -> None:
    """Create a ledger, write the lines of SOURCE (default: standard input) as entries, close it, print its id.

    Lines become durable as they come. The id is also on standard error, at once. Ctrl-C ends the input: what came until
    then is durable and the ledger is closed with it; pressed again it leaves the ledger open.

    \b
    Examples:
      seq 1000 | bk ledger append
      bk ledger append --size 1024 --count 100000 --deferred
      printf '1 second\\n0 first\\n' | bk ledger append --with-ids
    """
    _refuse_together(size, with_ids, deferred, when_short)
    job = _Job(
        source=source,
        size=size,
        count=count,
        with_ids=with_ids,
        deferred=deferred,
        password=password.encode(),
        digest=digest,
        ensemble=ensemble,
        write_quorum=write_quorum,
        ack_quorum=ack_quorum,
        when_short=when_short,
    )

    async def work() -> tuple[int, int]:
        with Interruption() as asked:
            async with connected(metadata, makes=True) as bk:
                return await (_numbered(bk, job, asked) if with_ids else _in_order(bk, job, asked))

    ledger_id, last = finish(work(), changes=True)
    if as_json:
        print_json({"ledger": ledger_id, "entries": last + 1})
    else:
        click.echo(ledger_id)


def _refuse_together(size: int | None, with_ids: bool, deferred: bool, when_short: str) -> None:
    """Raises: UsageError: options of which one would say nothing, or that exclude each other."""
    ctx = click.get_current_context()
    given = {name for name in ("count", "source") if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    if size is None and "count" in given:
        raise click.UsageError("--count is for --size: lines are as many as there are", ctx)
    if size is not None and "source" in given:
        raise click.UsageError("give SOURCE or --size, not both: with --size entries are made up", ctx)
    if size is not None and with_ids:
        raise click.UsageError("give --with-ids or --size, not both: the ids stand in lines", ctx)
    if deferred and when_short != "fail":
        raise click.UsageError(
            f"--deferred needs every bookie of the ensemble in the end, so not with --when-short {when_short}", ctx
        )


async def _in_order(bk: BookKeeper, job: _Job, asked: Interruption) -> tuple[int, int]:
    """The ledger, and its last entry."""
    writer = await bk.create_ledger(
        ensemble=job.ensemble,
        write_quorum=job.write_quorum,
        ack_quorum=job.ack_quorum,
        password=job.password,
        digest=job.digest,
        when_short=job.when_short,
        deferred_sync=job.deferred,
    )
    _name(writer, asked)
    in_flight = _RunsInFlight(writer)
    lines = LineInput(job.source, line_max=bk.services.config.entry_size_max)
    try:
        async with writer:
            if job.size is None:
                asked.tell(lines.stop)
                async for run in lines.runs():
                    for at in range(0, len(run), _RUN):
                        await in_flight.append(run[at : at + _RUN])
            else:
                with _progress(job.count) as advance:
                    for at in range(0, job.count, _RUN):
                        if asked:
                            break
                        run = [bytes(job.size)] * min(_RUN, job.count - at)
                        await in_flight.append(run)
                        advance(len(run))
            await in_flight.flush()
            if job.deferred:
                await writer.force()
    except BookKeeperError as error:
        error.add_note(_what_there_is(writer, in_flight.acknowledged))
        raise
    finally:
        lines.close()
    if asked:
        asked.end(_what_is_kept(writer, lines))
    return int(writer.id), int(writer.last_add_confirmed)


class _RunsInFlight:
    """A few runs in flight, in order: the next lines are read while those before them become durable."""

    def __init__(self, writer: WriteHandle) -> None:
        self._writer = writer
        self._open: deque[asyncio.Task[range]] = deque()
        self.acknowledged = 0

    async def append(self, run: list[bytes]) -> None:
        """Hand it over; wait if too many are on their way. Raises: as the append of this run, or one before."""
        self._open.append(asyncio.ensure_future(self._writer.append_many(run)))
        while self._open and (len(self._open) >= _IN_FLIGHT or self._open[0].done()):
            await self._oldest()

    async def flush(self) -> None:
        """All have been acknowledged. Raises: as append."""
        while self._open:
            await self._oldest()

    async def _oldest(self) -> None:
        try:
            self.acknowledged += len(await self._open.popleft())
        except BookKeeperError:
            for task in self._open:
                task.add_done_callback(_look_at)
            raise


def _name(writer: WriteHandle, asked: Interruption) -> None:
    """Say which ledger it is before there is anything in it: whatever happens, what is there can be found."""
    note(f"writing to ledger {writer.id}")
    asked.leaves = f"ledger {writer.id} is left open; `bk ledger recover {writer.id}` closes it"


def _what_is_kept(writer: WriteHandle, lines: LineInput) -> str:
    entries = int(writer.last_add_confirmed) + 1
    kept = f"ledger {writer.id} is closed with {counted(entries, 'entry')}".replace("entrys", "entries")
    if lines.left:
        kept += f"; the last {counted(lines.left, 'byte')}, a line without its end, were not written"
    return f"{kept}, all of them durable" if entries and not lines.left else kept


async def _numbered(bk: BookKeeper, job: _Job, asked: Interruption) -> tuple[int, int]:
    """The same with the ids that the lines have.

    Raises: ClickException: a line without an id, or an id is missing: the ledger is closed below it.
    """
    writer = await bk.create_ledger(
        ensemble=job.ensemble,
        write_quorum=job.write_quorum,
        ack_quorum=job.ack_quorum,
        password=job.password,
        digest=job.digest,
        when_short=job.when_short,
        deferred_sync=job.deferred,
        advanced=True,
    )
    _name(writer, asked)
    highest, entries, number = -1, 0, 0
    lines = LineInput(job.source, line_max=bk.services.config.entry_size_max)
    try:
        async with writer:
            asked.tell(lines.stop)
            async for run in lines.runs():
                for line in run:
                    number += 1
                    if (match := _NUMBERED.fullmatch(line)) is None:
                        raise click.ClickException(
                            f"line {number} does not begin with an entry id and a blank: {line[:40]!r}; "
                            + _what_there_is(writer)
                        )
                    entry_id = int(match[1])
                    await _append_at(writer, entry_id, match[2] or b"", number)
                    highest, entries = max(highest, entry_id), entries + 1
            await writer.flush()
            if job.deferred:
                await writer.force()
            if (missing := int(writer.lowest_missing)) <= highest:
                raise click.ClickException(
                    f"no line has entry {missing}: ledger {writer.id} ends below it, and {entries - missing} entries "
                    "above it are not in it"
                )
    except BookKeeperError as error:
        error.add_note(_what_there_is(writer))
        raise
    finally:
        lines.close()
    if asked:
        asked.end(_what_is_kept(writer, lines))
    return int(writer.id), int(writer.last_add_confirmed)


async def _append_at(writer: AdvancedHandle, entry_id: int, payload: bytes, line: int) -> None:
    """Hand one over; when there is no room, wait for what can be confirmed.

    Raises: ClickException: all that has room waits above an id that has not come yet.
    """
    for last_try in (False, True):
        try:
            future = writer.append_at_nowait(entry_id, payload)
        except TooManyRequestsError:
            if last_try:
                raise click.ClickException(
                    f"line {line}: too much waits for entry {writer.lowest_missing}, which no line has had so far: "
                    f"bring the lines nearer to the order of their ids; {_what_there_is(writer)}"
                ) from None
            await writer.flush()
        except BookKeeperError as error:
            error.add_note(f"line {line}")
            raise
        else:
            future.add_done_callback(_look_at)
            return
    raise AssertionError("unreachable")


def _look_at(future: asyncio.Future[Any]) -> None:
    """What ended the writer is raised by its next call."""
    if not future.cancelled():
        future.exception()


def _what_there_is(writer: WriteHandle, acknowledged: int = 0) -> str:
    confirmed = int(writer.last_add_confirmed) + 1
    said = f"ledger {writer.id} has {confirmed} confirmed entries"
    if acknowledged <= confirmed:
        return said
    return f"{said}; {acknowledged - confirmed} more were written and are not known to be durable"


class _progress:
    """A bar on standard error when a person looks at it and the end is known; nothing otherwise."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._bar: Progress | None = None

    def __enter__(self) -> Any:
        if self._total is None or not sys.stderr.isatty():
            return lambda count: None
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("appending"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._bar.start()
        task = self._bar.add_task("append", total=self._total)
        bar = self._bar
        return lambda count: bar.advance(task, count)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
