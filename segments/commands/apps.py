"""``bk stream apps``: list, hand-over, forget."""

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


@apps.command("hand-over")
@metadata_option
@stream_argument
@click.argument("app")
@click.argument("who", required=False)
@click.option("--nobody", is_flag=True, help="It becomes that of the next one who publishes in its name.")
def hand_over(metadata: str, name: str, app: str, who: str | None, nobody: bool) -> None:
    """Say whose an application is: WHO is the name by which gateways know him.

    Through a gateway only he, and who may administer the stream, publishes in its name.
    """
    if nobody == (who is not None):
        raise click.UsageError("name who gets it, or give --nobody")
    if not with_stream(metadata, name, lambda stream: stream.hand_over_app(app, who or ""), changes=True):
        raise _unknown(name, app)
    click.echo(f"application {app} of {name} " + (f"belongs to {who}" if who else "belongs to nobody"))


@apps.command()
@metadata_option
@stream_argument
@click.argument("app")
def forget(metadata: str, name: str, app: str) -> None:
    """Forget an application that has ended. A batch of it that comes again is written again."""
    if not with_stream(metadata, name, lambda stream: stream.forget_app(app), changes=True):
        raise _unknown(name, app)
    click.echo(f"application {app} of {name} is forgotten")


def _unknown(name: str, app: str) -> click.ClickException:
    return click.ClickException(f"{name} remembers no application {app}; `bk stream apps list {name}` shows them")


def _row(app: AppRecord) -> dict[str, object]:
    return {
        "application": app.app,
        "query": app.query,
        "batch": app.last,
        "first_seq_no": app.first_seq_no,
        "records": app.records,
        "published": from_ms(app.published_ms).isoformat(timespec="seconds"),
        "run": app.run,
        "belongs_to": app.by,
    }
