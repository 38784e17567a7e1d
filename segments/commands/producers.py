"""``bk stream producer``: list, hand-over."""

from __future__ import annotations

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.shared.options import json_option, metadata_option
from segments.commands.shared import print_rows, stream_argument, with_stream


@click.group(cls=CommandGroup)
def producer() -> None:
    """Whose the names of producers are: through gateways nobody else appends under them."""


@producer.command("list")
@metadata_option
@json_option
@stream_argument
def list_producers(metadata: str, as_json: bool, name: str) -> None:
    """List those that belong to somebody."""
    found = with_stream(metadata, name, lambda stream: stream.producer_owners())
    rows: list[dict[str, object]] = [{"producer": each, "belongs_to": by} for each, by in sorted(found.items())]
    print_rows(
        as_json, f"producers of {name}", ("producer", "belongs_to"), rows, f"no producer of {name} belongs to anybody"
    )


@producer.command("hand-over")
@metadata_option
@stream_argument
@click.argument("producer_name", metavar="PRODUCER")
@click.argument("who", required=False)
@click.option("--nobody", is_flag=True, help="It becomes that of the next one who appends under it.")
def hand_over(metadata: str, name: str, producer_name: str, who: str | None, nobody: bool) -> None:
    """Say whose a producer's name is: WHO is the name by which gateways know him.

    Gateways know it within 5 s.
    """
    if nobody == (who is not None):
        raise click.UsageError("name who gets it, or give --nobody")
    with_stream(metadata, name, lambda stream: stream.hand_over_producer(producer_name, who or ""), changes=True)
    click.echo(f"producer {producer_name} of {name} " + (f"belongs to {who}" if who else "belongs to nobody"))
