"""What the commands share: errors in words, and the group itself."""

from __future__ import annotations

import click
import pytest

from journal_manager import JournalCorruptionError, JournalUnavailableError
from journal_manager.commands import journal
from journal_manager.commands.shared import complete
from tests.journal_manager.commands.helpers import bk_journal


def test_an_error_of_the_journal_is_a_sentence() -> None:
    async def fail(error: Exception) -> None:
        raise error

    with pytest.raises(click.ClickException, match=r"^away \(trying again may help\)$"):
        complete(fail(JournalUnavailableError("away")))
    noted = JournalCorruptionError("damaged")
    noted.add_note("another copy: gone")
    with pytest.raises(click.ClickException, match=r"^damaged \(another copy: gone\)$"):
        complete(fail(noted))
    with pytest.raises(KeyError):
        complete(fail(KeyError("a bug")))


def test_every_verb_explains_itself_and_its_options() -> None:
    listed = bk_journal("--help")
    for name, command in journal.commands.items():
        assert name in listed and command.get_short_help_str()
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help or parameter.show_default, (name, parameter.name)


def test_a_transaction_id_is_a_number_from_one_on() -> None:
    for value in ("0", "-1", "x"):
        bk_journal("dump", "mem:x", "--from", value, status=2)
