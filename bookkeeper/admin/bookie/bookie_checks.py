"""``bk bookie check``, ``index rebuild``, ``gc --offline``: a stopped bookie's files are checked and mended by hand."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.admin.bookie.dumps import index
from bookkeeper.admin.bookie.stopped_bookie import StoppedBookie, stopped_bookie
from bookkeeper.admin.shared.options import json_option, print_json, print_table
from bookkeeper.amounts import counted, size_in_words
from bookkeeper.bookie.identity.state_files import check_state_files
from bookkeeper.errors import CorruptionError, UnsupportedFormatError
from bookkeeper.ids import IdRanges, some_of
from bookkeeper.storage.base.dirty_marker import is_marked
from bookkeeper.storage.base.durable_file import remove_files, replace_file
from bookkeeper.storage.base.manifest import Manifest
from bookkeeper.storage.compaction.log_use import uses_of
from bookkeeper.storage.entry_log.entry_log_file import log_ids, log_name
from bookkeeper.storage.index.index_segment import read_segment, segment_ids, segment_name
from bookkeeper.storage.index.segment_table import SegmentTable
from bookkeeper.storage.scrub.damage import DamagedPlace, FileKind
from bookkeeper.storage.scrub.file_checks import (
    check_journal,
    check_log,
    check_manifest,
    check_segment,
    files_of,
    last_group,
)
from bookkeeper.storage.scrub.scrub_notes import NAME as NOTES
from bookkeeper.storage.scrub.scrub_notes import ScrubNotes
from bookkeeper.storage.start.directory_id import ForeignDirectoryError, refuse_foreign

if TYPE_CHECKING:
    from bookkeeper.storage.scrub.file_checks import Check

_SHOWN: Final = 40
"""Damaged places that a table for people has at most."""


# -- check ------------------------------------------------------------------------------------------------


@click.command()
@stopped_bookie
@json_option
@click.option("--deep", is_flag=True, help="Read and check every stored byte, not only the frame of each file.")
def check(bookie: StoppedBookie, as_json: bool, deep: bool) -> None:
    """Check the files of a bookie that does not run, and change nothing.

    Every file that the manifest names must be there, whole and this bookie's, and its notes about itself must be
    readable. With --deep every record, every index page and every group of the journal is read and checked, too.
    Exit status 1: something is damaged; file and place are named. Nothing is changed: `bk bookie scrub --offline` reads
    the same, and has the next start repair the ledgers that it concerns.
    """
    with bookie.held():
        found = CheckRun()
        for kind, number, each in checks_of(bookie, deep=deep):
            found.run(kind, number, each)
        remarks = list(_remarks(bookie))
    found.print_report(as_json, remarks, deep=deep)
    if found.damages:
        sys.exit(1)


class CheckRun:
    """What checks have read and found."""

    def __init__(self, throttle: int | None = None) -> None:
        """
        Args:
            throttle: bytes a second that are read at most; None: no limit.
        """
        self._throttle, self._began = throttle, time.monotonic()
        self.damages: list[DamagedPlace] = []
        self.files: dict[FileKind, int] = dict.fromkeys(FileKind, 0)
        self.bytes: dict[FileKind, int] = dict.fromkeys(FileKind, 0)

    def run(self, kind: FileKind, number: int, check: Check) -> None:
        """Run one check to its end."""
        self.files[kind] += number
        for item in check:
            if isinstance(item, DamagedPlace):
                self.damages.append(item)
            elif kind is FileKind.STATE:
                self.files[kind] += 1
            else:
                self.bytes[kind] += item
                if self._throttle:
                    ahead = sum(self.bytes.values()) / self._throttle - (time.monotonic() - self._began)
                    time.sleep(max(0.0, ahead))

    def print_report(self, as_json: bool, remarks: list[str], *, deep: bool) -> None:
        """Print it."""
        if as_json:
            print_json(
                {
                    "deep": deep,
                    "files": {kind.word: self.files[kind] for kind in FileKind},
                    "bytes": {kind.word: self.bytes[kind] for kind in FileKind},
                    "damaged": [damage_row(each) for each in self.damages],
                    "remarks": remarks,
                }
            )
            return
        rows = [
            {
                "files": kind.word,
                "number": self.files[kind],
                "read": size_in_words(self.bytes[kind]) if self.bytes[kind] else "",
                "damaged": sum(each.kind is kind for each in self.damages),
            }
            for kind in FileKind
        ]
        print_table("checked" + ("" if deep else ", without the contents of files"), [*rows[0]], rows)
        for each in self.damages[:_SHOWN]:
            click.echo(str(each) + _affected_ledgers(each.ledgers))
        if len(self.damages) > _SHOWN:
            click.echo(f"and {len(self.damages) - _SHOWN} more; --json shows all")
        for remark in remarks:
            click.echo(remark)
        click.echo(f"{counted(len(self.damages), 'damaged place')}" if self.damages else "nothing is damaged")


def damage_row(damage: DamagedPlace) -> dict[str, Any]:
    """A damaged place as plain data; ``ledgers`` is null if nobody can tell which it concerns."""
    return {
        "kind": damage.kind.word,
        "path": damage.path,
        "offset": damage.offset,
        "bytes": damage.size,
        "what": damage.what,
        "ledgers": None if damage.ledgers is None else sorted(damage.ledgers),
    }


def _affected_ledgers(ledgers: frozenset[int] | None) -> str:
    if ledgers is None:
        return "; the ledgers of its entries are unknown"
    if not ledgers:
        return ""
    return f"; entries of {'ledger' if len(ledgers) == 1 else 'ledgers'} {some_of(sorted(ledgers), 8)}"


def checks_of(bookie: StoppedBookie, *, deep: bool) -> Iterator[tuple[FileKind, int, Check]]:
    """The check of each file, with how many files it counts for."""
    disk, storage = bookie.disk, bookie.storage
    manifest, _ = bookie.known_manifest()
    dropped = dropped_of(bookie, manifest)
    for file in files_of(disk, storage.journal_dir, manifest or without_manifest(bookie)):
        match file.kind:
            case FileKind.MANIFEST:
                yield file.kind, 1, check_manifest(disk, storage.ledger_dir)
            case FileKind.JOURNAL:
                last = last_group(disk, storage.journal_dir, file.number)
                yield file.kind, 1, check_journal(disk, storage.journal_dir, file.number, last)
            case FileKind.INDEX:
                yield file.kind, 1, check_segment(disk, storage.ledger_dir, file.number, pages=deep)
            case _:
                entry = (manifest or without_manifest(bookie)).logs[file.number]
                yield file.kind, 1, check_log(disk, storage.ledger_dir, file.number, entry, dropped, records=deep)
    yield FileKind.STATE, 0, check_state_files(disk, bookie.directory, bookie.data_directories)
    yield FileKind.STATE, 0, _foreign(bookie)


def without_manifest(bookie: StoppedBookie) -> Manifest:
    """What stands for a manifest that cannot be read: every file that is there."""
    from bookkeeper.storage.start.scan_files import scan_files

    disk, storage = bookie.disk, bookie.storage
    found = scan_files(storage, disk, bookie.data_directories, 0)
    for file in found.entry_logs.open_files():
        file.close()
    found.manifest.segments = dict.fromkeys(sorted(segment_ids(disk, storage.ledger_dir)), 0)
    return found.manifest


def _foreign(bookie: StoppedBookie) -> Check:
    """A file of another directory among these."""
    manifest, _ = bookie.known_manifest()
    if manifest is not None and manifest.directory_id:
        try:
            refuse_foreign(bookie.disk, bookie.storage, manifest.directory_id)
        except ForeignDirectoryError as error:
            yield DamagedPlace(FileKind.STATE, 0, bookie.storage.ledger_dir, 0, 0, str(error))


def dropped_of(bookie: StoppedBookie, manifest: Manifest | None) -> IdRanges:
    """The ledgers that were deleted here, as far as the index segments can be read."""
    dropped = IdRanges()
    disk, directory = bookie.disk, bookie.storage.ledger_dir
    for segment_id in manifest.segments if manifest is not None else sorted(segment_ids(disk, directory)):
        if (segment := _readable(bookie, segment_id)) is not None:
            dropped.update(segment.dropped)
    return dropped


def _readable(bookie: StoppedBookie, segment_id: int) -> SegmentTable | None:
    """An index segment; None if it cannot be read, which its check says."""
    try:
        with closing(bookie.disk.open(f"{bookie.storage.ledger_dir}/{segment_name(segment_id)}", write=False)) as file:
            return read_segment(file, segment_id)
    except (CorruptionError, UnsupportedFormatError, OSError):
        return None


def _remarks(bookie: StoppedBookie) -> Iterator[str]:
    """What is no damage, and worth knowing."""
    manifest, _ = bookie.known_manifest()
    if manifest is None:
        return
    disk, directory = bookie.disk, bookie.storage.ledger_dir
    if not manifest.clean or any(is_marked(disk, each) for each in bookie.data_directories):
        yield "the bookie was not stopped cleanly: a start replays its journal"
    if manifest.rebuild:
        yield "the next start rebuilds the index from the entry logs"
    if manifest.limbo:
        yield f"acknowledged data may be missing: {manifest.limbo}"
    stray = [log_name(each) for each in log_ids(disk, directory) if each not in manifest.logs]
    stray += [segment_name(each) for each in segment_ids(disk, directory) if each not in manifest.segments]
    if stray:
        yield f"no manifest names {', '.join(sorted(stray))}: left over, a start settles what becomes of them"


# -- scrub ------------------------------------------------------------------------------------------------


def scrub_offline(bookie: StoppedBookie, as_json: bool, throttle: int | None) -> None:
    """Check every stored byte, and note for the next start what it concerns; see the help of ``bk bookie scrub``."""
    with bookie.held():
        found = CheckRun(throttle)
        for kind, number, each in checks_of(bookie, deep=True):
            found.run(kind, number, each)
        suspects = _suspects(bookie, found.damages)
        index_damaged = any(each.kind is FileKind.INDEX for each in found.damages)
        _note_suspects(bookie, suspects)
        manifest, _ = bookie.known_manifest()
        if index_damaged and manifest is not None and not manifest.rebuild:
            replace(manifest, rebuild=True).write(bookie.disk, bookie.storage.ledger_dir, manifest)
    remarks = []
    if suspects:
        remarks.append(f"the next start suspects and repairs {counted(len(suspects), 'ledger')}")
    if index_damaged:
        remarks.append("the next start rebuilds the index from the entry logs")
    found.print_report(as_json, remarks, deep=True)
    if found.damages:
        sys.exit(1)


def _suspects(bookie: StoppedBookie, damages: list[DamagedPlace]) -> set[int]:
    """The ledgers of which entries may be lost by damage of entry logs. What is wrong with other files a start sees."""
    suspects: set[int] = set()
    for each in damages:
        if each.kind is FileKind.LOG:
            suspects |= each.ledgers if each.ledgers is not None else _everyone(bookie)
    return suspects


def _everyone(bookie: StoppedBookie) -> set[int]:
    """Every ledger that the index knows."""
    found: set[int] = set()
    for segment_id in segment_ids(bookie.disk, bookie.storage.ledger_dir):
        if (segment := _readable(bookie, segment_id)) is not None:
            found.update(row.ledger_id for row in segment.all_states())
    return found


def _note_suspects(bookie: StoppedBookie, suspects: set[int]) -> None:
    path = f"{bookie.storage.ledger_dir}/{NOTES}"
    try:
        notes = ScrubNotes.decode(bookie.disk.read_file(path), path) if bookie.disk.exists(path) else ScrubNotes()
    except (CorruptionError, UnsupportedFormatError):
        notes = ScrubNotes()
    if suspects:
        replace_file(bookie.disk, path, notes.with_suspects(suspects).encode())


# -- the index --------------------------------------------------------------------------------------------


@index.command("rebuild")
@stopped_bookie
@json_option
@click.option("--dry-run", is_flag=True, help="Only show what the entry logs hold.")
@click.option(
    "--accept-damage",
    is_flag=True,
    help="Rebuild even if entry logs are damaged: the index then lacks the damaged entries.",
)
def index_rebuild(bookie: StoppedBookie, as_json: bool, dry_run: bool, accept_damage: bool) -> None:
    """Have the next start build the index anew from the entry logs.

    The entry logs are read first. What is damaged in them would be missing in a new index: the bookie would doubt all
    ledgers that name it, until each is whole again. So damage is refused without --accept-damage. The old index stays
    until the new one is complete.
    """
    with bookie.held():
        manifest = bookie.manifest()
        found, dropped = CheckRun(), dropped_of(bookie, manifest)
        for log_id, entry in sorted(manifest.logs.items()):
            found.run(FileKind.LOG, 1, check_log(bookie.disk, bookie.storage.ledger_dir, log_id, entry, dropped))
        refused = bool(found.damages) and not accept_damage
        if not dry_run and not refused:
            replace(manifest, rebuild=True).write(bookie.disk, bookie.storage.ledger_dir, manifest)
    if as_json:
        logs, size = found.files[FileKind.LOG], found.bytes[FileKind.LOG]
        damaged = [damage_row(each) for each in found.damages]
        print_json({"entry_logs": logs, "bytes": size, "damaged": damaged, "rebuild": not dry_run and not refused})
    else:
        found.print_report(False, [], deep=True)
        if not refused:
            said = "would rebuild" if dry_run else "rebuilds"
            click.echo(f"the next start {said} the index from {counted(found.files[FileKind.LOG], 'entry log')}")
    if refused:
        raise click.ClickException(
            "the entry logs are damaged, so the index stays as it is; --accept-damage rebuilds it nevertheless"
        )


# -- garbage ----------------------------------------------------------------------------------------------


def collect_offline(bookie: StoppedBookie, as_json: bool, dry_run: bool) -> None:
    """Remove the entry logs in which no ledger lives any more; see the help of ``bk bookie gc``."""
    with bookie.held():
        manifest = bookie.manifest()
        if manifest.limbo or manifest.quarantined or manifest.rebuild:
            reason = manifest.limbo or next(iter(manifest.quarantined), "the index is to be rebuilt")
            raise click.ClickException(f"nothing is removed while something is damaged or missing: {reason}")
        for segment_id in manifest.segments:
            for item in check_segment(bookie.disk, bookie.storage.ledger_dir, segment_id):
                if isinstance(item, DamagedPlace):
                    raise click.ClickException(f"nothing is removed while something is damaged: {item}")
        dropped = dropped_of(bookie, manifest)
        uses = uses_of(bookie.disk, bookie.storage.ledger_dir, manifest.logs, dropped)
        dead = [use for use in uses if not use.filling and use.unreadable is None and not use.live]
        if dead and not dry_run:
            gone = {use.log_id for use in dead}
            left = {log_id: entry for log_id, entry in manifest.logs.items() if log_id not in gone}
            replace(manifest, logs=left).write(bookie.disk, bookie.storage.ledger_dir, manifest)
            remove_files(bookie.disk, bookie.storage.ledger_dir, [log_name(log_id) for log_id in sorted(gone)])
    rows = [
        {
            "log": use.log_id,
            "bytes": use.total,
            "live_bytes": use.live,
            "removed": use in dead,
            "left": use.unreadable or ("is being filled" if use.filling else None),
        }
        for use in uses
    ]
    won = sum(use.total for use in dead)
    if as_json:
        print_json({"logs": rows, "removed": [use.log_id for use in dead], "bytes": won, "dry_run": dry_run})
        return
    shown = [
        {
            "log": row["log"],
            "size": size_in_words(use.total),
            "alive": f"{100 * use.live // use.total} %" if use.total else "",
            "remark": row["left"] or (("would be removed" if dry_run else "removed") if row["removed"] else ""),
        }
        for row, use in zip(rows, uses, strict=True)
    ]
    print_table(counted(len(shown), "entry log"), ["log", "size", "alive", "remark"], shown, most=_SHOWN)
    click.echo(f"{size_in_words(won)} {'would come' if dry_run else 'came'} free")
