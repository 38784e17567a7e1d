"""An event loop whose clock jumps to the next thing due, and which never touches the system.

A whole cluster runs in one thread, with the same interleaving every time. Callbacks belong to *nodes*: whoever
started them. A crashed node's callbacks never run; a frozen one's wait until it thaws, in their order.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import heapq
import inspect
import warnings
from asyncio import events, tasks
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from bookkeeper.testing.world.trace import Trace


T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class CallbackOwner(Protocol):
    """Whose callbacks these are."""

    alive: bool
    frozen: bool
    held: list[asyncio.Handle]
    tasks: list[asyncio.Task[Any]]


OWNER: contextvars.ContextVar[CallbackOwner | None] = contextvars.ContextVar("owner", default=None)
"""The node on whose behalf the running code runs; None is the test itself."""


TURNS_MAX = 20_000
"""Turns of the loop at one moment of virtual time, before it is called a livelock."""


class SimDeadlockError(RuntimeError):
    """Somebody waits, and nothing is left that could ever happen; or time stands still and somebody is busy."""


def _suppressed(handle: asyncio.Handle) -> bool:
    """True if the handle's owner is dead (it never runs) or frozen (it runs after the thaw)."""
    owner: CallbackOwner | None = handle._context.get(OWNER)  # type: ignore[attr-defined]
    if owner is None:
        return False
    if not owner.alive:
        return True
    if owner.frozen:
        owner.held.append(handle)
        return True
    return False


class _Handle(events.Handle):
    __slots__ = ()

    def _run(self) -> None:
        if not _suppressed(self):
            super()._run()


class _TimerHandle(events.TimerHandle):
    """Timers due at one moment run in the order of their making, as threads' results and packets do."""

    __slots__ = ("_number",)
    _number: int

    def __lt__(self, other: object) -> bool:
        mine: float = self._when  # type: ignore[attr-defined]
        theirs: float = other._when  # type: ignore[attr-defined]
        number: int = other._number  # type: ignore[attr-defined]
        return mine < theirs or (mine == theirs and self._number < number)

    def _run(self) -> None:
        if not _suppressed(self):
            super()._run()


class _Task(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address: iteration is the same in every process (P6)."""

    _born = 0

    def __hash__(self) -> int:
        return self._born

    def __eq__(self, other: object) -> bool:
        return self is other


class _Selector:
    """In place of the system's: waiting moves the clock."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise SimDeadlockError(f"at {self._loop.time():.6f} s somebody waits and nothing is left to happen")
        if timeout > 0:
            self._turns = 0
            self._loop.advance(timeout)
            return []
        self._turns += 1
        if self._turns > TURNS_MAX:
            raise SimDeadlockError(f"at {self._loop.time():.6f} s somebody is busy for ever")
        return []

    def close(self) -> None: ...


class SimLoop(asyncio.BaseEventLoop):
    """See the module. ``time()`` begins at 0 and is virtual seconds."""

    def __init__(self) -> None:
        self._now = 0.0
        self._born = 0
        self._timers = 0
        super().__init__()
        self._clock_resolution = 1e-9
        self._selector = _Selector(self)
        self.failures: list[dict[str, Any]] = []
        """What would have been logged as an unhandled exception: a test that leaves any has failed."""
        self.dropped: list[asyncio.Task[Any]] = []
        """Tasks of crashed nodes, as they stood."""
        self.trace: Trace | None = None
        self.set_task_factory(self._make_task)
        self.set_exception_handler(lambda loop, context: self.failures.append(context))

    # -- time ---------------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Jump; to the next timer exactly if that is as far as this goes."""
        target = self._now + seconds
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        if scheduled and abs(scheduled[0].when() - target) < 1e-6:
            target = scheduled[0].when()
        self._now = max(self._now, target)

    # -- callbacks and tasks have owners ------------------------------------------------------------------

    def _call_soon(
        self, callback: Callable[..., Any], args: Any, context: contextvars.Context | None
    ) -> asyncio.Handle:
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        timer = _TimerHandle(when, callback, args, self, context)
        self._timers += 1
        timer._number = self._timers
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        context: contextvars.Context | None = None,
        **_: Any,
    ) -> asyncio.Task[Any]:
        self._born += 1
        number = self._born
        task: asyncio.Task[Any] = _Task.__new__(_Task)
        task._born = number  # type: ignore[attr-defined]
        task.__init__(coro, loop=loop, name=f"task-{number}", context=context)  # type: ignore[misc]
        owner = context.get(OWNER) if context is not None else OWNER.get()
        if owner is not None:
            owner.tasks.append(task)
        return task

    def thaw(self, owner: CallbackOwner) -> None:
        """Everything held back for ``owner`` becomes ready, in its order."""
        held, owner.held = owner.held, []
        self._ready.extend(held)  # type: ignore[attr-defined]

    # -- what a simulation has not ------------------------------------------------------------------------

    def run_in_executor(self, executor: Any, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        raise RuntimeError("no threads in a simulation: blocking work goes through the Worker seam")

    async def getaddrinfo(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no names to look up in a simulation: connections go through the Net seam")

    def _process_events(self, event_list: list[Any]) -> None: ...

    def _write_to_self(self) -> None: ...

    def close(self) -> None:
        """Also unwinds what crashed nodes left: else the collector does, later, in whatever test runs then."""
        self._selector.close()
        super().close()
        dropped, self.dropped = self.dropped, []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a coroutine that clean-up made, and could not start
            for task in dropped:
                _end_quietly(task.get_coro())


def drop_task(task: asyncio.Task[Any]) -> None:
    """Let go of a crashed node's task without a word: it just stopped. What it holds is kept until the loop closes."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    tasks._unregister_task(task)
    loop = task.get_loop()
    assert isinstance(loop, SimLoop)
    loop.dropped.append(task)


TURNS_OF_AN_END: Final = 1_000
"""Waits in the clean-up of one coroutine, before it is left to the collector."""


def _end_quietly(work: object) -> None:
    """Unwind a coroutine that nobody will resume. Its host is gone: what its clean-up raises is nobody's."""
    if not inspect.iscoroutine(work):
        return
    for _ in range(TURNS_OF_AN_END):
        if inspect.getcoroutinestate(work) == inspect.CORO_CLOSED:
            return
        with contextlib.suppress(BaseException):  # it waits again (RuntimeError), or its clean-up misses the loop
            work.close()
