"""Which optional part of the distribution brings a missing Python package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bookkeeper.install import how_to_install

EXTRAS: Final[Mapping[str, str]] = {
    "aiohttp": "spark",
    "cryptography": "spark",
    "grpc": "grpc",
    "grpc_health": "grpc",
    "grpc_reflection": "grpc",
    "jinja2": "console",
    "pyarrow": "copy",
    "pyspark": "spark",
    "puresasl": "zookeeper-sasl",
}
"""The extra (``[project.optional-dependencies]``) that brings each Python package, by the name of its import."""


def missing(error: ModuleNotFoundError) -> str:
    """What is missing, and how to get it. It ends a sentence whose subject needs the package."""
    package = (error.name or str(error)).partition(".")[0]
    needs = f"needs the Python package {package}, which is not installed"
    extra = EXTRAS.get(package)
    return needs if extra is None else f"{needs}: {how_to_install(extra)}"
