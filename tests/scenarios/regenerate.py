"""Writes every script's outcomes anew."""

from __future__ import annotations

from tests.scenarios.scripts import retell, scripts

if __name__ == "__main__":
    for path in scripts():
        path.write_text(retell(path.read_text(encoding="utf-8")), encoding="utf-8")
