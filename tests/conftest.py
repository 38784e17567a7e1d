"""What all tests share: hypothesis profiles, and who runs beside whom. Fixtures live beside the tests that use them."""

from __future__ import annotations

import os
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

OUTSIDE: Final = ("integration", "spark", "zookeeper", "interop")
"""Marks of tests with processes of their own."""

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
"""Else gRPC begins to work again in each child that is forked, until it becomes its program, and may end it."""

settings.register_profile(
    "commit", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("long", parent=settings.get_profile("commit"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "commit"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Side by side (``pytest -n``) a file's tests stay together, and all that start processes of their own or Java run
    one after the other in one worker: they use every core by themselves. First, because what xdist does in this hook
    reads the marks."""
    for item in items:
        outside = any(item.get_closest_marker(name) for name in OUTSIDE)
        item.add_marker(pytest.mark.xdist_group("outside" if outside else str(item.path)))
