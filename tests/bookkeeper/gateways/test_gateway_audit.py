from __future__ import annotations

import pytest

from bookkeeper.audit import AuditAction
from bookkeeper.gateways.gateway_audit import AGAIN_S, KNOWN_MAX, GatewayAudit
from tests.bookkeeper.audit.events import KeptEvents


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return 0


@pytest.mark.rule("X16")
def test_who_was_let_in_is_noted_once_an_hour_for_each_name_and_address() -> None:
    clock, kept = Clock(), KeptEvents()
    audit = GatewayAudit(clock, kept)
    for _ in range(100):
        audit.admitted("etl", "10.0.0.1")
        audit.admitted("etl", "10.0.0.2")
    audit.admitted("other", "10.0.0.1")
    assert [(event.who, event.address) for event in kept.events] == [
        ("etl", "10.0.0.1"),
        ("etl", "10.0.0.2"),
        ("other", "10.0.0.1"),
    ]
    clock.now = AGAIN_S
    audit.admitted("etl", "10.0.0.1")
    assert len(kept.events) == 4
    for number in range(2 * KNOWN_MAX):
        audit.admitted("etl", f"{number}")
    assert len(audit._known) == KNOWN_MAX


@pytest.mark.rule("X16")
def test_a_refusal_says_whose_name_was_presented_and_that_it_is_not_proven() -> None:
    kept = KeptEvents()
    audit = GatewayAudit(Clock(), kept)
    audit.refused("10.0.0.1", "the token is not valid", "etl")
    audit.refused("10.0.0.1", "no token came")
    audit.note(AuditAction.DELETE, "etl", "10.0.0.1", "/f", allowed=True)
    audit.close()
    assert [(event.who, event.claimed, event.allowed) for event in kept.events] == [
        ("etl", True, False),
        ("", False, False),
        ("etl", False, True),
    ]


def test_nothing_is_remembered_where_no_log_is_kept() -> None:
    audit = GatewayAudit(Clock())
    audit.admitted("etl", "10.0.0.1")
    audit.refused("10.0.0.1", "why")
    assert audit._known == {}
