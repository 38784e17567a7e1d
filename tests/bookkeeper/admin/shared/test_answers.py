"""An answer is shown once the work is done: as JSON or as words, and its status ends the process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import click
import pytest
from click.testing import CliRunner

from bookkeeper.admin.shared.answers import Answered, VerbAnswer, answering, show_answer
from bookkeeper.admin.shared.options import json_option
from bookkeeper.real import run


@pytest.mark.parametrize(("as_json", "shown"), [(True, '{"a": 1}\n'), (False, "one\n")])
def test_one_answer_is_json_or_words(as_json: bool, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    VerbAnswer({"a": 1}, "one").show(as_json)
    VerbAnswer({"a": 1}, lambda: click.echo("one")).show(as_json)
    assert capsys.readouterr().out == 2 * shown


@pytest.mark.parametrize("as_json", [True, False])
def test_an_answer_that_is_not_good_is_shown_before_the_status(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        VerbAnswer([], "nothing", is_good=False).show(as_json)
    assert (ended.value.code, capsys.readouterr().out) == (1, "[]\n" if as_json else "nothing\n")


def test_words_alone_and_no_answer_are_answers(capsys: pytest.CaptureFixture[str]) -> None:
    show_answer("done")
    show_answer(None)
    assert capsys.readouterr().out == "done\n"


def test_a_verb_gets_what_was_opened_and_answers_when_it_is_closed() -> None:
    happened: list[str] = []

    @asynccontextmanager
    async def opened(address: str) -> AsyncIterator[str]:
        happened.append(f"open {address}")
        yield address.upper()
        happened.append("close")

    @click.command()
    @click.option("--metadata")
    @json_option
    @click.argument("count", type=int)
    @answering(opened, lambda work: run(work))
    async def verb(place: str, count: int) -> Answered:
        """Count."""
        return VerbAnswer([place, count], lambda: happened.append("tell"), is_good=count > 0)

    assert verb.help == "Count."
    told = CliRunner().invoke(verb, ["--metadata", "here", "1"])
    assert (told.exit_code, happened) == (0, ["open here", "close", "tell"])
    printed = CliRunner().invoke(verb, ["--metadata", "here", "--json", "0"])
    assert (printed.exit_code, json.loads(printed.output)) == (1, ["HERE", 0])
