"""A group in which one command is meant when none is named."""

from __future__ import annotations

import click
from click.testing import CliRunner

from bookkeeper.admin.shared.default_command import DefaultCommandGroup


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
