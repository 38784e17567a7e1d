"""What a bookie stores ledgers in. Each ledger directory is a *volume*, a disk of its own with a journal of its own.

A volume is a whole :class:`~bookkeeper.storage.engine.Engine`. :class:`~bookkeeper.volumes.volumes.Volumes` is one or
more of them, with the same interface as an engine. Several need a map of which volume has which ledger
(:mod:`~bookkeeper.volumes.map.ledger_map`); that is stored, never computed, and stored outside of the volumes, so that
it survives the loss of any of them.

``mapped_volumes`` is several, ``after_all`` joins what is begun on each, and ``volume_drain`` empties one.

Of several a volume is the unit of failure (B12). One that fails leaves, the others serve on, and of its ledgers
everything is unknown until their copies are whole on another volume.
"""

from bookkeeper.volumes.disks.serving import Volume
from bookkeeper.volumes.mapped_volumes import MappedVolumes
from bookkeeper.volumes.volumes import OneVolume, Volumes

__all__ = ["MappedVolumes", "OneVolume", "Volume", "Volumes"]
