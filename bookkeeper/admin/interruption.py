"""Ctrl-C, for verbs that have something to finish: the verb ends its work in good order and says so."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Final, NoReturn

import click

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
ONE_WISH_S: Final = 1.0
"""Seconds. Signals that are closer together count as one: whoever ends a process often signals its group as well."""


class Interruption:
    """``with Interruption() as asked:``: the first signal is noted, the second one ends the process at once.

    :meth:`tell` says what to do at the first signal. :attr:`leaves` says what the second one leaves behind.
    """

    def __init__(self, *, one_wish_s: float = ONE_WISH_S) -> None:
        self._one_wish_s = one_wish_s
        self._since = 0.0
        self.number: signal.Signals | None = None
        """The signal that came."""
        self.leaves = ""
        self._callbacks: list[Callable[[], None]] = []

    def __bool__(self) -> bool:
        return self.number is not None

    def __enter__(self) -> Interruption:
        with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread: nobody presses a key there
            for number in SIGNALS:
                asyncio.get_running_loop().add_signal_handler(number, self._note, number)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ValueError, RuntimeError):
            for number in SIGNALS:
                asyncio.get_running_loop().remove_signal_handler(number)

    def tell(self, stop: Callable[[], None]) -> None:
        """Call ``stop`` when a signal comes; at once, if it has come."""
        self._callbacks.append(stop)
        if self:
            stop()

    def end(self, text: str) -> NoReturn:
        """Say how things are, and end with the status of a process that was ended by that signal.

        Raises: Exit.
        """
        assert self.number is not None
        note(f"bk: interrupted: {text}")
        raise click.exceptions.Exit(128 + self.number)

    def _note(self, number: signal.Signals) -> None:
        now = asyncio.get_running_loop().time()
        if self and now < self._since + self._one_wish_s:
            return
        if self:
            note(f"bk: interrupted again: {self.leaves}")
            sys.stdout.flush()
            os._exit(128 + number)
        self.number, self._since = number, now
        for stop in self._callbacks:
            stop()


def note(text: str) -> None:
    """Say something beside the result, on standard error, whether or not anybody listens there."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)
