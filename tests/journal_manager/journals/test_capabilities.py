"""What a backend can do besides the contract, and how one that cannot says so."""

from __future__ import annotations

import pytest

from journal_manager import open_writer
from journal_manager.backends.memory import MemoryHub
from journal_manager.errors import UnsupportedCapabilityError
from journal_manager.journals.capabilities import Orphan, OrphanSweep, capability


class Broom:
    async def find_orphans(self, *, older_than_s: float = 1) -> tuple[Orphan, ...]:
        return ()

    async def sweep_orphans(self, *, older_than_s: float = 1) -> tuple[Orphan, ...]:
        return ()


async def test_who_has_the_methods_has_the_capability() -> None:
    broom = Broom()
    assert capability(broom, OrphanSweep) is broom  # type: ignore[type-abstract]
    writer = await open_writer("mem:x", hub=MemoryHub())
    with pytest.raises(UnsupportedCapabilityError, match="OrphanSweep"):
        capability(writer, OrphanSweep)  # type: ignore[type-abstract]
