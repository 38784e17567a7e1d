"""Do we still tell the same stories?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.scripts import retell, scripts


@pytest.mark.parametrize("path", scripts(), ids=lambda path: path.stem)
def test_the_story_is_told_as_written(path: Path) -> None:
    script = path.read_text(encoding="utf-8")
    assert retell(script) == script


def test_there_are_stories() -> None:
    assert len(scripts()) >= 6
