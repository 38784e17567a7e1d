"""Several ledger directories in one bookie: each is a *volume*, a disk of its own with a journal of its own.

A volume is a whole :class:`~bookkeeper.storage.engine.Engine`, so it is started, checked, compacted and scrubbed like
the disk of a bookie with one directory. :class:`~bookkeeper.volumes.volumes.Volumes` is the door before them, with the
face of an engine. It remembers which volume has which ledger (:mod:`~bookkeeper.volumes.placement`); that is stored,
never computed, and stored outside of the volumes, so that it survives the loss of any of them.

A volume is the unit of failure (B12). One that fails leaves, the others serve on, and of its ledgers everything is
unknown until their copies are whole on another volume.
"""

from bookkeeper.volumes.volume import Volume
from bookkeeper.volumes.volumes import BookieStorage, Volumes

__all__ = ["BookieStorage", "Volume", "Volumes"]
