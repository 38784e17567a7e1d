"""X12: whom a grant means."""

from __future__ import annotations

import pytest

from bookkeeper.access import Principal, PrincipalKind, Subject
from bookkeeper.access.principal import ANYONE
from bookkeeper.errors import ConfigError

WRITER = Principal(PrincipalKind.CERTIFICATE, "etl", ("writer",))
LOOKS_LIKE_A_ROLE = Principal(PrincipalKind.TOKEN, "role:writer")
NOBODY = Principal(PrincipalKind.NOBODY, "")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("etl", {WRITER}),
        ("role:writer", {WRITER}),
        ("certificate:etl", {WRITER}),
        ("token:etl", set()),
        ("name:role:writer", {LOOKS_LIKE_A_ROLE}),
        ("anyone", {WRITER, LOOKS_LIKE_A_ROLE, NOBODY}),
        ("writer", set()),
    ],
)
def test_a_subject_means_those_with_its_name_or_role(text: str, meant: set[Principal]) -> None:
    subject = Subject.parse(text)
    assert {each for each in (WRITER, LOOKS_LIKE_A_ROLE, NOBODY) if subject.matches(each)} == meant
    assert Subject.parse(str(subject)) == subject


def test_a_name_that_looks_like_everybody_is_written_as_a_name() -> None:
    assert str(Subject("name", "anyone")) == "name:anyone"
    assert Subject.parse("anyone") == ANYONE


@pytest.mark.parametrize("text", ["", "*", "role:", "etl ", "role:a*"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="principal's name"):
        Subject.parse(text)
