"""Work that goes on after its reply: one of a kind at a time, and its end is noted."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.http_api.request import RefusedRequestError

log = logging.getLogger(__name__)

Ended = Callable[[str, str, str], None]
"""Gets who asked, for what, and why it failed; empty: it did not."""


class BackgroundWork:
    """The works of one server. What is under way when it closes ends; it can be asked for again."""

    def __init__(self, ended: Ended) -> None:
        self._tasks = Tasks("http api")
        self._running: dict[str, object] = {}
        self._ended = ended

    @property
    def running(self) -> frozenset[str]:
        """What is under way."""
        return frozenset(self._running)

    def begin(self, what: str, who: str, work: Callable[[], Awaitable[str]], how: object = None) -> None:
        """Begin it, unless the same is under way. ``work`` returns what it could not do; empty: it did everything.

        Raises:
            RefusedRequestError: it is under way in another way than ``how``, and will not do what is asked for.
        """
        if what in self._running:
            if self._running[what] != how:
                raise RefusedRequestError(
                    f"{what} is under way with other parameters: ask again when it has ended", 409
                )
        elif not self._tasks.closed:
            self._running[what] = how
            self._tasks.start(self._run(what, who, work), what)

    async def _run(self, what: str, who: str, work: Callable[[], Awaitable[Any]]) -> None:
        try:
            problem = await work()
        except (BookKeeperError, OSError) as error:
            problem = in_words(error)
        finally:
            del self._running[what]
        if problem:
            log.warning("%s, which was asked for over HTTP, did not end well: %s", what, problem)
        self._ended(who, what, problem)

    async def close(self) -> None:
        """End what is under way. Idempotent."""
        await self._tasks.close()
