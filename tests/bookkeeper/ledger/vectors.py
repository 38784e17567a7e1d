"""Captured facts, as data."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def load(name: str) -> dict[str, Any]:
    """A file of ``tests/vectors``."""
    text = (Path(__file__).parents[2] / "vectors" / name).read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data
