"""What all tests share: how many examples hypothesis makes, and how many of them a test asks for."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
"""Else gRPC begins to work again in each child that is forked, until it becomes its program, and may end it."""

settings.register_profile(
    "commit", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("core", parent=settings.get_profile("commit"), max_examples=20)
settings.register_profile("long", parent=settings.get_profile("commit"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "commit"))
