"""Which optional part of the distribution brings a Python package that is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXTRAS: Final[Mapping[str, str]] = {
    "aiohttp": "spark",
    "cryptography": "spark",
    "pyarrow": "copy",
    "pyspark": "spark",
    "puresasl": "zookeeper-sasl",
}
"""Packages as they are imported -> the extra (``[project.optional-dependencies]``) that a user asks for them."""


def missing(error: ModuleNotFoundError) -> str:
    """What is needed, and how to get it: the end of a sentence that begins with who needs it."""
    package = (error.name or str(error)).partition(".")[0]
    needs = f"needs the Python package {package!r}, which is not installed"
    extra = EXTRAS.get(package)
    return needs if extra is None else f"{needs}: pip install 'bookkeeper-py[{extra}]'"
