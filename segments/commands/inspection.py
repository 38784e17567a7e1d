"""``bk stream list``, ``show``, ``explain``: they change nothing and fence nobody."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from bookkeeper.admin.shared.options import json_option, metadata_option, print_json, print_table
from bookkeeper.amounts import counted
from segments.checks.overview import StreamOverview
from segments.commands.shared import (
    HOLD_COLUMNS,
    complete,
    hold_row,
    position_text,
    print_rows,
    segment_row,
    stream_argument,
    streams_at,
    with_stream,
)
from segments.retention.retention import RetentionReport


@click.command("list")
@metadata_option
@json_option
@click.argument("prefix", default="")
def list_command(metadata: str, as_json: bool, prefix: str) -> None:
    """List the streams whose names begin with PREFIX.

    Records and bytes are those of completed segments: what an open one holds, its writer knows. Records that are
    truncated, and still stored, are counted apart; the bytes are theirs, too.
    """

    async def work() -> list[dict[str, object]]:
        async with streams_at(metadata) as namespace:
            return [
                {
                    "stream": info.name,
                    "writer": info.owner or None,
                    "sealed": info.sealed,
                    "segments": info.segments,
                    "records": info.records,
                    "truncated": info.truncated,
                    "bytes": info.bytes,
                    "start": position_text(info.start),
                }
                async for info in namespace.infos(prefix)
            ]

    rows = complete(work())
    columns = ("stream", "writer", "sealed", "segments", "records", "truncated", "bytes", "start")
    none = f"there is no stream whose name begins with {prefix!r}" if prefix else "there are no streams"
    print_rows(as_json, "streams", _without_nothing(columns, rows), rows, none)


@click.command()
@metadata_option
@json_option
@stream_argument
def show(metadata: str, as_json: bool, name: str) -> None:
    """Show a stream: its writer, settings, segments, cursors and holds.

    Records and bytes are those of completed segments: what an open one holds, its writer knows. A segment's records are
    all that it stores; how many of them are truncated, so that readers do not see them, stands beside them.
    """
    shown = with_stream(metadata, name, lambda stream: stream.show())
    info = shown.info
    found: dict[str, Any] = {
        "stream": info.name,
        "id": info.stream_id,
        "writer": info.owner or None,
        "location": shown.location or None,
        "epoch": info.epoch,
        "sealed": info.sealed,
        "start": position_text(info.start),
        "last": position_text(shown.last),
        "records": info.records,
        "truncated": info.truncated,
        "bytes": info.bytes,
        "next_ledger": shown.next_ledger,
        "removing": list(shown.removing),
        "settings": asdict(shown.config),
        "segments": _segment_rows(shown),
        "cursors": [{"cursor": each.name, "needs": position_text(each.needs)} for each in shown.cursors],
        "holds": [hold_row(hold, shown.at_ms) for hold in shown.holds],
    }
    if as_json:
        print_json(found)
        return
    writer = f"written by {found['writer']}, epoch {found['epoch']}" if found["writer"] else "nobody writes"
    state = "sealed" if found["sealed"] else writer
    click.echo(f"{found['stream']}: {state}; it begins at {found['start']}; id {found['id']}")
    if found["removing"]:
        click.echo(f"{counted(len(found['removing']), 'ledger')} to be deleted: bk stream purge does it")
    print_table(
        "settings",
        ("setting", "value"),
        [{"setting": key, "value": _as_given(value)} for key, value in sorted(flat(found["settings"]).items())],
    )
    columns = ("segment", "ledger", "first_seq_no", "records", "truncated", "bytes", "created", "completed")
    segments = list(map(_shown, found["segments"]))
    print_table("segments", _without_nothing(columns, segments), segments)
    if found["cursors"]:
        print_table("cursors", ("cursor", "needs"), found["cursors"])
    if found["holds"]:
        print_table("holds", HOLD_COLUMNS, found["holds"])


def _segment_rows(shown: StreamOverview) -> list[dict[str, object]]:
    """The segments' rows, with how many records of each are truncated: the oldest are."""
    rows, left = [], shown.info.truncated
    for segment in shown.segments:
        truncated = 0 if segment.is_open else min(segment.records, left)
        left -= truncated
        rows.append({**segment_row(segment), "truncated": truncated})
    return rows


def _without_nothing(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """The columns, without that of truncated records where there are none."""
    return columns if any(row["truncated"] for row in rows) else tuple(each for each in columns if each != "truncated")


def _as_given(value: object) -> object:
    """The value of a setting as ``--set`` takes it."""
    return str(value).lower() if isinstance(value, bool) else value


def _shown(segment: dict[str, Any]) -> dict[str, Any]:
    """A segment's row for people: its times in UTC, without saying so each time."""
    created, completed = (
        None if time is None else time.replace("T", " ").removesuffix("+00:00")
        for time in (segment["created"], segment["completed"])
    )
    return {**segment, "created": created, "completed": completed or segment["state"]}


def flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with dotted names."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": each for inner, each in flat(value).items()}
        else:
            found[name] = "none" if value is None else value
    return found


@click.command()
@metadata_option
@json_option
@stream_argument
def explain(metadata: str, as_json: bool, name: str) -> None:
    """Say of each segment why it is kept, or that it may go."""
    report = with_stream(metadata, name, lambda stream: stream.explain_retention())
    if as_json:
        print_json(report_document(report))
        return
    rows = [
        {
            "segment": each.segment.number,
            "ledger": each.segment.ledger_id,
            "bytes": None if each.segment.is_open else each.segment.bytes,
            "": "goes" if each.goes else "stays",
            "why": each.text,
        }
        for each in report.segments
    ]
    print_table(f"segments of {name}", ("segment", "ledger", "bytes", "", "why"), rows)
    for cursor in report.expired_cursors:
        click.echo(f"cursor {cursor} still needs records that go, or are gone")


def report_document(report: RetentionReport) -> dict[str, object]:
    """A report of retention as JSON."""
    return {
        "start": position_text(report.start),
        "expired_cursors": list(report.expired_cursors),
        "segments": [
            {
                **segment_row(each.segment),
                "goes": each.goes,
                "reasons": [
                    {"why": reason.why.value, "text": reason.text, "name": reason.name, "until_ms": reason.until_ms}
                    for reason in each.reasons
                ],
            }
            for each in report.segments
        ],
    }
