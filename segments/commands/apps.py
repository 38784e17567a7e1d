"""``bk stream apps``: list, forget."""

from __future__ import annotations

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.shared.options import json_option, metadata_option
from segments.commands.shared import print_rows, stream_argument, with_stream
from segments.publish.batch_key import AppRecord
from segments.record import from_ms


@click.group(cls=CommandGroup)
def apps() -> None:
    """The applications whose batches a stream remembers, so that none is there twice."""


@apps.command("list")
@metadata_option
@json_option
@stream_argument
def list_apps(metadata: str, as_json: bool, name: str) -> None:
    """List them, with the last batch of each."""
    rows = [_row(each) for each in with_stream(metadata, name, lambda stream: stream.apps())]
    columns = tuple(rows[0]) if rows else ()
    print_rows(as_json, f"applications of {name}", columns, rows, f"{name} remembers no applications")


@apps.command()
@metadata_option
@stream_argument
@click.argument("app")
def forget(metadata: str, name: str, app: str) -> None:
    """Forget an application that has ended. A batch of it that comes again is written again."""
    if not with_stream(metadata, name, lambda stream: stream.forget_app(app), changes=True):
        raise click.ClickException(f"{name} remembers no application {app}; `bk stream apps list {name}` shows them")
    click.echo(f"application {app} of {name} is forgotten")


def _row(app: AppRecord) -> dict[str, object]:
    return {
        "application": app.app,
        "query": app.query,
        "batch": app.last,
        "first_seq_no": app.first_seq_no,
        "records": app.records,
        "published": from_ms(app.published_ms).isoformat(timespec="seconds"),
        "run": app.run,
    }
