"""Writable, read-only, failed, closed: told once, and final where it is final."""

from __future__ import annotations

import pytest

from bookkeeper.errors import BookieFailedError
from bookkeeper.storage.base.disk_state import DiskState
from bookkeeper.storage.base.results import EngineState


def test_each_change_is_told_once_with_its_reason() -> None:
    state, told = DiskState(), list[tuple[EngineState, str]]()
    state.on_change(lambda now, reason: told.append((now, reason)))
    state.set(EngineState.WRITABLE, "as it was")
    state.set(EngineState.READ_ONLY, "full")
    state.set(EngineState.READ_ONLY, "still full")
    state.set(EngineState.WRITABLE, "space")
    assert told == [(EngineState.READ_ONLY, "full"), (EngineState.WRITABLE, "space")]


@pytest.mark.rule("K23")
@pytest.mark.parametrize("final", [EngineState.FAILED, EngineState.CLOSED])
def test_a_disk_that_failed_or_is_closed_does_not_come_back(final: EngineState) -> None:
    state = DiskState()
    state.set(final, "the end")
    for later in EngineState:
        state.set(later, "no")
    assert state.now is final
    with pytest.raises(BookieFailedError, match=final.value):
        state.refuse_if_stopped()


@pytest.mark.rule("B10")
def test_a_full_disk_is_not_stopped_and_one_that_is_being_closed_is() -> None:
    state = DiskState()
    state.set(EngineState.READ_ONLY, "full")
    state.refuse_if_stopped()
    state.begin_closing()
    with pytest.raises(BookieFailedError, match="closing"):
        state.refuse_if_stopped()
