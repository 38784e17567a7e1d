"""The volumes that serve, and how much space each has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bookkeeper.ids import IdRanges
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.engine import Engine


@dataclass(eq=False, slots=True)
class Volume:
    """A ledger directory with its journal, open."""

    number: int
    config: StorageConfig
    engine: Engine


class ServingVolumes:
    """In the order in which they began. Changed by :class:`~bookkeeper.volumes.members.members.Members` alone."""

    def __init__(self) -> None:
        self._volumes: dict[int, Volume] = {}
        self._free: dict[int, int] = {}
        self.by_number: Mapping[int, Volume] = self._volumes
        self.free_bytes: Mapping[int, int] = self._free
        """Free space of each volume, when it was last looked at; of one that could not be asked nothing."""

    def __iter__(self) -> Iterator[Volume]:
        return iter(list(self._volumes.values()))

    def __len__(self) -> int:
        return len(self._volumes)

    @property
    def engines(self) -> list[Engine]:
        """The engine of each volume."""
        return [each.engine for each in self._volumes.values()]

    @property
    def dropped(self) -> IdRanges:
        """Ledgers that any volume remembers as dropped; a copy."""
        return IdRanges(pair for engine in self.engines for pair in engine.dropped)

    def has_dropped(self, ledger_id: int) -> bool:
        """Whether any volume remembers the ledger as dropped."""
        return any(ledger_id in each.engine.dropped for each in self._volumes.values())

    # -- changes ------------------------------------------------------------------------------------------

    def begin(self, volume: Volume) -> None:
        """One volume more serves."""
        self._volumes[volume.number] = volume

    def end(self, number: int) -> Volume:
        """A volume serves no more. Returns it."""
        return self._volumes.pop(number)

    def note_space(self, volume: Volume) -> None:
        """Look how much space a volume has. Raises: OSError: it cannot be asked."""
        self._free[volume.number] = volume.engine.space().free
