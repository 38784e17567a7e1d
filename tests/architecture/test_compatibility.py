"""docs/compatibility.md names every exchange that the tests let differ, with its reason, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.bookkeeper.bookie.test_vectors import DIFFERENT as BOOKIE
from tests.bookkeeper.wire.test_vectors import STRICTER
from tests.spark_wal.webhdfs.test_vectors import DIFFERENT as GATEWAY

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "compatibility.md").read_text()


def listed(section: str) -> dict[str, str]:
    """Name -> what is said of it, of the lines between the section's marks."""
    [text] = re.findall(rf"<!-- exchanges: {section} -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
    found: dict[str, str] = {}
    for line in text.splitlines():
        names, _, why = line.removeprefix("- ").partition("`: ")
        for name in re.findall(r"`([^`]+)`", f"{names}`"):
            assert name not in found, f"{name} is there twice"
            found[name] = why
    return found


def test_every_difference_of_the_bookie_is_on_the_page_and_vice_versa() -> None:
    expected = {
        f"{file.removesuffix('.json')} {exchange}": f"{status}: {why}"
        for (file, exchange), (status, why) in BOOKIE.items()
    }
    assert listed("bookie") == expected


def test_every_difference_of_the_gateway_is_on_the_page_and_vice_versa() -> None:
    assert listed("webhdfs") == GATEWAY


@pytest.mark.parametrize("exchange", STRICTER)
def test_where_the_codec_is_stricter_is_on_the_page(exchange: str) -> None:
    assert any(name.split()[1] == exchange for name in listed("bookie"))


def test_the_place_of_the_matrix_is_marked() -> None:
    assert PAGE.count("<!-- matrix:begin") == PAGE.count("<!-- matrix:end -->") == 1
