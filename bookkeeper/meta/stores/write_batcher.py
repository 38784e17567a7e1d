"""Sends the writes of one turn of the loop together.

The service's work grows with requests, not with operations: it serves a hundred writes in one all-or-nothing request
nearly as fast as a single write. The batcher collects what concurrent callers ask for during one turn, and sends it as
one batch. Callers see no difference:

* A batch that was done is its operations one after the other, in the order of the calls.
* A batch that the service refused has changed nothing. Its operations are then sent one by one, in that order, and each
  caller gets its own answer.
* If the outcome of a batch is unknown, it is unknown for each of its operations. Nothing is sent again.
* If a caller was cancelled, its operation is not sent from then on. So a later read of that caller comes after all of
  its writes that will ever be done.

A single write is sent as it is. There is no timer: a lone caller waits for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from typing import Final, Generic, TypeVar

O = TypeVar("O")  # noqa: E741 (an operation)
R = TypeVar("R")

OPERATIONS_MAX: Final = 128
"""Operations of one batch at most, so that others do not wait long for it."""

BYTES_MAX: Final = 256 * 1024
"""Bytes of one batch at most: ZooKeeper takes requests of up to 1 MiB."""


class WriteBatcher(Generic[O, R]):
    """Collects operations and sends them.

    Args:
        one: sends a single operation.
        many: sends several as one request. Returns None if it was refused and nothing was done.
        size: estimates the bytes of an operation.
        parts: how many operations of the service it consists of.
    """

    def __init__(
        self,
        one: Callable[[O], Awaitable[R]],
        many: Callable[[Sequence[O]], Awaitable[list[R] | None]],
        size: Callable[[O], int],
        parts: Callable[[O], int] = lambda _: 1,
    ) -> None:
        self._one = one
        self._many = many
        self._size = size
        self._parts = parts
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[O, asyncio.Future[R]]] = []
        self._sending: set[asyncio.Task[None]] = set()

    async def put(self, operation: O) -> R:
        """Send an operation at the end of this turn. Returns its answer, and raises what sending it raises."""
        answer: asyncio.Future[R] = self._loop.create_future()
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append((operation, answer))
        return await answer

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        while waiting:
            count, room, parts = 0, BYTES_MAX, OPERATIONS_MAX
            for operation, _ in waiting[:OPERATIONS_MAX]:
                room -= self._size(operation)
                parts -= self._parts(operation)
                if (room < 0 or parts < 0) and count:
                    break
                count += 1
            batch, waiting = waiting[:count], waiting[count:]
            task = self._loop.create_task(self._send(batch))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, batch: list[tuple[O, asyncio.Future[R]]]) -> None:
        batch = _wanted(batch)
        if len(batch) > 1:
            try:
                answers = await self._many([operation for operation, _ in batch])
            except Exception as error:  # whatever sending met is the answer to each
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(_own(error))
                return
            if answers is not None:
                for (_, answer), result in zip(batch, answers, strict=True):
                    if not answer.done():
                        answer.set_result(result)
                return
        if len(wanted := _wanted(batch)) == 1:
            await self._send_one(*wanted[0])
        else:
            await asyncio.gather(*(self._send_one(operation, answer) for operation, answer in wanted))

    async def _send_one(self, operation: O, answer: asyncio.Future[R]) -> None:
        try:
            result = await self._one(operation)
        except Exception as error:  # whatever sending met is the answer
            if not answer.done():
                answer.set_exception(error)
        else:
            if not answer.done():
                answer.set_result(result)


def _own(error: Exception) -> Exception:
    """A copy of the error for one of several callers; the error itself if it cannot be copied."""
    try:
        return copy(error)
    except Exception:  # made from other arguments than it keeps: better shared than a caller who waits for ever
        return error


def _wanted(batch: list[tuple[O, asyncio.Future[R]]]) -> list[tuple[O, asyncio.Future[R]]]:
    """The operations whose callers were not cancelled."""
    return [(operation, answer) for operation, answer in batch if not answer.done()]
