"""How much an installation has downloaded, from pip's own log: ``python -m examples.flights.downloaded LOG``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_LINE = re.compile(r"Downloading \S+(?: \(([\d.]+) (kB|MB|GB)\))?")
_MEGABYTES = {"kB": 0.001, "MB": 1.0, "GB": 1000.0}


def megabytes(log: str) -> float:
    """The sum of the sizes that pip names; what came from its cache counts nothing."""
    return sum(float(size) * _MEGABYTES[unit] for size, unit in _LINE.findall(log) if size)


if __name__ == "__main__":
    print(round(megabytes(Path(sys.argv[1]).read_text())))
