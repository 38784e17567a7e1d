"""``bk bookie journal dump``, ``log dump``, ``index dump``, ``last-mark``: what is in a bookie's files.

They read and change nothing. What is damaged is shown in its place, and the dump goes on behind it; then the exit
status is 1. On a bookie that runs the end of the newest files may be shown as it is being written.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Final

import click

from bookkeeper.admin.bookie.stopped_bookie import StoppedBookie, stopped_bookie
from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.shared.options import json_option, print_json
from bookkeeper.admin.shared.streamed_table import StreamedTable
from bookkeeper.amounts import counted
from bookkeeper.codec.shapes import Scan
from bookkeeper.errors import CorruptionError, UnsupportedFormatError, in_words
from bookkeeper.ids import some_of
from bookkeeper.option_types import WholeNumber
from bookkeeper.seams import File
from bookkeeper.storage.base.dirty_marker import is_marked
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.entry_log.entry_log_file import (
    QuarantinedStretch,
    Usage,
    check_header,
    log_ids,
    log_name,
    read_map,
    scan_pieces,
)
from bookkeeper.storage.index.entry_index import LOG_SHIFT, OFFSET_MASK
from bookkeeper.storage.index.index_segment import decode_page, read_segment, segment_ids, segment_name
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor, StateRecordKind
from bookkeeper.storage.journal.group_writer import LOST, journal_ids, journal_name, put_aside, spare_names
from bookkeeper.storage.journal.journal_format import (
    CLEAN_STOP,
    DamagedStretch,
    FileHeader,
    JournalGroup,
    read_groups,
)
from bookkeeper.storage.journal.torn_tail import rot_in

_STATES: Final = {
    StateRecordKind.KEY: "master key",
    StateRecordKind.FENCED: "fence",
    StateRecordKind.FORCED: "force",
    StateRecordKind.EXPLICIT_LAC: "explicit LAC",
    StateRecordKind.LIMBO: "limbo",
    StateRecordKind.DROPPED: "deleted",
}

_ledger_option = click.option("--ledger", type=WholeNumber(0), metavar="ID", help="Only show records of this ledger.")
_records_option = click.option("--records", is_flag=True, help="Show every record, not only what holds them.")


def _hexadecimal(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[int]:
    """Ids of files: as in their names, with or without the ending."""
    try:
        return [int(value.partition(".")[0], 16) for value in values]
    except ValueError:
        raise click.BadParameter("a file is named by its hexadecimal id, as in its name") from None


def _finish(damaged: bool) -> None:
    if damaged:
        sys.exit(1)


def _what(entry_id: int) -> str:
    """An entry, or what a state record says."""
    if entry_id >= 0:
        return "entry"
    return _STATES.get(StateRecordKind(entry_id), "") if entry_id in _STATES else f"unknown state {-entry_id}"


def _show_records(table: StreamedTable, scan: Scan, at: int, ledger: int | None, **where: object) -> None:
    """One row for each record of a piece that begins at ``at``."""
    rows = zip(scan.offsets, scan.ledger_ids, scan.entry_ids, scan.lacs, scan.sizes, strict=True)
    for offset, ledger_id, entry_id, lac, size in rows:
        if ledger is None or ledger_id == ledger:
            table.row(
                **where,
                offset=at + offset,
                ledger=ledger_id,
                entry=entry_id if entry_id >= 0 else None,
                lac=lac,
                bytes=size,
                what=_what(entry_id),
            )


# -- the journal ------------------------------------------------------------------------------------------


@click.group(cls=CommandGroup)
def journal() -> None:
    """Look at the files of a bookie's journal."""


