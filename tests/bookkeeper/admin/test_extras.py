"""Packages that are not there are named together with the extra that brings them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from bookkeeper.admin.extras import EXTRAS, missing
from bookkeeper.install import how_to_install

ROOT = Path(__file__).parents[3]
OTHER_NAMES = {
    "puresasl": "pure-sasl",
    "grpc": "grpcio",
    "grpc_health": "grpcio-health-checking",
    "grpc_reflection": "grpcio-reflection",
}
"""Import name -> package, where they differ."""


def test_the_extras_that_are_named_bring_these_packages() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        wanted = OTHER_NAMES.get(package, package)
        assert any(re.match(rf"{wanted}\b", line) for line in declared[extra]), f"{extra} does not bring {package}"


def test_a_package_of_nobody_s_is_named_alone() -> None:
    assert missing(ModuleNotFoundError(name="nobody.part")) == (
        "needs the Python package nobody, which is not installed"
    )
    assert missing(ModuleNotFoundError(name="pyarrow.fs")).endswith(": " + how_to_install("copy"))
