"""A group of commands: its help has a whole sentence of each, and a name that is nearly right is answered with it.

Of some groups one command is meant when none is named: ``bk bookie --dir D`` is ``bk bookie run --dir D``.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

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


class DefaultCommandGroup(CommandGroup):
    """``default`` names the command that is meant. The group's help is that command's, and then the list of all.

    ``others`` are commands that are imported when they are needed: name -> ``module:attribute``.
    """

    def __init__(self, *args: Any, default: str, others: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.default, self._others = default, others or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._others})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if (place := self._others.get(cmd_name)) is None:
            return super().get_command(ctx, cmd_name)
        module, name = place.split(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command), place
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of the command that is meant, then the commands."""
        meant = self.get_command(ctx, self.default)
        assert meant is not None, self.default
        with click.Context(meant, parent=ctx.parent, info_name=ctx.info_name) as own:
            meant.format_options(own, formatter)
        self.format_commands(ctx, formatter)
