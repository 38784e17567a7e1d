"""What the stories of all demos have: what a person may choose, and blows with quiet between them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """What a person may choose, and how long things take."""

    directory: Path
    metadata: str = "sqlite"
    sabotage: bool = False
    pause_s: float = 8.0
    """Quiet between two blows."""


async def strike(
    blows: Sequence[Callable[[], Awaitable[None]]], pause_s: float, check: Callable[[], None] = lambda: None
) -> None:
    """Strike one blow after the other, with so much quiet before each and after the last.

    Args:
        check: raises if something has failed meanwhile.
    """
    for blow in blows:
        await asyncio.sleep(pause_s)
        check()
        await blow()
    await asyncio.sleep(pause_s)
