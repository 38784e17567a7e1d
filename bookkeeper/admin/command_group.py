"""A group of commands: its help has a whole sentence of each, and a name that is nearly right is answered with it."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence

import click


class CommandGroup(click.Group):
    """Lists its commands with the first sentence of each, on several lines if one is too short.

    Click would cut the sentence at the end of the line, and what tells two commands apart often stands there.
    """

    def sentence(self, name: str) -> str | None:
        """The first sentence of a command that need not be loaded to be listed. One that has it here is not hidden."""
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        near = self.near(ctx, name)
        meant = f" Did you mean {' or '.join(repr(each) for each in near)}?" if near else ""
        raise click.UsageError(f"there is no command {name!r}.{meant}", ctx)

    def near(self, ctx: click.Context, name: str) -> Sequence[str]:
        """What may be meant by a name that there is not."""
        return difflib.get_close_matches(name, self.list_commands(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in self.list_commands(ctx):
            if (sentence := self.sentence(name)) is not None:
                rows.append((name, sentence))
            elif (command := self.get_command(ctx, name)) is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(sys.maxsize)))
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)
