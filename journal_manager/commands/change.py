"""``bk journal format``, ``recover``, ``purge``, ``discard``, ``sweep``, ``convert``: they become a journal's owner."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

import click

from bookkeeper.admin.shared.options import json_option, print_json
from bookkeeper.amounts import counted
from bookkeeper.option_types import AnyWholeNumber, Number, WholeNumber
from journal_manager.commands.shared import (
    OWNER,
    TxIdType,
    as_owner,
    complete,
    journal_argument,
    print_removed,
    segment_row,
    take_over_option,
)
from journal_manager.edits import SegmentInfo
from journal_manager.errors import JournalCorruptionError, JournalExistsError
from journal_manager.journals.backend import JournalReader, JournalWriter, NamespaceInfo, RecoveryReport, SegmentWriter
from journal_manager.journals.capabilities import DescribableReader, Discard, Orphan, OrphanSweep, capability
from journal_manager.journals.chain import purgeable
from journal_manager.journals.open_journal import format_journal, has_data, open_reader, open_snapshots, open_writer
from journal_manager.snapshots.retention import RetentionPolicy, plan_retention
from journal_manager.snapshots.snapshots import SnapshotInfo, SnapshotStore, restore_newest

USUAL: Final = RetentionPolicy()
"""What a purge keeps, unless it is told."""


@click.command("format")
@click.option("--namespace-id", type=AnyWholeNumber(), metavar="N", default=0, help="The namespace's number.")
@click.option("--cluster-id", default="", metavar="TEXT", help="The namespace's cluster.")
@click.option("--pool-id", default="", metavar="TEXT", help="The namespace's block pool.")
@click.option("--force", is_flag=True, help="Remove existing edits without asking.")
@journal_argument
def format_command(namespace_id: int, cluster_id: str, pool_id: str, force: bool, uri: str) -> None:
    """Make an empty journal. Asks, then removes existing edits."""

    async def work(sure: bool) -> bool:
        if not sure and await has_data(uri):
            return False
        namespace = NamespaceInfo(namespace_id, cluster_id, pool_id)
        await format_journal(uri, namespace=namespace, force=sure)
        return True

    if not complete(work(force), changes=True):
        click.confirm(f"There are edits in {uri}. Remove them, and fence whoever writes there now?", abort=True)
        complete(work(True), changes=True)
    click.echo(f"{uri} is empty")


@click.command()
@json_option
@take_over_option
@journal_argument
def recover(as_json: bool, yes: bool, uri: str) -> None:
    """Fence the journal's writer, and end the segment that it left open at its last durable edit."""

    async def recovered(writer: JournalWriter) -> RecoveryReport:
        return writer.recovery

    report = as_owner(uri, yes, recovered)
    if as_json:
        print_json(
            {
                "epoch": report.token.epoch,
                "last": report.last_txid,
                "finalized": [segment_row(segment) for segment in report.finalized],
                "removed_empty": [segment_row(segment) for segment in report.removed_empty],
            }
        )
        return
    for segment in report.finalized:
        click.echo(f"the segment from edit {segment.first} ends at edit {segment.last}")
    for segment in report.removed_empty:
        click.echo(f"the segment from edit {segment.first} had no edit and was removed")
    end = f"the last edit is {report.last_txid}" if report.last_txid else "it has no edits"
    click.echo(f"epoch {report.token.epoch}; {end}")


