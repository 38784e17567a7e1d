"""What the help of every group and verb of ``bk`` has in common."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from bookkeeper.admin import cli
from bookkeeper.admin.command_group import CommandGroup, DefaultCommandGroup
from tests.bookkeeper.admin.commands import bk


@click.group(cls=DefaultCommandGroup, default="walk", context_settings={"help_option_names": ["-h", "--help"]})
def go() -> None:
    """Go somewhere."""


@go.command()
@click.option("--far", is_flag=True, help="As far as it goes.")
def walk(far: bool) -> None:
    click.echo(f"walks {far}")


@go.command()
def swim() -> None:
    """In water."""
    click.echo("swims")


def said(*words: str) -> str:
    return CliRunner().invoke(go, list(words)).output


def test_options_alone_or_nothing_mean_the_default_and_names_mean_themselves() -> None:
    assert [said(), said("--far"), said("walk", "--far"), said("swim")] == [
        "walks False\n",
        "walks True\n",
        "walks True\n",
        "swims\n",
    ]


def test_its_help_has_the_options_of_the_default_and_the_names_of_all() -> None:
    for word in ("-h", "--help"):
        shown = said(word)
        assert "As far as it goes." in shown and "swim" in shown and "Go somewhere." in shown


def test_other_commands_are_imported_when_they_are_needed() -> None:
    @click.group(cls=DefaultCommandGroup, default="walk", others={"init": "bookkeeper.admin.cluster.init:init"})
    def gone() -> None:
        """Go."""

    gone.add_command(walk)
    assert "init" in CliRunner().invoke(gone, ["--help"]).output
    assert "Create a new cluster" in CliRunner().invoke(gone, ["init", "--help"]).output
    assert CliRunner().invoke(gone, ["--far"]).output == "walks True\n"


def contexts(command: click.Command = cli.bk, parent: click.Context | None = None) -> Iterator[click.Context]:
    """A context of every command."""
    context = click.Context(command, parent, info_name=command.name)
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from contexts(found, context)


EVERY = {context.command_path: context for context in contexts()}
GROUPS = [path for path, context in EVERY.items() if isinstance(context.command, click.Group)]


def test_there_are_all() -> None:
    assert {"bk", "bk bookie cookie", "bk stream hold", "bk journal upgrade", "bk gateway"} <= set(GROUPS)
    assert len(EVERY) > 90


@pytest.mark.parametrize("path", GROUPS)
def test_the_list_of_a_group_has_whole_sentences_on_a_narrow_terminal(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = EVERY[path]
    assert isinstance(context.command, CommandGroup)
    monkeypatch.setenv("COLUMNS", "60")
    shown = bk(*path.split()[1:], "--help").out
    listed = "".join(shown.partition("\nCommands:\n")[2].split())  # lines may end at a hyphen
    for name in context.command.list_commands(context):
        command = context.command.get_command(context, name)
        assert command is not None
        assert "".join([name, *command.get_short_help_str(1000).split()]) in listed


@pytest.mark.parametrize("path", EVERY)
def test_every_option_says_what_it_is_and_what_it_takes(path: str) -> None:
    context = EVERY[path]
    for option in context.command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{option.opts[0]} is not explained"
            takes = option.make_metavar(context)
            assert not any(word in takes for word in ("INTEGER", "FLOAT", "RANGE", "DIRECTORY")), (option.opts, takes)
            assert "integer" not in option.type.name, option.opts
            assert "float" not in option.type.name, option.opts


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bookie", "chek"], "there is no command 'chek'. Did you mean 'check'?"),  # it is imported when it is needed
        (["ledger", "apend"], "there is no command 'apend'. Did you mean 'append'?"),
        (["gateway", "rgpc"], "there is no command 'rgpc'. Did you mean 'grpc'?"),
        (["stream", "cursor", "move"], "there is no command 'move'."),
    ],
)
def test_a_name_that_is_nearly_right_is_answered_with_what_may_be_meant(words: list[str], said: str) -> None:
    bk(*words).refused(said, status=2)


@pytest.mark.parametrize("words", [["bookies"], ["gateway", "webhdfs"], ["gateway", "grpc"], ["stream", "list"]])
def test_every_verb_asks_for_the_cluster_in_the_same_words(words: list[str]) -> None:
    bk(*words).refused("which cluster? Give --metadata URI, or set BK_METADATA", status=2)
