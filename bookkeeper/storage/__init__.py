"""A bookie's disk: journal, entry logs, index. :class:`Engine` is the one door."""

from bookkeeper.storage.config import StorageConfig
from bookkeeper.storage.engine import Engine, single
from bookkeeper.storage.shapes import AvailabilityRun, Done, EngineState, EngineStats, OpenReport, PackedEntries

__all__ = [
    "AvailabilityRun",
    "Done",
    "Engine",
    "EngineState",
    "EngineStats",
    "OpenReport",
    "PackedEntries",
    "StorageConfig",
    "single",
]
