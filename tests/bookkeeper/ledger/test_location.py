"""Q6: where a bookie stands."""

from __future__ import annotations

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.ledger.location import DEFAULT_LOCATION, Location


@pytest.mark.parametrize(
    ("text", "written", "region"),
    [
        ("/r1/rack1", "/r1/rack1", "r1"),
        ("/rack9", "/rack9", "rack9"),
        ("rack2", "/rack2", "rack2"),
        ("/r1/rack1/x/", "/r1/rack1/x", "r1"),
        (" /r1//rack1 ", "/r1/rack1", "r1"),
    ],
)
def test_a_place_has_one_form(text: str, written: str, region: str) -> None:
    assert str(Location.parse(text)) == written
    assert Location.parse(text).region == region
    assert Location.parse(written) == Location.parse(text)


@pytest.mark.parametrize("text", ["/room/a b", "", "/", "  ", "/a b", "/a\x00b", "/" + "a" * 300, "/a" * 9])
def test_what_is_no_place_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match="is no network location: write /RACK or /REGION/RACK"):
        Location.parse(text)


def test_the_default_is_apaches() -> None:
    assert str(DEFAULT_LOCATION) == "/default-rack"
