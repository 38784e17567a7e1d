"""A group of commands, one of which is meant when none is named: ``bk bookie --dir D`` is ``bk bookie run --dir D``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from bookkeeper.admin.command_group import CommandGroup


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
