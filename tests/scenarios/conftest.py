"""Every step of a machine in these stories is followed by a look at its state."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bookkeeper.ledger.validated import validate_after_every_step


@pytest.fixture(scope="module", autouse=True)
def _validated_machines() -> Iterator[None]:
    yield from validate_after_every_step()
