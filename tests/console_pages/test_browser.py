"""Where there is no browser, that is said."""

from __future__ import annotations

import pytest

from tests.console_pages import stage
from tests.console_pages.browser import NoBrowserError, chromium


def test_a_browser_is_found_by_any_of_its_names() -> None:
    assert chromium({"google-chrome": "/usr/bin/google-chrome"}.get) == "/usr/bin/google-chrome"
    with pytest.raises(NoBrowserError, match="install the package chromium"):
        chromium(lambda name: None)


def test_without_a_browser_the_command_says_that_nothing_was_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none() -> str:
        raise NoBrowserError("there is no Chromium here")

    monkeypatch.setattr(stage, "chromium", none)
    assert stage.main([]) == 0
    assert capsys.readouterr().out.startswith("SKIPPED: the console was not looked at in a browser")
