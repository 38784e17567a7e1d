"""Every volume remembers every ledger that was dropped: a ledger that was deleted is never made anew on another one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bookkeeper.errors import BookieFailedError
from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.storage.base.results import Done
from bookkeeper.storage.engine import Engine, EngineState
from bookkeeper.volumes.after_all import after_all


def share(dropped: IdRanges, engines: Iterable[Engine], callback: Done) -> None:
    """Have every engine remember that these were dropped; ``callback`` when they do. Nothing is written twice."""
    ranges = list(dropped)
    lacking = [engine for engine in engines if not all(engine.dropped.covers(*run) for run in ranges)]
    after_all([collects(engine, ranges) for engine in lacking], callback)


def collects(
    engine: Engine, never_again: Iterable[tuple[int, int]], dead: Callable[[LedgerId], bool] = lambda ledger: False
) -> Callable[[Done], None]:
    """Collects on one volume. What a volume cannot do because it has just failed is not missing."""
    ranges = list(never_again)

    def begin(done: Done) -> None:
        def ended(error: BaseException | None) -> None:
            done(None if engine.state in (EngineState.FAILED, EngineState.CLOSED) else error)

        try:
            engine.collect(dead, ended, never_again=ranges)
        except BookieFailedError as error:
            ended(error)

    return begin