@journal.command("dump")
@stopped_bookie
@json_option
@_records_option
@_ledger_option
@click.argument("files", nargs=-1, callback=_hexadecimal, metavar="[FILE]...")
def journal_dump(bookie: StoppedBookie, as_json: bool, records: bool, ledger: int | None, files: list[int]) -> None:
    """Show the groups of journal files (default: all), each with its place and what it holds.

    A group is what one sync made durable. With --records each record is shown, without what it says: no payloads and
    no keys. Files that a start has put aside (*.lost) are shown, too. Exit status 1: something is damaged.
    """
    directory, disk = bookie.storage.journal_dir, bookie.disk
    columns = {"file": 16, "offset": 12, "sequence": 12, "ledger": 12, "entry": 10, "lac": 10, "bytes": 10, "what": 0}
    if not (records or ledger is not None):
        columns = {"file": 16, "offset": 12, "sequence": 12, "durable_below": 13, "records": 8, "bytes": 10, "what": 0}
    dump = _JournalDump(StreamedTable(as_json, columns), records or ledger is not None, ledger)
    names = [(file_id, journal_name(file_id)) for file_id in journal_ids(disk, directory)]
    names += [(int(name.partition(".")[0], 16), name) for name in put_aside(disk, directory)]
    for file_id, name in sorted(names):
        if not files or file_id in files:
            dump.file(disk.open(f"{directory}/{name}", write=False), file_id, name)
    if missing := set(files) - {file_id for file_id, _ in names}:
        raise click.ClickException(f"{directory} has no journal file {min(missing):016x}")
    _finish(dump.damaged)


class _JournalDump:
    def __init__(self, table: StreamedTable, records: bool, ledger: int | None) -> None:
        self.table, self.records, self.ledger = table, records, ledger
        self.damaged = False

    def file(self, file: File, file_id: int, name: str) -> None:
        try:
            self._file(file, file_id, name)
        except OSError as error:
            self._bad(f"{file.path}: it cannot be read: {in_words(error, beside=file.path)}", name)
        finally:
            file.close()

    def _file(self, file: File, file_id: int, name: str) -> None:
        following = 0
        try:
            header = FileHeader.decode(file.pread(BLOCK, 0), file.path)
            following = header.first_sequence
            self.table.remark(
                f"{name}: first group {following}, directory {header.directory_id:016x}, start {header.boot}, "
                f"{file.size()} bytes" + (", put aside by a start" if name.endswith(LOST) else ""),
                file=name,
                first_sequence=following,
                directory=f"{header.directory_id:016x}",
                start=header.boot,
                bytes=file.size(),
            )
        except (CorruptionError, UnsupportedFormatError) as error:
            self._bad(str(error), name)
        for item in read_groups(file, file_id):
            if isinstance(item, JournalGroup):
                self._group(item, name)
                following = item.header.sequence + 1
            else:
                self._stretch(file, file_id, item, following, name)

    def _group(self, group: JournalGroup, name: str) -> None:
        header, scan = group.header, group.scan
        if self.records:
            where = {"file": f"{header.file_id:016x}", "sequence": header.sequence}
            _show_records(self.table, scan, header.offset, self.ledger, **where)
            return
        ledgers = sorted(set(scan.ledger_ids))
        stop = "clean stop" if header.flags & CLEAN_STOP else ""
        self.table.row(
            file=f"{header.file_id:016x}",
            offset=header.offset,
            sequence=header.sequence,
            durable_below=header.durable_below,
            records=header.records,
            bytes=header.size,
            what=stop or (f"ledgers {some_of(ledgers, 8)}" if ledgers else "empty"),
            clean_stop=bool(stop),
            ledgers=ledgers,
        )

    def _stretch(self, file: File, file_id: int, bad: DamagedStretch, following: int, name: str) -> None:
        size = bad.end - bad.offset
        where = {"offset": bad.offset, "bytes": size, "sequence": following}
        if not bad.last:
            self._bad(f"{name} at byte {bad.offset}: {size} bytes hold no valid group; later ones do", name, **where)
        elif bad.claims >= following or (proof := rot_in(file, file_id, bad.offset, following)) is not None:
            why = "it had been durable" if bad.claims >= following else proof
            self._bad(f"{name} at byte {bad.offset}: group {following} is damaged: {why}", name, **where)
        elif bad.begun:
            text = (
                f"{name} at byte {bad.offset}: group {following} was begun and is not whole: an unfinished last group"
            )
            self.table.remark(text, file=name, **where)
        else:
            self.table.remark(f"{name}: unused from byte {bad.offset} on", file=name, **where)

    def _bad(self, sentence: str, name: str, **where: object) -> None:
        self.damaged = True
        self.table.damage(sentence, file=name, **where)


