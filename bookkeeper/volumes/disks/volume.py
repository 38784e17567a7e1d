"""One volume that serves."""

from __future__ import annotations

from dataclasses import dataclass

from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.engine import Engine


@dataclass(eq=False, slots=True)
class Volume:
    """A ledger directory with its journal, open."""

    number: int
    config: StorageConfig
    engine: Engine
