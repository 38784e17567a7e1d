"""Bugs, planted to test the simulated worlds: worlds that do not find them are too weak.

Each replaces a piece of the program for as long as a world runs. The program knows nothing of them.
"""

from __future__ import annotations

from typing import Final

BUGS: Final = {}
