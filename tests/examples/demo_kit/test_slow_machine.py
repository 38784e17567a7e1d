from __future__ import annotations

import pytest

from bookkeeper import ClientConfig
from examples.demo_kit import slow_machine


@pytest.fixture(params=[1.0, 8.0, 100.0])
def times(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(slow_machine, "stretch", lambda: request.param)
    times: float = request.param
    return times


def test_sessions_and_time_outs_are_stretched_and_a_session_as_far_as_a_store_allows(times: float) -> None:
    usual, found = ClientConfig(delete_grace_s=0), slow_machine.client_config(ClientConfig(delete_grace_s=0))
    assert found.add_timeout_ms == usual.add_timeout_ms * times
    assert found.metadata_session_ms == min(300_000, usual.metadata_session_ms * times)
    assert found.delete_grace_s == 0
    assert slow_machine.session_s(3.0) == min(300.0, 3.0 * times)
    assert slow_machine.environment() == {"BK_METADATA_SESSION": f"{min(300, 10 * times):g}"}


def test_nothing_changes_on_a_machine_like_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_machine, "stretch", lambda: 1.0)
    assert slow_machine.client_config() == ClientConfig()