# -- entry logs -------------------------------------------------------------------------------------------


@click.group(cls=CommandGroup)
def log() -> None:
    """Look at a bookie's entry logs."""


@log.command("dump")
@stopped_bookie
@json_option
@_records_option
@_ledger_option
@click.argument("files", nargs=-1, callback=_hexadecimal, metavar="[LOG]...")
def log_dump(bookie: StoppedBookie, as_json: bool, records: bool, ledger: int | None, files: list[int]) -> None:
    """Show entry logs (default: all): the ledgers in each, or with --records every record and its place.

    Without --records a log that is finished is not read: its map says which ledgers are in it. Payloads and keys are
    not shown. Exit status 1: something is damaged.
    """
    directory, disk = bookie.storage.ledger_dir, bookie.disk
    columns = {"log": 8, "ledger": 12, "records": 10, "bytes": 14}
    if records:
        columns = {"log": 8, "offset": 14, "ledger": 12, "entry": 10, "lac": 10, "bytes": 10, "what": 0}
    dump = _LogDump(bookie, StreamedTable(as_json, columns), records, ledger)
    there = log_ids(disk, directory)
    for log_id in there:
        if not files or log_id in files:
            dump.log(log_id)
    if missing := set(files) - set(there):
        raise click.ClickException(f"{directory} has no entry log {min(missing):06x}")
    _finish(dump.damaged)


class _LogDump:
    def __init__(self, bookie: StoppedBookie, table: StreamedTable, records: bool, ledger: int | None) -> None:
        self.bookie, self.table, self.records, self.ledger = bookie, table, records, ledger
        self.damaged = False
        self.manifest, reason = bookie.known_manifest()
        if reason is not None:
            self._bad(reason, None)

    def log(self, log_id: int) -> None:
        path = f"{self.bookie.storage.ledger_dir}/{log_name(log_id)}"
        try:
            file = self.bookie.disk.open(path, write=False)
            try:
                self._log(file, log_id)
            finally:
                file.close()
        except OSError as error:
            self._bad(f"{path}: it cannot be read: {in_words(error, beside=path)}", log_id)

    def _log(self, file: File, log_id: int) -> None:
        known = self.manifest.logs.get(log_id) if self.manifest is not None else None
        name, size = log_name(log_id), file.size()
        try:
            check_header(file, log_id)
        except (CorruptionError, UnsupportedFormatError) as error:
            self._bad(str(error), log_id)
        end, usage = size, None
        try:
            end, usage = read_map(file, log_id)
            state = "finished"
        except (CorruptionError, UnsupportedFormatError) as error:
            state = "not finished"
            if known is not None and known.finished:
                self._bad(str(error), log_id)
            if known is not None:
                end = known.end
        if known is None:
            state += ", in no manifest"
        self.table.remark(f"{name}: {size} bytes, {state}", log=f"{log_id:06x}", bytes=size, state=state, end=end)
        if known is not None and size < known.end:
            self._bad(f"{name}: it ends at byte {size}, and {known.end} bytes were synced", log_id)
        if not self.records and usage is not None:
            self._ledgers(log_id, usage)
            return
        used: Usage = {}
        self._records(file, log_id, min(end, size), torn=False, usage=used)
        if end < size and usage is None:  # no checkpoint has covered this
            self.table.remark(f"{name}: from byte {end} on, what no checkpoint has covered", log=f"{log_id:06x}")
            self._records(file, log_id, size, begin=end, torn=True, usage=used)
        if not self.records:
            self._ledgers(log_id, used)

    def _records(self, file: File, log_id: int, end: int, *, begin: int = BLOCK, torn: bool, usage: Usage) -> None:
        for piece in scan_pieces(file, end, begin=begin, tail_may_be_torn=torn):
            if isinstance(piece, QuarantinedStretch):
                count = piece.end - piece.offset
                text = f"{log_name(log_id)} at byte {piece.offset}: {count} bytes hold no valid record"
                self._bad(text, log_id, offset=piece.offset, bytes=count)
            elif self.records:
                _show_records(self.table, piece.scan, piece.at, self.ledger, log=f"{log_id:06x}")
            else:
                _count(piece.scan, usage)

    def _ledgers(self, log_id: int, usage: Usage) -> None:
        for ledger_id, (size, records) in sorted(usage.items()):
            if self.ledger is None or self.ledger == ledger_id:
                self.table.row(log=f"{log_id:06x}", ledger=ledger_id, records=records, bytes=size)

    def _bad(self, sentence: str, log_id: int | None, **where: object) -> None:
        self.damaged = True
        self.table.damage(sentence, log=None if log_id is None else f"{log_id:06x}", **where)


