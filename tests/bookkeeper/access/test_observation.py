"""What was denied, or would have been."""

from __future__ import annotations

from bookkeeper.access import Principal, PrincipalKind, Resource
from bookkeeper.access.observation import LINES_MAX, Observations, ObservedDenial

APP = Resource.parse("streams:app")


def _who(name: str) -> Principal:
    return Principal(PrincipalKind.TOKEN, name)


def test_denials_are_counted_by_who_what_and_on_what() -> None:
    seen = Observations()
    for name in ("a", "b", "b"):
        seen.note(_who(name), "add", APP)
    seen.note(Principal(PrincipalKind.NOBODY, ""), "read", APP)
    assert list(seen) == [
        ObservedDenial("b", "add", "streams:app", 2),
        ObservedDenial("a", "add", "streams:app", 1),
        ObservedDenial("nobody", "read", "streams:app", 1),
    ]
    seen.clear()
    assert list(seen) == [] and seen.others == 0


def test_their_number_has_a_limit_and_the_rest_is_counted() -> None:
    seen = Observations()
    for number in range(LINES_MAX + 7):
        seen.note(_who(f"p{number}"), "x" * 10_000, APP)
    seen.note(_who("p0"), "x" * 10_000, APP)
    assert len(list(seen)) == LINES_MAX and seen.others == 7
    assert next(iter(seen)).count == 2 and len(next(iter(seen)).what) == 200
