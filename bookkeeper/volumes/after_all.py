"""Several callbacks become one: what was begun on several volumes has ended when it has ended on all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

from bookkeeper.errors import BookieFailedError, in_words
from bookkeeper.storage.base.results import Done


class PartlyFailedError(BookieFailedError):
    """Some volumes failed, and others did what was asked of them."""

    def __init__(self, ledgers: Collection[int], error: BaseException) -> None:
        super().__init__(in_words(error))
        self.ledgers = frozenset(ledgers)
        """The ledgers that are concerned."""


def concerns(error: BaseException | None, ledger_id: int) -> BaseException | None:
    """The error, if it concerns this ledger."""
    return None if isinstance(error, PartlyFailedError) and ledger_id not in error.ledgers else error


def after_all(begin: Sequence[Callable[[Done], None]], callback: Done) -> None:
    """Begin all of them; ``callback`` once when all have ended, with the first error if there is one."""
    after_all_ledgers([(each, ()) for each in begin], lambda error: callback(_cause(error)))


def after_all_ledgers(begin: Sequence[tuple[Callable[[Done], None], Collection[int]]], callback: Done) -> None:
    """The same, where each concerns some ledgers: with :class:`PartlyFailedError` if some but not all have failed."""
    left, failed, errors = len(begin), set[int](), list[BaseException]()
    if not begin:
        return callback(None)

    def ended(ledgers: Collection[int], error: BaseException | None) -> None:
        nonlocal left
        left -= 1
        if error is not None:
            failed.update(ledgers)
            errors.append(error)
        if left:
            return
        if not errors or len(errors) == len(begin):
            callback(errors[0] if errors else None)
        else:
            partly = PartlyFailedError(failed, errors[0])
            partly.__cause__ = errors[0]
            callback(partly)

    for each, ledgers in begin:
        each(lambda error, ledgers=ledgers: ended(ledgers, error))  # type: ignore[misc]
    return None


def _cause(error: BaseException | None) -> BaseException | None:
    return error.__cause__ if isinstance(error, PartlyFailedError) else error


async def wait_until_done(begin: Callable[[Done], None]) -> None:
    """Begin something and wait until it calls back. Raises: what it ended with."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done(error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result(None) if error is None else ended.set_exception(error)

    begin(done)
    await ended