def _count(scan: Scan, usage: Usage) -> None:
    from bookkeeper.storage.entry_log.entry_log_file import usage_of

    usage_of(scan, usage)


# -- the index --------------------------------------------------------------------------------------------


@click.group(cls=CommandGroup)
def index() -> None:
    """Look at a bookie's index, which says where each entry is, or have it built anew."""


@index.command("dump")
@stopped_bookie
@json_option
@_ledger_option
@click.option("--places", is_flag=True, help="Show the place of every entry: entry log and offset.")
def index_dump(bookie: StoppedBookie, as_json: bool, ledger: int | None, places: bool) -> None:
    """Show the index segments, older before newer: what they say of ledgers, and where entries are.

    Where two rows name one entry, the later one holds. What was added since the last checkpoint is in the journal and
    not yet here. Exit status 1: something is damaged.
    """
    columns = {"segment": 16, "ledger": 12, "first_entry": 12, "entries": 10, "log": 8, "offset": 14, "what": 0}
    table = StreamedTable(as_json, columns)
    manifest, reason = bookie.known_manifest()
    directory, disk, damaged = bookie.storage.ledger_dir, bookie.disk, reason is not None
    if reason is not None:
        table.damage(reason)
    there = sorted(segment_ids(disk, directory))
    order = list(manifest.segments) if manifest is not None else there
    for segment_id in [*order, *(each for each in there if each not in order)]:
        path = f"{directory}/{segment_name(segment_id)}"
        named, remark = manifest is None or segment_id in manifest.segments, ""
        if not named:
            remark = ", in no manifest"
        elif manifest is not None and segment_id == manifest.deletions:
            remark = ", the list of all deletions"
        table.remark(f"{segment_name(segment_id)}{remark}", segment=f"{segment_id:016x}", named=named)
        try:
            file = disk.open(path, write=False)
            try:
                damaged |= _segment(table, file, segment_id, ledger, places)
            finally:
                file.close()
        except (CorruptionError, UnsupportedFormatError) as error:
            damaged = True
            table.damage(str(error), segment=f"{segment_id:016x}")
        except OSError as error:
            damaged = True
            table.damage(f"{path}: it cannot be read: {in_words(error, beside=path)}", segment=f"{segment_id:016x}")
    _finish(damaged)


