"""A bookie's disk: journal, entry logs, index. :class:`Engine` is the one door."""

from bookkeeper.storage.config import StorageConfig
from bookkeeper.storage.engine import AvailabilityRun, Engine, EngineState, EngineStats, OpenReport, PackedEntries

__all__ = ["AvailabilityRun", "Engine", "EngineState", "EngineStats", "OpenReport", "PackedEntries", "StorageConfig"]
