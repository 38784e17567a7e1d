"""What all tests share: hypothesis profiles. Fixtures live beside the tests that use them."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "commit", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("long", parent=settings.get_profile("commit"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "commit"))
