"""The whole table of who is served is in test_listener; here is what it stands on."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper.gateways.authentication import (
    DELAY_MAX_S,
    DELAY_S,
    WINDOW_S,
    AuthenticationFailures,
    Authenticator,
    RequestCredentials,
    UnauthenticatedError,
    certificate_name,
)

COMMON = ((("organizationalUnitName", "x"),), (("commonName", "cn"),))


@pytest.mark.rule("X5")
@pytest.mark.parametrize(
    ("names", "principal"),
    [
        ((("DNS", "d"), ("URI", "spiffe://x/y")), "spiffe://x/y"),
        ((("DNS", "d"), ("email", "a@b")), "a@b"),
        ((("IP Address", "1.2.3.4"),), "1.2.3.4"),
        ((), "cn"),
    ],
)
def test_who_a_certificate_names(names: tuple[tuple[str, str], ...], principal: str) -> None:
    assert certificate_name({"subject": COMMON, "subjectAltName": names}) == principal


def test_a_certificate_that_names_nobody_is_refused() -> None:
    with pytest.raises(UnauthenticatedError, match="nobody"):
        certificate_name({"subject": COMMON[:1]})


def test_where_nobody_is_asked_nobody_is_known() -> None:
    nobody = Authenticator()
    assert nobody.is_open
    assert nobody.principal(RequestCredentials(token="x"), 0) is None


class Stopped:
    """A clock that is set by hand."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return int(self.now * 1000)


@pytest.mark.rule("X11")
def test_who_goes_on_failing_waits_longer_up_to_an_end_and_others_do_not() -> None:
    clock = Stopped()
    failures = AuthenticationFailures(clock, Random(1))
    first = failures.delay_s("a")
    assert DELAY_S <= first <= 2 * DELAY_S
    for _ in range(600):
        last = failures.delay_s("a")
    assert 1.0 <= last <= DELAY_MAX_S
    assert failures.delay_s("b") <= 2 * DELAY_S
    clock.now += WINDOW_S
    assert failures.delay_s("a") <= 2 * DELAY_S
    assert failures.count == 603


@pytest.mark.rule("X11")
def test_addresses_are_forgotten_before_memory_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bookkeeper.gateways.authentication.ADDRESSES_MAX", 3)
    failures = AuthenticationFailures(Stopped(), Random(1))
    for number in range(100):
        failures.delay_s(f"{number}")
    assert len(failures._recent) == 3
