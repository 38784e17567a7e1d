"""Every ``bk`` that a page or a change names is one that there is, with the options it is given there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bookkeeper.admin import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "deploy").rglob("*.md")),
    *sorted((ROOT / "changes").glob("*.md")),
    *(page for page in sorted(ROOT.glob("*.md")) if page.name != "CHANGELOG.md"),  # which tells of earlier releases
]
CODE = re.compile(r"`(bk [^`]+)`")
LINE = re.compile(r"^\s*(?:\$ )?(?:[^|`]*\| *)?(bk [^#]*)")
"""A command in a block of code, perhaps behind a pipe."""

EVERY = frozenset(["--help", "-h", "--version"])
ANY_VERB = frozenset(["VERB", "GROUP", "…"])


def commands(text: str) -> Iterator[tuple[int, str]]:
    """Line and words of each command that a page names."""
    block = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            block = not block
        elif block and (found := LINE.match(line)):
            yield number, found[1]
        elif not block:
            yield from ((number, said) for said in CODE.findall(line))


def wrong(said: str) -> str | None:
    """What there is not of ``bk …``."""
    words = [word.strip(",;:()") for word in re.sub(r"[\[\]|<]|\.\.\.", " ", said).split()[1:]]
    command: click.Command = cli.bk
    while isinstance(command, click.Group):
        context = click.Context(command)
        if words and words[0] in ANY_VERB:
            return None
        if not words or words[0].startswith("-"):
            meant = getattr(command, "default", None)  # of a group whose verb may be left out
            found = command.get_command(context, meant) if meant else None
            if found is None:
                return "an option before the verb" if words and words[0] not in EVERY else None
        elif (found := command.get_command(context, words.pop(0))) is None:
            return "no such verb"
        command = found
    known = EVERY.union(*([*each.opts, *each.secondary_opts] for each in command.params))
    given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    return f"no option {', '.join(sorted(given - known))}" if given - known else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    assert [f"{line}: {said}: {why}" for line, said in commands(page.read_text()) if (why := wrong(said))] == []


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("bk bookies", None),
        ("bk bookie --dir D", None),
        ("bk ledger read 0 --first 3", None),
        ("bk stream VERB --help", None),
        ("bk --help", None),
        ("bk ledger reed 0", "no such verb"),
        ("bk bookies safe-to-stopp b1", "no such verb"),
        ("bk ledger read 0 --frist 3", "no option --frist"),
        ("bk stream --metadata grpc://h:1", "an option before the verb"),
    ],
)
def test_what_is_not_there_is_noticed(said: str, why: str | None) -> None:
    assert wrong(said) == why
