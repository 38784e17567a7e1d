"""The paths of all values. ``root`` is the cluster's root, by default ``/ledgers``.

Java's tree::

    <root>                      empty
    |-- LAYOUT                  layout.py
    |-- INSTANCEID              the cluster's UUID as text
    |-- available               writable bookies, one ephemeral value each (service_info.py)
    |   `-- readonly            read-only bookies, the same
    |-- cookies                 every bookie that ever joined (cookies.py)
    |-- idgen, idgen-long       ledger ids (ledger_ids.py)
    `-- 00/0000/L0000 ...       ledgers (layout.py says where)

State that only this package knows lies beside it, in ``<root>-py``, where no Java process lists anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from bookkeeper.ids import BookieId
from bookkeeper.meta.store import check_path

DEFAULT_ROOT = "/ledgers"


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of one cluster."""

    root: str = DEFAULT_ROOT

    def __post_init__(self) -> None:
        if check_path(self.root) == "/":
            raise ValueError("the root of a cluster must not be the root of its store; use a path such as /ledgers")

    @property
    def layout(self) -> str:
        return f"{self.root}/LAYOUT"

    @property
    def instance_id(self) -> str:
        return f"{self.root}/INSTANCEID"

    @property
    def available(self) -> str:
        return f"{self.root}/available"

    @property
    def read_only(self) -> str:
        return f"{self.root}/available/readonly"

    @property
    def cookies(self) -> str:
        return f"{self.root}/cookies"

    @property
    def id_generator(self) -> str:
        return f"{self.root}/idgen"

    @property
    def long_id_generator(self) -> str:
        return f"{self.root}/idgen-long"

    def long_ids(self, high: int) -> str:
        """Below this the ids are numbered whose high 32 bits are ``high``."""
        return f"{self.long_id_generator}/HOB-{high:010d}"

    def available_bookie(self, bookie: BookieId) -> str:
        return f"{self.available}/{bookie}"

    def read_only_bookie(self, bookie: BookieId) -> str:
        return f"{self.read_only}/{bookie}"

    def cookie(self, bookie: BookieId) -> str:
        return f"{self.cookies}/{bookie}"

    @property
    def own_root(self) -> str:
        """The root of the state that only this package knows."""
        return f"{self.root}-py"

    def own(self, *parts: str) -> str:
        """A path below :attr:`own_root`, for instance ``own("boot", bookie)``."""
        return "/".join((self.own_root, *parts))
