"""docs/runbook.md in pieces: its sections, the commands in each, and what was run of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from tests.bookkeeper.admin.commands import Said, bk
from tests.integration.test_readme import ROOT

_PAGE: Final = (ROOT / "docs" / "runbook.md").read_text()
_COMMAND: Final = re.compile(r"`(bk [^`]+)`")


def _sections() -> dict[str, str]:
    first, *others = re.split(r"^## ", _PAGE, flags=re.MULTILINE)
    return {"": first} | {title: text for title, _, text in (each.partition("\n") for each in others)}


SECTIONS: Final = _sections()
"""Title -> text; what stands before the first title has none."""


def commands(title: str) -> set[str]:
    """The commands that a section names."""
    return set(_COMMAND.findall(SECTIONS[title]))


class Section:
    """A section, and which of its commands were run."""

    def __init__(self, title: str, uri: str, places: Mapping[str, str]) -> None:
        self.title, self._text = title, " ".join(SECTIONS[title].split())
        self._uri, self._places = uri, places
        self.ran: set[str] = set()

    def words(self, command: str, **places: object) -> list[str]:
        """The words of a command after ``bk``, with real places for those of the page; it counts as run."""
        assert command in commands(self.title), f"{self.title}: the page has no `{command}`"
        self.ran.add(command)
        known = {**self._places, **{key: str(value) for key, value in places.items()}}
        return [known.get(word, word) for word in shlex.split(command)[1:]]

    def bk(self, command: str, *more: object, status: int | None = 0, stdin: bytes = b"", **places: object) -> Said:
        """Run a command of this section; it ends with ``status``, or None: with any."""
        said = bk(*self.words(command, **places), *more, stdin=stdin, environment={"BK_METADATA": self._uri})
        assert "Traceback" not in said.err, said.err
        assert status in (None, said.status), (command, said)
        return said

    def shows(self, text: str, out: str) -> bool:
        """Whether ``out`` has what the section says that it has."""
        assert text in self._text, f"{self.title}: the page does not say {text!r}"
        return text in " ".join(out.split())


class Runbook:
    """Takes the sections in turn, and knows at the end what was left out."""

    def __init__(self, uri: str, not_run: Mapping[str, Mapping[str, str]]) -> None:
        self._uri, self._not_run = uri, not_run
        self.taken: set[str] = set()

    @contextmanager
    def section(self, title: str, **places: object) -> Iterator[Section]:
        """A section in its situation: every command of it must be run, but for those that have a reason."""
        section = Section(title, self._uri, {key: str(value) for key, value in places.items()})
        yield section
        left = commands(title) - section.ran - set(self._not_run.get(title, ()))
        assert not left, f"{title}: the page has commands that were not run: {sorted(left)}"
        self.taken.add(title)
