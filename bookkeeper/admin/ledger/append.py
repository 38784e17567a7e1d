"""``bk ledger append``: creates a ledger, writes, closes it and prints its id. A ledger is never reopened for writing.

``--deferred`` appends without waiting for the disks and forces once, in the end; ``--with-ids`` takes the entry
ids from the lines.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click
from click.core import ParameterSource

from bookkeeper.admin.shared.interruption import Interruption, note
from bookkeeper.admin.shared.line_input import LineInput
from bookkeeper.admin.shared.options import (
    F,
    connected,
    finish,
    json_option,
    metadata_option,
    password_option,
    print_json,
)
from bookkeeper.admin.shared.progress import progress_bar
from bookkeeper.amounts import counted
from bookkeeper.client.config import ACK_QUORUM, ENSEMBLE, WRITE_QUORUM
from bookkeeper.errors import BookKeeperError, TooManyRequestsError
from bookkeeper.option_types import WholeNumber

if TYPE_CHECKING:
    from bookkeeper.client.bookkeeper import BookKeeper
    from bookkeeper.client.ledgers.ledger_creation import WhenShortName
    from bookkeeper.client.write.advanced_handle import AdvancedHandle
    from bookkeeper.client.write.write_handle import WriteHandle


_OPTIONS = (
    click.option(
        "--ensemble",
        type=WholeNumber(1),
        metavar="N",
        default=ENSEMBLE,
        show_default=True,
        help="Bookies that share the ledger.",
    ),
    click.option(
        "--write-quorum",
        type=WholeNumber(1),
        metavar="N",
        default=WRITE_QUORUM,
        show_default=True,
        help="Copies of each entry.",
    ),
    click.option(
        "--ack-quorum",
        type=WholeNumber(1),
        metavar="N",
        default=ACK_QUORUM,
        show_default=True,
        help="Copies that must be durable before an entry counts as written.",
    ),
    click.option(
        "--digest",
        type=click.Choice(["crc32c", "crc32", "hmac", "dummy"]),
        default="crc32c",
        show_default=True,
        help="How an entry is checked when it is read; dummy: not at all.",
    ),
)


def ledger_shape_options(function: F) -> F:
    """``--ensemble``, ``--write-quorum``, ``--ack-quorum`` and ``--digest``, in this order in the help."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_RUN = 512
"""Entries handed to the client at once: many enough to be cheap, few enough to bound the memory."""

_IN_FLIGHT = 4
"""The most such runs in flight."""

