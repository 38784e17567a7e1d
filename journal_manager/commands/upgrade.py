"""``bk journal upgrade``: begin, finalize, roll-back."""

from __future__ import annotations

from dataclasses import replace

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.option_types import WholeNumber
from journal_manager.commands.shared import as_owner, journal_argument, print_removed, take_over_option
from journal_manager.edits import SegmentInfo
from journal_manager.journals.backend import JournalWriter
from journal_manager.journals.capabilities import DescribableReader, Upgrade, capability


@click.group(cls=CommandGroup)
def upgrade() -> None:
    """Take a journal to a new version of its program, with a way back.

    Between begin and finalize nothing from before is removed. Stop the program before each of these commands, and start
    the right version after it.
    """


@upgrade.command()
@click.option("--layout", type=WholeNumber(1), metavar="N", required=True, help="The new version of the edits' bodies.")
@take_over_option
@journal_argument
def begin(layout: int, yes: bool, uri: str) -> None:
    """Begin an upgrade. Until it is finalized, roll-back returns to what is there now."""

    async def begun(writer: JournalWriter) -> int:
        upgrading = capability(writer, Upgrade)  # type: ignore[type-abstract]
        present = (await capability(writer, DescribableReader).describe()).namespace  # type: ignore[type-abstract]
        await upgrading.begin_upgrade(replace(present, layout_version=layout))
        return writer.durable_txid

    last = as_owner(uri, yes, begun)
    click.echo(f"the upgrade to layout {layout} is in progress; roll-back returns to edit {last}")


@upgrade.command()
@take_over_option
@journal_argument
def finalize(yes: bool, uri: str) -> None:
    """End the upgrade. There is no way back afterwards."""

    async def ended(writer: JournalWriter) -> bool:
        found = await capability(writer, DescribableReader).describe()  # type: ignore[type-abstract]
        await capability(writer, Upgrade).finalize_upgrade()  # type: ignore[type-abstract]
        return found.upgraded_at is not None

    is_done = as_owner(uri, yes, ended)
    click.echo("the upgrade is finalized" if is_done else "no upgrade is in progress: nothing was changed")


@upgrade.command("roll-back")
@click.option("--yes", is_flag=True, help="Do not ask before edits are removed.")
@journal_argument
def roll_back(yes: bool, uri: str) -> None:
    """Remove the edits and snapshots since the upgrade began."""

    async def rolled_back(writer: JournalWriter) -> tuple[tuple[SegmentInfo, ...], int | None]:
        last = (await capability(writer, DescribableReader).describe()).upgraded_at  # type: ignore[type-abstract]
        return await capability(writer, Upgrade).roll_back(), last  # type: ignore[type-abstract]

    question = f"Remove what was written to {uri} since its upgrade began, and fence its writer?"
    removed, last = as_owner(uri, yes, rolled_back, question)
    print_removed(removed)
    click.echo(f"the upgrade is rolled back: the journal ends at edit {last}")
