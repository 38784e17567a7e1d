"""``bk stream apps``: list, forget."""

from __future__ import annotations

import click

from bookkeeper.admin.shared import CommandGroup, json_option, metadata_option, print_json, print_table
from segments.commands.shared import complete, stream_argument, streams_at
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

    async def work() -> list[dict[str, object]]:
        async with streams_at(metadata) as namespace:
            return [_row(each) for each in await (await namespace.open(name)).apps()]

    rows = complete(work())
    if as_json:
        print_json(rows)
    elif rows:
        print_table(f"applications of {name}", tuple(rows[0]), rows)
    else:
        click.echo(f"{name} remembers no applications")


@apps.command()
@metadata_option
@stream_argument
@click.argument("app")
def forget(metadata: str, name: str, app: str) -> None:
    """Forget an application that has ended. A batch of it that comes again is written again."""

    async def work() -> bool:
        async with streams_at(metadata) as namespace:
            return await (await namespace.open(name)).forget_app(app)

    if not complete(work(), changes=True):
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