def _segment(table: StreamedTable, file: File, segment_id: int, ledger: int | None, places: bool) -> bool:
    """Show one segment. Returns whether a page of it is damaged."""
    found, name, damaged = read_segment(file, segment_id), f"{segment_id:016x}", False
    for state in found.all_states():
        if ledger is None or ledger == state.ledger_id:
            _state(table, name, state)
    for first, last in found.dropped:
        if ledger is None or first <= ledger <= last:
            what = "deleted" if last == first else f"deleted, up to {last}"
            table.row(segment=name, ledger=first, what=what, last=last)
    for extent in found.all_extents():
        if ledger is not None and extent.ledger_id != ledger:
            continue
        if not places:
            table.row(
                segment=name,
                ledger=extent.ledger_id,
                first_entry=extent.first,
                entries=extent.present,
                what=f"page at byte {extent.offset}",
            )
            continue
        try:
            page = decode_page(file.pread(8 * extent.count, extent.offset), extent, file.path)
        except CorruptionError as error:
            damaged = True
            table.damage(str(error), segment=name, ledger=extent.ledger_id, first_entry=extent.first)
            continue
        for entry_id, place in enumerate(page, extent.first):
            if place:
                table.row(
                    segment=name,
                    ledger=extent.ledger_id,
                    first_entry=entry_id,
                    entries=1,
                    log=f"{place >> LOG_SHIFT:06x}",
                    offset=place & OFFSET_MASK,
                    what="entry",
                )
    return damaged


def _state(table: StreamedTable, name: str, state: LedgerDescriptor) -> None:
    said = [f"entries {state.first_entry}..{state.last_entry}" if state.last_entry >= 0 else "no entries"]
    said += ["fenced"] * state.fenced + [f"last add confirmed {state.lac}"]
    said += [f"explicitly {state.explicit_lac}"] * (state.explicit_blob is not None)
    said += ["no master key"] * (state.key is None)
    table.row(
        segment=name,
        ledger=state.ledger_id,
        what=", ".join(said),
        fenced=state.fenced,
        last_add_confirmed=state.lac,
        first_of_all=state.first_entry,
        last_of_all=state.last_entry,
        bytes=state.size,
    )


# -- the mark ---------------------------------------------------------------------------------------------


@click.command("last-mark")
@stopped_bookie
@json_option
def last_mark(bookie: StoppedBookie, as_json: bool) -> None:
    """Show how far the last checkpoint covers the journal, and what a start would have to replay."""
    manifest, disk = bookie.manifest(), bookie.disk
    behind = [file_id for file_id in journal_ids(disk, bookie.storage.journal_dir) if file_id >= manifest.file_id]
    document = {
        "journal_file": f"{manifest.file_id:016x}",
        "group": manifest.sequence,
        "replayed": [journal_name(file_id) for file_id in behind],
        "spare_files": len(spare_names(disk, bookie.storage.journal_dir)),
        "directory": f"{manifest.directory_id:016x}",
        "start": manifest.boot,
        "clean": manifest.clean and not any(is_marked(disk, each) for each in bookie.data_directories),
        "entry_logs": len(manifest.logs),
        "index_segments": len(manifest.segments),
        "index_is_rebuilt": manifest.rebuild,
        "limbo": manifest.limbo,
        "damaged": manifest.quarantined,
    }
    if as_json:
        print_json(document)
        return
    click.echo(f"covered: everything up to group {manifest.sequence}, in {journal_name(manifest.file_id)}")
    clean = "no: a start replays what is behind the mark" if not document["clean"] else "yes"
    click.echo(f"stopped cleanly: {clean}")
    for name in _names(bookie, behind):
        click.echo(f"a start reads {name}")
    files = f"{counted(len(manifest.logs), 'entry log')}, {counted(len(manifest.segments), 'index segment')}"
    click.echo(f"{files}; written by start {manifest.boot} of the bookie")
    if manifest.rebuild:
        click.echo("the next start rebuilds the index from the entry logs")
    if manifest.limbo:
        click.echo(f"acknowledged data may be missing: {manifest.limbo}")
    for place in manifest.quarantined:
        click.echo(f"damaged: {place}")


def _names(bookie: StoppedBookie, file_ids: list[int]) -> Iterator[str]:
    for file_id in file_ids:
        yield os.path.join(bookie.storage.journal_dir, journal_name(file_id))
