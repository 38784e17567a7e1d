"""Numbers on a command line."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from bookkeeper.option_types import AnyNumber, AnyWholeNumber, Number, WholeNumber


def refusal(kind: click.ParamType[object], text: str) -> str:
    with pytest.raises(click.BadParameter) as caught:
        kind.convert(text, None, None)
    return caught.value.message


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (WholeNumber(), "two", "'two' is not a whole number"),
        (WholeNumber(), "1.5", "'1.5' is not a whole number"),
        (WholeNumber(1), "0", "it must be at least 1, not 0"),
        (WholeNumber(0, 65535), "65536", "it must be at least 0 and at most 65535, not 65536"),
        (Number(), "two", "'two' is not a number"),
        (Number(0), "-0.5", "it must be at least 0, not -0.5"),
        (Number(0, min_open=True), "0", "it must be more than 0, not 0"),
        (Number(0, 100, max_open=True), "100", "it must be at least 0 and less than 100, not 100"),
        *((Number(0), text, f"{text!r} is not a number") for text in ("nan", "inf", "-inf", "1e999")),
    ],
)
def test_what_cannot_be_is_answered_with_what_can(kind: click.ParamType[object], text: str, said: str) -> None:
    assert refusal(kind, text) == said


def test_what_can_be_is_taken() -> None:
    assert WholeNumber(1, 3).convert("3", None, None) == 3
    assert Number(0).convert("0.5", None, None) == 0.5
    assert Number().convert(-1, None, None) == -1


def test_a_number_without_bounds_shows_none_in_the_help() -> None:
    """Cause: the newest click shows a range without bounds as ``[x<=None]``."""

    @click.command()
    @click.option("--whole", type=AnyWholeNumber(), help="W.")
    @click.option("--any", "any_", type=AnyNumber(), help="A.")
    def verb(whole: int, any_: float) -> None:
        click.echo(f"{whole} {any_}")

    runner = CliRunner()
    assert "None" not in runner.invoke(verb, ["--help"]).output
    assert runner.invoke(verb, ["--whole", "-7", "--any", "1.5"]).output == "-7 1.5\n"
    assert "is not a whole number" in runner.invoke(verb, ["--whole", "x"]).output
    assert "is not a number" in runner.invoke(verb, ["--any", "nan"]).output