COUNT: Final = 1000
_NUMBERED = re.compile(rb"(\d{1,18})(?:[ \t](.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """The options of one append."""

    source: BinaryIO
    size: int | None
    count: int
    deferred: bool
    ledger: Mapping[str, Any] = field(repr=False)
    """What ``create_ledger`` gets."""


@click.command()
@metadata_option
@password_option
@json_option
@click.argument("source", type=click.File("rb"), default="-")
@click.option("--size", type=WholeNumber(0), metavar="BYTES", help="Write entries of this many bytes instead of lines.")
@click.option(
    "--count",
    type=WholeNumber(1),
    metavar="N",
    default=COUNT,
    show_default=True,
    help="With --size: the number of entries.",
)
@click.option(
    "--with-ids", is_flag=True, help="Each line begins with its entry's id and a blank; the lines come in any order."
)
@click.option(
    "--deferred",
    is_flag=True,
    help="Do not wait for the disks with each entry; make all entries durable at the end, on every bookie.",
)
@ledger_shape_options
@click.option(
    "--tamper-evident",
    is_flag=True,
    help="Give entries a digest that nobody can make without the password: as --digest hmac.",
)
@click.option("--unsafe-without-digest", is_flag=True, help="Required with --digest dummy: readers then check nothing.")
@click.option(
    "--when-short",
    type=click.Choice(["fail", "name_absent"]),
    default="fail",
    show_default=True,
    help="With fewer bookies up than the ensemble needs: fail, or name absent bookies while an ack quorum is up.",
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
    when_short: WhenShortName,
    **shape: Any,
) -> None:
    """Create a ledger, write the lines of SOURCE (default: standard input) as entries, close it, print its id.

    Each line becomes durable when it arrives. Standard error shows the ledger's id at once. Ctrl-C ends the input: the
    lines until then are durable, and the ledger is closed with them. A second Ctrl-C leaves the ledger open.

    \b
    Examples:
      seq 1000 | bk ledger append
      bk ledger append --size 1024 --count 100000 --deferred
      printf '1 second\\n0 first\\n' | bk ledger append --with-ids
    """
    _refuse_combinations(size, with_ids, deferred, when_short)
    ledger = {**shape, "password": password.encode(), "when_short": when_short, "deferred_sync": deferred}
    job = _Job(source=source, size=size, count=count, deferred=deferred, ledger=ledger)

    async def work() -> tuple[int, int]:
        with Interruption() as asked:
            async with connected(metadata, makes=True) as bk:
                return await (_append_with_ids(bk, job, asked) if with_ids else _append_in_order(bk, job, asked))

    ledger_id, last = finish(work(), changes=True)
    if as_json:
        print_json({"ledger": ledger_id, "entries": last + 1})
    else:
        click.echo(ledger_id)


def _refuse_combinations(size: int | None, with_ids: bool, deferred: bool, when_short: str) -> None:
    """Refuse options that exclude each other, or that have no effect together. Raises UsageError."""
    ctx = click.get_current_context()
    given = {name for name in ("count", "source") if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    if size is None and "count" in given:
        raise click.UsageError("--count needs --size: without --size every line is one entry", ctx)
    if size is not None and "source" in given:
        raise click.UsageError("give SOURCE or --size, not both: --size generates the entries", ctx)
    if size is not None and with_ids:
        raise click.UsageError("give --with-ids or --size, not both: the lines have the ids", ctx)
    if deferred and when_short != "fail":
        raise click.UsageError(
            (
                "--deferred needs every bookie of the ensemble at the end, so it cannot be used with "
                f"--when-short {when_short}"
            ),
            ctx,
        )


async def _append_in_order(bk: BookKeeper, job: _Job, asked: Interruption) -> tuple[int, int]:
    """Create the ledger, write it, close it. Returns its id and its last entry."""
    writer = await bk.create_ledger(**job.ledger)
    _announce(writer, asked)
    in_flight = RunsInFlight(writer, bk.services.config.entry_size_max)
    lines = LineInput(job.source, line_max=bk.services.config.entry_size_max)
    try:
        async with writer:
            if job.size is None:
                asked.on_interrupt(lines.stop)
                async for run in lines.runs():
                    for at in range(0, len(run), _RUN):
                        await in_flight.append(run[at : at + _RUN])
            else:
                with progress_bar("appending", f"0/{job.count}") as (update, _):
                    for at in range(0, job.count, _RUN):
                        if asked:
                            break
                        run = [bytes(job.size)] * min(_RUN, job.count - at)
                        await in_flight.append(run)
                        update(completed=at + len(run), total=job.count, said=f"{at + len(run)}/{job.count}")
            await in_flight.flush()
            if job.deferred:
                await writer.force()
    except BookKeeperError as error:
        error.add_note(_confirmed_so_far(writer, in_flight.acknowledged))
        raise
    finally:
        lines.close()
    if asked:
        asked.end(_written_entries(writer, lines))
    return int(writer.id), int(writer.last_add_confirmed)


class RunsInFlight:
    """A few runs in flight, in order. The next lines are read while earlier ones become durable."""

    def __init__(self, writer: WriteHandle, entry_size_max: int) -> None:
        self._writer, self._entry_size_max = writer, entry_size_max
        self._open: deque[asyncio.Task[range]] = deque()
        self.acknowledged = 0

    async def append(self, run: list[bytes]) -> None:
        """Hand a run over. Waits if too many are in flight. Raises the error of this run, or of an earlier one."""
        self._open.append(asyncio.ensure_future(self._writer.append_many(run)))
        if any(len(line) > self._entry_size_max for line in run):
            await self.flush()  # it is refused: what follows in the input, the rest of that line, must not be written
        while self._open and (len(self._open) >= _IN_FLIGHT or self._open[0].done()):
            await self._oldest()

    async def flush(self) -> None:
        """Wait until all runs are acknowledged. Raises as :meth:`append` does."""
        while self._open:
            await self._oldest()

    async def _oldest(self) -> None:
        try:
            self.acknowledged += len(await self._open.popleft())
        except BookKeeperError:
            for task in self._open:
                task.add_done_callback(_retrieve_error)
            raise


def _announce(writer: WriteHandle, asked: Interruption) -> None:
    """Print the ledger's id before it has entries, so that they can be found whatever happens."""
    note(f"writing to ledger {writer.id}")
    asked.leaves = f"ledger {writer.id} is left open; `bk ledger recover {writer.id}` closes it"


def _written_entries(writer: WriteHandle, lines: LineInput) -> str:
    entries = int(writer.last_add_confirmed) + 1
    kept = f"ledger {writer.id} is closed with {counted(entries, 'entry')}"
    if lines.left:
        kept += f"; the last {counted(lines.left, 'byte')} form a line without its end, and were not written"
    return f"{kept}, all of them durable" if entries and not lines.left else kept


async def _append_with_ids(bk: BookKeeper, job: _Job, asked: Interruption) -> tuple[int, int]:
    """Like :func:`_append_in_order`, but with the ids in the lines.

    Raises: ClickException: a line has no id, or an id is missing; the ledger is closed below that id.
    """
    writer = await bk.create_ledger(advanced=True, **job.ledger)
    _announce(writer, asked)
    highest, entries, number = -1, 0, 0
    lines = LineInput(job.source, line_max=bk.services.config.entry_size_max)
    try:
        async with writer:
            asked.on_interrupt(lines.stop)
            async for run in lines.runs():
                for line in run:
                    number += 1
                    if (match := _NUMBERED.fullmatch(line)) is None:
                        raise click.ClickException(
                            (
                                f"line {number} does not begin with an entry id and a blank: "
                                f"{line[:40].decode(errors='replace')!r}; "
                            )
                            + _confirmed_so_far(writer)
                        )
                    entry_id = int(match[1])
                    await _append_at(writer, entry_id, match[2] or b"", number)
                    highest, entries = max(highest, entry_id), entries + 1
            await writer.flush()
            if job.deferred:
                await writer.force()
            if (missing := int(writer.lowest_missing)) <= highest:
                raise click.ClickException(
                    f"no line has the id {missing}: ledger {writer.id} ends below it, and "
                    f"{counted(entries - missing, 'entry')} with higher ids are not in it"
                )
    except BookKeeperError as error:
        error.add_note(_confirmed_so_far(writer))
        raise
    finally:
        lines.close()
    if asked:
        asked.end(_written_entries(writer, lines))
    return int(writer.id), int(writer.last_add_confirmed)


async def _append_at(writer: AdvancedHandle, entry_id: int, payload: bytes, line: int) -> None:
    """Hand one entry over. If there is no room, wait for entries that can be confirmed.

    Raises: ClickException: there is no room, because everything waits for an id that has not come yet.
    """
    for last_try in (False, True):
        try:
            future = writer.append_at_nowait(entry_id, payload)
        except TooManyRequestsError:
            if last_try:
                raise click.ClickException(
                    f"line {line}: too many entries wait for entry {writer.lowest_missing}, which no line "
                    "has had so far. Sort the lines, so that their ids come closer to order; "
                    f"{_confirmed_so_far(writer)}"
                ) from None
            await writer.flush()
        except BookKeeperError as error:
            error.add_note(f"line {line}")
            raise
        else:
            future.add_done_callback(_retrieve_error)
            return
    raise AssertionError("unreachable")


def _retrieve_error(future: asyncio.Future[Any]) -> None:
    """Take a failed append's error, so that asyncio does not report it. The writer's next call raises it."""
    if not future.cancelled():
        future.exception()


def _confirmed_so_far(writer: WriteHandle, acknowledged: int = 0) -> str:
    confirmed = int(writer.last_add_confirmed) + 1
    said = f"ledger {writer.id} has {counted(confirmed, 'confirmed entry')}"
    if acknowledged <= confirmed:
        return said
    return f"{said}; {acknowledged - confirmed} more were written and are not known to be durable"
