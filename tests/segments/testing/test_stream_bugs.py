from __future__ import annotations

import re

import pytest

from segments.testing.stream_bugs import BUGS
from tests.segments.testing.test_stream_worlds import worlds

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_planted_for_a_while_only(name: str) -> None:
    former = {key: getattr(*key) for key in BUGS[name].replacements()}
    with BUGS[name].planted():
        assert all(getattr(*key) is not value for key, value in former.items())
    assert all(getattr(*key) is value for key, value in former.items())


def test_a_planted_bug_is_found() -> None:
    assert re.fullmatch(r"one-record-not-counted: seed \d+: .*\n", worlds("--bug", "one-record-not-counted"))
