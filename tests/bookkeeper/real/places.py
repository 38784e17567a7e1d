"""Places that belong to somebody else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bookkeeper.real import private


def in_place_of_another(monkeypatch: pytest.MonkeyPatch, path: Path) -> str:
    """From now on this process has another user than the owner of ``path``, who is not root, either. Returns a pattern
    of what is said of it."""
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr(private, "ROOT", owner + 2)
    return f"belongs to another user .number {owner}.*choose a place of your own.*chown {owner + 1}"
