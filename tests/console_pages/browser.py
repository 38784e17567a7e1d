"""Chromium and what drives it, where they can be had."""

from __future__ import annotations

import shutil
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TOOLS: Final = ROOT / ".venv-browser"
DRIVER: Final = "playwright==1.56.0"
NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class NoBrowserError(Exception):
    """There is no browser, or nothing to drive it with; the text says what to do."""


def chromium(which: Callable[[str], str | None] = shutil.which) -> str:
    """The browser's path. Raises: NoBrowserError."""
    for name in NAMES:
        if (found := which(name)) is not None:
            return found
    raise NoBrowserError("there is no Chromium here: install the package chromium")


def driver() -> str:
    """A Python that has Playwright; it is fetched the first time. Raises: NoBrowserError."""
    python = TOOLS / "bin" / "python"
    if not python.exists():
        venv.create(TOOLS, with_pip=True)
    has = subprocess.run([str(python), "-c", "import playwright"], check=False, stderr=subprocess.DEVNULL)
    if has.returncode:
        done = subprocess.run([str(python), "-m", "pip", "install", "--quiet", DRIVER], check=False)
        if done.returncode:
            raise NoBrowserError(f"{DRIVER} could not be installed: this needs a network")
    return str(python)
