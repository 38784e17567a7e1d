"""The event loop in a daemon thread on which the blocking interfaces of this process run their work.

A class for threads names the methods that it takes from an asynchronous one, and how they cross over:

    class Reader(BlockingCloser[AsyncReader]):
        position = SharedAttribute[Position]()                 # an attribute, as it is there
        next = blocking(AsyncReader.next)            # waits for the result
        batches = iterating(AsyncReader.batches)     # one hop between the threads for each item
        close = blocking(AsyncReader.close)

Parameters, result and docstring are those of the asynchronous method, for type checkers and ``help()``, too.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from bookkeeper.errors import IllegalOperationError

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")


class _Background:
    """The loop, started with the first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._inherited: list[asyncio.AbstractEventLoop | None] = []
        """The parents' loops: what is attached to them, in other libraries, too, is never to be taken apart here."""
        os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        """A forked child gets a loop of its own: threads do not survive a fork, and one of them may have the lock."""
        self._inherited.append(self._loop)
        self._lock = threading.Lock()
        self._loop = self._thread = None

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop."""
        with self._lock:
            if self._loop is None:
                self._loop = _new_loop()
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


def _require_process(process: int) -> None:
    if process != os.getpid():
        raise IllegalOperationError(
            f"this was opened by process {process}, and this process was forked from it since: "
            "a forked process must connect for itself"
        )


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
    iterator, process = run(_call(start)), os.getpid()
    try:
        while (item := run(_next(iterator))) is not None:
            yield item
            _require_process(process)
    finally:
        if process != os.getpid():
            pass  # the parent's, which ends it
        elif _background.is_here():  # the garbage collector may run on the loop's own thread, which must not wait here
            asyncio.run_coroutine_threadsafe(_aclose(iterator), _background.loop())
        else:
            run(_aclose(iterator))


class Blocking(Generic[A]):
    """An asynchronous object, for threads. A forked process cannot use its copy: the loop of the original, and the
    threads that would answer, are not there."""

    def __init__(self, original: A) -> None:
        self._held = original
        self._process = os.getpid()

    @property
    def _original(self) -> A:
        """Raises: IllegalOperationError: this process was forked from the one that made it."""
        _require_process(self._process)
        return self._held

    def bound(self, method: Callable[Concatenate[A, P], T]) -> Callable[P, T]:
        """The original's method of this name, which a derived class may have replaced."""
        found: Callable[P, T] = getattr(self._original, method.__name__)
        return found


class BlockingCloser(Blocking[A]):
    """One that is closed by a ``with``."""

    def close(self, /) -> None:
        """Release everything. Idempotent."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SharedAttribute(Generic[T]):
    """An attribute that shows the original's of the same name."""

    _name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, blocking: None, owner: type) -> Self: ...

    @overload
    def __get__(self, blocking: Blocking[Any], owner: type) -> T: ...

    def __get__(self, blocking: Blocking[Any] | None, owner: type) -> T | Self:
        if blocking is None:
            return self
        shown: T = getattr(blocking._original, self._name)
        return shown


def blocking(method: Callable[Concatenate[A, P], Awaitable[T]]) -> Callable[Concatenate[Any, P], T]:
    """The method of this name of the original, begun on the loop and waited for."""
    return opening(method, lambda result: result)


def opening(
    method: Callable[Concatenate[A, P], Awaitable[T]], twin: Callable[[T], R]
) -> Callable[Concatenate[Any, P], R]:
    """As ``blocking``, for what returns an asynchronous object: it becomes its ``twin`` for threads."""

    @wraps(method)
    def call(blocking: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return twin(run(_await(blocking.bound(method), *args, **kwargs)))

    return call


def making(method: Callable[Concatenate[A, P], T], twin: Callable[[T], R]) -> Callable[Concatenate[Any, P], R]:
    """As ``opening``, for a method that returns the object without being waited for. It is called on the loop."""

    @wraps(method)
    def call(blocking: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return twin(run(_call(blocking.bound(method), *args, **kwargs)))

    return call


def submitting(
    method: Callable[Concatenate[A, P], Awaitable[T]],
) -> Callable[Concatenate[Any, P], concurrent.futures.Future[T]]:
    """As ``blocking``, without waiting."""

    @wraps(method)
    def call(blocking: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> concurrent.futures.Future[T]:
        return submit(_await(blocking.bound(method), *args, **kwargs))

    call.__doc__ = f"""As ``{method.__name__}``, without waiting: the future has what it returns, or raises.

    The calls of one thread keep their order. The original waits for room on the loop, and not here: a fast thread
    should limit what it has in flight, for instance by waiting for the oldest future.
    """
    return call


def iterating(
    method: Callable[Concatenate[A, P], AsyncIterator[T]],
) -> Callable[Concatenate[Any, P], Iterator[T]]:
    """The items of the original's method, with one hop between the threads for each."""

    @wraps(method)
    def call(blocking: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return each(lambda: blocking.bound(method)(*args, **kwargs))

    return call


async def _await(method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    return await method(*args, **kwargs)


async def _call(method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return method(*args, **kwargs)


async def _next(iterator: AsyncIterator[T]) -> T | None:
    return await anext(iterator, None)


async def _aclose(iterator: AsyncIterator[Any]) -> None:
    close = getattr(iterator, "aclose", None)
    if close is not None:
        await close()
