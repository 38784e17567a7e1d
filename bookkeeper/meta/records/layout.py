"""The ledger layouts: under which path a ledger's metadata lie, and the LAYOUT value that says which layout is used.

Four managers of Apache BookKeeper; the value's text is ``2\\n<factory class>:<manager version>``.

=====================  ==========================================================  =========================
flat                   ``L`` and ten digits                                        ``/L0000000005``
hierarchical (legacy)  ten digits, 2-4-4                                           ``/00/0000/L0005``
longhierarchical       nineteen digits, 3-4-4-4-4                                  ``/000/0000/0000/0000/L0005``
hierarchical           the short form below 2**31 - 1, else the long one           the default
=====================  ==========================================================  =========================
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from enum import Enum
from typing import Final

from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import LedgerId
from bookkeeper.meta.store import MetadataStore, names_below

SHORT_MAX: Final = 2**31 - 1
"""Ids from this one on have the long form; it is the first of them."""

_PACKAGE = "org.apache.bookkeeper.meta."
_FLAT_NAME = re.compile(r"L([0-9]{10})")
_LEAF_NAME = re.compile(r"L([0-9]{4})")
_PARENT_NAME = re.compile(r"[0-9]{2,4}")
_SHORT_WIDTHS = (2, 4)
_LONG_WIDTHS = (3, 4, 4, 4)


class Layout(Enum):
    """A ledger manager, by the name of its Java factory."""

    FLAT = "FlatLedgerManagerFactory"
    LEGACY_HIERARCHICAL = "LegacyHierarchicalLedgerManagerFactory"
    LONG_HIERARCHICAL = "LongHierarchicalLedgerManagerFactory"
    HIERARCHICAL = "HierarchicalLedgerManagerFactory"

    def ledger_path(self, root: str, ledger_id: LedgerId) -> str:
        """The path of a ledger's metadata.

        Raises:
            ValueError: the manager has no place for such an id.
        """
        if not 0 <= ledger_id < 2**63 or (self in _SHORT_ONLY and ledger_id >= SHORT_MAX):
            raise ValueError(f"the layout {self.name.lower()} has no place for ledger id {ledger_id}")
        if self is Layout.FLAT:
            return f"{root}/L{ledger_id:010d}"
        if self is Layout.LONG_HIERARCHICAL or ledger_id >= SHORT_MAX:
            return f"{root}/{_split(f'{ledger_id:019d}', _LONG_WIDTHS)}"
        return f"{root}/{_split(f'{ledger_id:010d}', _SHORT_WIDTHS)}"

    def ledger_at(self, root: str, path: str) -> LedgerId | None:
        """The reverse of :meth:`ledger_path`; None: no ledger's metadata lie at this path."""
        digits = path.removeprefix(root).replace("/", "").replace("L", "")
        if not digits.isdecimal() or not digits.isascii():
            return None
        ledger_id = LedgerId(int(digits))
        try:
            return ledger_id if self.ledger_path(root, ledger_id) == path else None
        except ValueError:
            return None

    def emptied_parents(self, root: str, ledger_id: LedgerId) -> list[str]:
        """The paths above a ledger that are removed when they become empty, lowest first."""
        parts = self.ledger_path("", ledger_id).split("/")[1:-1]
        return [f"{root}/{'/'.join(parts[:depth])}" for depth in range(len(parts), 0, -1)]

    async def walk(self, store: MetadataStore, root: str) -> AsyncIterator[LedgerId]:
        """All ledgers below ``root``, ascending. A directory that disappears meanwhile was empty. An error ends the
        walk. Names that no ledger can have are passed over.
        """
        top = await store.children(root)
        if self is Layout.FLAT:
            for name in top:
                if (match := _FLAT_NAME.fullmatch(name)) and int(match[1]) < SHORT_MAX:
                    yield LedgerId(int(match[1]))
            return
        forms = {
            Layout.LEGACY_HIERARCHICAL: (_SHORT_WIDTHS,),
            Layout.LONG_HIERARCHICAL: (_LONG_WIDTHS,),
            Layout.HIERARCHICAL: (_SHORT_WIDTHS, _LONG_WIDTHS),
        }[self]
        for widths in forms:
            for name in top:
                if len(name) == widths[0] and _PARENT_NAME.fullmatch(name):
                    async for ledger_id in _below(store, f"{root}/{name}", name, widths[1:]):
                        yield ledger_id


_SHORT_ONLY = (Layout.FLAT, Layout.LEGACY_HIERARCHICAL)

BY_URI_NAME: Final = {
    "flat": Layout.FLAT,
    "hierarchical": Layout.HIERARCHICAL,
    "longhierarchical": Layout.LONG_HIERARCHICAL,
}
"""The names in ``zk+<name>://`` addresses."""


def _split(digits: str, widths: tuple[int, ...]) -> str:
    parts = []
    for width in widths:
        parts.append(digits[:width])
        digits = digits[width:]
    return "/".join((*parts, f"L{digits}"))


async def _below(store: MetadataStore, path: str, digits: str, widths: tuple[int, ...]) -> AsyncIterator[LedgerId]:
    for name in await names_below(store, path):
        if not widths:
            if (match := _LEAF_NAME.fullmatch(name)) and int(digits + match[1]) < 2**63:
                yield LedgerId(int(digits + match[1]))
        elif len(name) == widths[0] and _PARENT_NAME.fullmatch(name):
            async for ledger_id in _below(store, f"{path}/{name}", digits + name, widths[1:]):
                yield ledger_id


def encode(layout: Layout) -> bytes:
    """The LAYOUT value, without a newline at the end."""
    return f"2\n{_PACKAGE}{layout.value}:1".encode()


def decode(data: bytes) -> Layout:
    """The reverse of encode; also the names of layout version 1.

    Raises:
        MetadataFormatError: the text is no layout, or names an unknown manager.
    """
    match data.decode(errors="replace").split("\n"):
        case ["1", name, *_]:
            known = {"flat:1": Layout.FLAT, "hierarchical:1": Layout.LEGACY_HIERARCHICAL}
        case ["2", name, *_]:
            known = {f"{_PACKAGE}{layout.value}:1": layout for layout in Layout}
        case _:
            name, known = "", {}
    if name not in known:
        shown = data[:80].decode(errors="replace").replace("\n", " ")
        raise MetadataFormatError(f"this program does not know the cluster's ledger layout: {shown}")
    return known[name]
