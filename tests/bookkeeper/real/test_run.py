"""Running a program's coroutine."""

from __future__ import annotations

import inspect

import pytest

from bookkeeper import real
from bookkeeper.real import run


async def _seven() -> int:
    return 7


def test_what_the_coroutine_returns_is_returned() -> None:
    assert run(_seven()) == 7


def test_a_coroutine_that_was_interrupted_before_it_began_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else Python warns on standard error that it was never awaited."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(real, "_loop_factory", interrupt)
    main = _seven()
    with pytest.raises(KeyboardInterrupt):
        run(main)
    assert inspect.getcoroutinestate(main) == inspect.CORO_CLOSED