@click.command()
@click.option("--below", type=TxIdType(), help="Remove segments that end below this edit, without regard to snapshots.")
@click.option(
    "--keep-snapshots",
    type=WholeNumber(1),
    metavar="N",
    help=f"The newest snapshots that stay.  [default: {USUAL.snapshots}]",
)
@click.option(
    "--extra-edits",
    type=WholeNumber(0),
    metavar="N",
    help=f"Edits before the oldest kept snapshot that stay.  [default: {USUAL.extra_txns}]",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed. This does not take the journal over.")
@take_over_option
@journal_argument
def purge(
    below: int | None, keep_snapshots: int | None, extra_edits: int | None, dry_run: bool, yes: bool, uri: str
) -> None:
    """Remove old snapshots, and the edits before the oldest that is kept.

    Only whole segments go, and never the newest one. Without a snapshot nothing is removed, unless --below says so.
    """
    if below is not None and (keep_snapshots is not None or extra_edits is not None):
        raise click.UsageError("--below takes neither --keep-snapshots nor --extra-edits")
    policy = RetentionPolicy(
        USUAL.snapshots if keep_snapshots is None else keep_snapshots,
        USUAL.extra_txns if extra_edits is None else extra_edits,
    )

    async def plan(reader: JournalReader) -> tuple[tuple[int, ...], int]:
        if below is not None:
            return (), below
        async with await open_snapshots(uri) as store:
            planned = plan_retention(policy, [info.at for info in await store.list()], await reader.segments())
            return planned.snapshots, planned.purge_below

    async def read_plan() -> tuple[tuple[int, ...], tuple[SegmentInfo, ...]]:
        async with await open_reader(uri) as reader:
            snapshots, purge_below = await plan(reader)
            return snapshots, purgeable(await reader.segments(), purge_below)

    async def remove(writer: JournalWriter) -> tuple[tuple[int, ...], tuple[SegmentInfo, ...]]:
        snapshots, purge_below = await plan(writer)  # as the owner: nobody discards what it rests on
        for at in snapshots:
            await writer.delete_snapshot(at)
        async with await open_snapshots(uri) as store:  # an upgrade that is in progress keeps some
            left = {info.at for info in await store.list()}
        return tuple(at for at in snapshots if at not in left), await writer.purge(purge_below)

    snapshots, gone = complete(read_plan()) if dry_run else as_owner(uri, yes, remove)
    verb = "would be removed" if dry_run else "removed"
    for at in snapshots:
        click.echo(f"{verb}: the snapshot at edit {at}")
    for segment in gone:
        click.echo(f"{verb}: the edits from {segment.first} to {segment.last}")
    if not snapshots and not gone:
        click.echo("nothing to remove")


@click.command()
@click.option(
    "--from", "first", type=TxIdType(), required=True, help="The first edit to remove: the first of a segment."
)
@take_over_option
@journal_argument
def discard(first: int, yes: bool, uri: str) -> None:
    """Remove the newest edits, and the snapshots that contain them.

    This discards what was acknowledged. It is meant for a return to an earlier version of a program, whose state
    before the edit --from was kept.
    """

    async def remove(writer: JournalWriter) -> tuple[SegmentInfo, ...]:
        return await capability(writer, Discard).discard_from(first)  # type: ignore[type-abstract]

    question = f"Remove the edits of {uri} from {first} on for ever, and fence its writer?"
    gone = as_owner(uri, yes, remove, question)
    print_removed(gone)
    if not gone:
        click.echo("nothing to remove")


@click.command()
@json_option
@click.option("--delete", is_flag=True, help="Delete what is found. Without it nothing is removed.")
@click.option(
    "--older-than",
    type=Number(0),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="Only ledgers that were made at least so long ago.",
)
@take_over_option
@journal_argument
def sweep(as_json: bool, delete: bool, older_than: float, yes: bool, uri: str) -> None:
    """Find what crashes left behind: ledgers that were made for the journal, and that nothing refers to."""

    async def orphans(writer: JournalWriter) -> tuple[Orphan, ...]:
        sweeper = capability(writer, OrphanSweep)  # type: ignore[type-abstract]
        return await (sweeper.sweep_orphans if delete else sweeper.find_orphans)(older_than_s=older_than)

    found = [
        {"location": each.location, "made_for": each.purpose, "age_s": round(each.age_s), "bytes": each.bytes}
        for each in as_owner(uri, yes, orphans)
    ]
    if as_json:
        print_json(found)
        return
    verb = "deleted" if delete else "found"
    for each in found:
        click.echo(f"{verb}: {each['location']}, made for {each['made_for']}, {each['bytes']} bytes")
    click.echo(f"{counted(len(found), 'orphan')} {verb}")


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
def convert(source: str, target: str) -> None:
    """Copy a journal to another address: its edits with their ids, and its newest snapshot that is intact.

    FROM is only read, as far as its edits are durable now. TO must hold no edits; it gets FROM's namespace. Stop FROM's
    writer first: what it logs later is not copied.
    """

    async def work() -> tuple[int, int | None]:
        if await has_data(target):
            raise JournalExistsError(f"there are edits in {target}: a journal is copied to an empty one only")
        async with await open_reader(source) as reader:
            discarded = await reader.discarded()
            namespace = (await reader.describe()).namespace if isinstance(reader, DescribableReader) else None
            await format_journal(target, namespace=namespace)
            async with await open_writer(target, owner=OWNER, create=False) as writer:
                count = 0
                for segment in await reader.segments():
                    count += await _copy(reader, segment, writer)
                async with await open_snapshots(source) as store:
                    at = await _copy_snapshot(store, writer)
                if await reader.discarded() != discarded:
                    raise JournalCorruptionError(
                        f"edits of {source} were discarded while it was copied, so {target} holds some that are not "
                        f"there any more: format {target}, and copy again"
                    )
        return count, at

    count, at = complete(work(), changes=True)
    snapshot = "no snapshot" if at is None else f"the snapshot at edit {at}"
    click.echo(f"copied {counted(count, 'edit')} and {snapshot} from {source} to {target}")


async def _copy(reader: JournalReader, segment: SegmentInfo, writer: JournalWriter) -> int:
    """Copy one segment; returns the number of its edits. An open one is copied as far as it is durable."""
    copied: SegmentWriter | None = None
    last = segment.first - 1
    async for batch in reader.read(segment, segment.first):
        if copied is None:
            copied = await writer.start_segment(segment.first, segment.layout_version)
        for part in batch.parts(writer.max_batch_bytes):
            await copied.append(part)
            last = part.last
    if copied is not None:
        await copied.close()
        await writer.finalize_segment(segment.first, last)
    return last - segment.first + 1


async def _copy_snapshot(store: SnapshotStore, writer: JournalWriter) -> int | None:
    async def keep(info: SnapshotInfo, chunks: AsyncGenerator[bytes, None]) -> None:
        if info.at <= writer.durable_txid:
            await writer.save_snapshot(info.at, chunks)

    found = await restore_newest(store, keep)
    return None if found is None or found.at > writer.durable_txid else found.at
