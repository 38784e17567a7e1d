from __future__ import annotations

import re

import pytest

from tests.segments.world.__main__ import TITLE
from tests.segments.world.stream_bugs import BUGS
from tests.segments.world.test_stream_worlds import ROOT, worlds

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_planted_for_a_while_only(name: str) -> None:
    former = {key: getattr(*key) for key in BUGS[name].replacements()}
    with BUGS[name].planted():
        assert all(getattr(*key) is not value for key, value in former.items())
    assert all(getattr(*key) is value for key, value in former.items())


def test_a_planted_bug_is_found() -> None:
    assert re.fullmatch(r"one-record-not-counted: seed \d+: .*\n", worlds("--bug", "one-record-not-counted"))


def test_the_fault_log_names_every_planted_bug() -> None:
    page = (ROOT / "docs" / "faultlog.md").read_text()
    _, _, rest = page.partition(f"## {TITLE}\n")
    rows = re.findall(
        r"^\| `([a-z-]+)` \| (.*?) \| \w+ \| \d+ \| \d+ \| .+ \|$", rest.partition("\n## ")[0], re.MULTILINE
    )
    assert dict(rows) == {name: bug.what for name, bug in BUGS.items()}, "each was found"
