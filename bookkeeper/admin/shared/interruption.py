"""Ctrl-C, for verbs that must finish something: the verb ends its work in order and says so."""

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
"""Seconds within which two signals count as one, because a process and its group often get one each."""


class Interruption:
    """``with Interruption() as asked:`` notes the first signal; the second one ends the process at once.

    :meth:`on_interrupt` says what to do at the first signal. :attr:`leaves` says what the second one leaves behind.
    """

    def __init__(self, *, one_wish_s: float = ONE_WISH_S) -> None:
        self._one_wish_s = one_wish_s
        self._since = 0.0
        self.number: signal.Signals | None = None
        """The signal that has come."""
        self.leaves = ""
        self._callbacks: list[Callable[[], None]] = []

    def __bool__(self) -> bool:
        return self.number is not None

    def __enter__(self) -> Interruption:
        with contextlib.suppress(ValueError, RuntimeError):  # only the main thread gets signals
            for number in SIGNALS:
                asyncio.get_running_loop().add_signal_handler(number, self._note, number)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ValueError, RuntimeError):
            for number in SIGNALS:
                asyncio.get_running_loop().remove_signal_handler(number)

    def on_interrupt(self, stop: Callable[[], None]) -> None:
        """Call ``stop`` when a signal comes, or at once if it has come."""
        self._callbacks.append(stop)
        if self:
            stop()

    def end(self, text: str) -> NoReturn:
        """Print ``text``, and exit with the status of a process that the signal has ended.

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
    """Print a line on standard error, beside the result. A closed standard error is no error."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)
