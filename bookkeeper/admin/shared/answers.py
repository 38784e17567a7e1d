"""What a verb answers: one JSON document or words for people, and the exit status."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, TypeAlias, TypeVar

import click

from bookkeeper.admin.shared.options import connected, finish, json_option, metadata_option, print_json
from bookkeeper.admin.shared.terminal import harmless

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class VerbAnswer:
    """An answer, shown when the verb's work is done and its connections are closed."""

    document: object
    """What ``--json`` prints."""
    tell: str | Callable[[], object]
    """What people read, or what prints it."""
    is_good: bool = True
    """Otherwise the exit status is 1."""

    def show(self, as_json: bool = False) -> None:
        """Print it, and end the process with status 1 if it is not good."""
        if as_json:
            print_json(self.document)
        elif isinstance(self.tell, str):
            click.echo(harmless(self.tell))
        else:
            self.tell()
        if not self.is_good:
            sys.exit(1)


Answered: TypeAlias = VerbAnswer | str | None
"""What a verb returns: words alone from one without ``--json``, nothing from one that has printed everything."""


def answering(
    connect: Callable[[str], AbstractAsyncContextManager[C]], run: Callable[[Coroutine[Any, Any, Answered]], Answered]
) -> Callable[[Callable[..., Awaitable[Answered]]], Callable[..., None]]:
    """Make a verb of a coroutine that gets what ``connect`` opens at ``--metadata``, and the verb's other options."""

    def decorate(verb: Callable[..., Awaitable[Answered]]) -> Callable[..., None]:
        @wraps(verb)
        def command(*, metadata: str, as_json: bool = False, **options: Any) -> None:
            async def work() -> Answered:
                async with connect(metadata) as opened:
                    return await verb(opened, **options)

            show_answer(run(work()), as_json)

        return command

    return decorate


def show_answer(answer: Answered, as_json: bool = False) -> None:
    """Show what a verb returned."""
    if isinstance(answer, str):
        click.echo(harmless(answer))
    elif answer is not None:
        answer.show(as_json)


def on_cluster(*, changes: bool = False) -> Callable[[Callable[..., Awaitable[Answered]]], Callable[..., None]]:
    """A verb that asks a cluster, by a client of it, its first argument. ``changes``: see :func:`finish`."""
    return answering(connected, partial(finish, changes=changes))


def verb_on_cluster(
    *, json: bool = True, changes: bool = False
) -> Callable[[Callable[..., Awaitable[Answered]]], Callable[..., None]]:
    """As :func:`on_cluster`, with ``--metadata`` and, unless ``json`` is off, ``--json``. It stands right below
    ``command()``."""

    def decorate(verb: Callable[..., Awaitable[Answered]]) -> Callable[..., None]:
        command = on_cluster(changes=changes)(verb)
        return metadata_option(json_option(command) if json else command)

    return decorate
