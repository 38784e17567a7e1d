"""The whole table of who is served is in test_listener; here is what it stands on."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from bookkeeper.access import PrincipalKind
from bookkeeper.gateways.allowed_names import AllowedName, AllowedNames
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
from bookkeeper.gateways.tokens import TokenBook, new_token, token_line

TOKEN = new_token()
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


def shown_certificate(name: str, *units: str) -> dict[str, object]:
    subject = tuple((("organizationalUnitName", unit),) for unit in units)
    return {"subject": (*subject, (("commonName", name),))}


@pytest.mark.rule("X15")
def test_a_certificate_that_has_ended_or_is_revoked_since_its_handshake_is_refused() -> None:
    """Cause: a handshake looks once, and a kept connection went on after the certificate's end."""
    asked = Authenticator(certificates=True)
    good = RequestCredentials(certificate=shown_certificate("etl"), certificate_end_s=100.0)
    caller = asked.principal(good, 99_999)
    assert caller is not None
    assert (caller.name, caller.kind, caller.ends_ms) == ("etl", PrincipalKind.CERTIFICATE, 100_000)
    for shown, now_ms, why in (
        (good, 100_000, "the certificate has ended"),
        (replace(good, revoked=True), 0, "the certificate was revoked"),
    ):
        with pytest.raises(UnauthenticatedError, match="The client certificate is not accepted") as refused:
            asked.principal(shown, now_ms)
        assert refused.value.why.startswith(why)
        assert refused.value.claimed == "etl"
    both = Authenticator(book=lambda: TokenBook.parse(token_line("bob", TOKEN), "t"), certificates=True)
    with_token = replace(good, token=TOKEN.reveal())
    found = both.principal(with_token, 0)
    assert found is not None
    assert (found.name, found.ends_ms) == ("bob", 100_000), "the credential that ends first ends the request"
    with pytest.raises(UnauthenticatedError):
        both.principal(with_token, 100_000)


@pytest.mark.rule("X57")
def test_a_certificate_is_good_for_what_it_is_allowed_by_its_name_or_role() -> None:
    allowed = AllowedNames([AllowedName.parse("role:writer=/w"), AllowedName.parse("eve=/e:read")])
    asked = Authenticator(certificates=True, allowed=allowed)
    writer = asked.principal(RequestCredentials(shown_certificate("etl", "0:writer,x")), 0)
    eve = asked.principal(RequestCredentials(shown_certificate("eve")), 0)
    other = asked.principal(RequestCredentials(shown_certificate("other")), 0)
    assert [each and (each.roots, each.reads) for each in (writer, eve, other)] == [
        (("/w",), ()),
        ((), ("/e",)),
        ((), ()),
    ]
