"""``bk stream producer``: list, hand-over."""

from __future__ import annotations

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.shared.options import json_option, metadata_option
from segments.commands.shared import print_rows, stream_argument, with_stream


@click.group(cls=CommandGroup)
def producer() -> None:
    """Names of producers and their owners: a gateway lets only the owner append under a name."""


@producer.command("list")
@metadata_option
@json_option
@stream_argument
def list_producers(metadata: str, as_json: bool, name: str) -> None:
    """List the names that have an owner."""
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
@click.option(
    "--nobody", is_flag=True, help="Leave it without an owner: the next one who appends under it becomes that."
)
def hand_over(metadata: str, name: str, producer_name: str, who: str | None, nobody: bool) -> None:
    """Give the name of a producer to WHO, the name by which gateways know the new owner.

    It takes effect within 5 s.
    """
    if nobody == (who is not None):
        raise click.UsageError("name who gets it, or give --nobody")
    with_stream(metadata, name, lambda stream: stream.hand_over_producer(producer_name, who or ""), changes=True)
    click.echo(f"producer {producer_name} of {name} " + (f"belongs to {who}" if who else "belongs to nobody"))
