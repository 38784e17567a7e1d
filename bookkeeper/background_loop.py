"""The event loop in a daemon thread on which the blocking interfaces of this process run their work."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from bookkeeper.errors import IllegalOperationError

T = TypeVar("T")


class _Background:
    """The loop, started with the first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self._thread: threading.Thread | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop. A forked child gets its own: threads do not survive a fork."""
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop = _new_loop()
                self._pid = os.getpid()
                self._thread = threading.Thread(target=self._loop.run_forever, name="bookkeeper-sync", daemon=True)
                self._thread.start()
            return self._loop

    def is_here(self) -> bool:
        """Whether the caller runs on that loop itself."""
        return self._thread is not None and threading.current_thread() is self._thread


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


_background = _Background()


def run(work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
    """Run ``work`` in the background and wait for it.

    Raises:
        TimeoutError: it took longer than ``timeout_s``; it was cancelled.
    """
    future = submit(work)
    try:
        return future.result(timeout_s)
    except concurrent.futures.CancelledError:
        raise
    except BaseException:
        if not future.done():
            future.cancel()
        raise


def submit(work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Begin ``work`` in the background.

    Raises:
        IllegalOperationError: the caller runs on that loop itself, which must not wait for itself.
    """
    if _background.is_here():
        work.close()
        raise IllegalOperationError(
            "a blocking call cannot run on the event loop that it waits for: use the async interface there"
        )
    return asyncio.run_coroutine_threadsafe(work, _background.loop())


def each(start: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
    """Yield what an asynchronous iterator yields, with one hop between the threads for each item."""
    iterator = run(_call(start))
    try:
        while (item := run(_next(iterator))) is not None:
            yield item
    finally:
        if _background.is_here():  # the garbage collector may run on the loop's own thread, which must not wait here
            asyncio.run_coroutine_threadsafe(_aclose(iterator), _background.loop())
        else:
            run(_aclose(iterator))


class BlockingCloser:
    """What is closed by a ``with``."""

    def close(self) -> None:
        """Release everything. Idempotent."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _call(function: Callable[[], T]) -> T:
    return function()


async def _next(iterator: AsyncIterator[T]) -> T | None:
    return await anext(iterator, None)


async def _aclose(iterator: AsyncIterator[Any]) -> None:
    close = getattr(iterator, "aclose", None)
    if close is not None:
        await close()
