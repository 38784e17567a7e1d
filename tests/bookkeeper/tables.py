"""Looks at every table that a part of the program keeps in memory, for tests of what must not grow."""

from __future__ import annotations

import gc
import types
from collections import deque
from collections.abc import Sized

from bookkeeper.ids import IdRanges

CONTAINERS = (dict, list, set, frozenset, deque, tuple)


def tables_of(*roots: object) -> dict[str, int]:
    """The size of the largest of each kind of container that can be reached from ``roots`` through our own objects.
    Kinds are named by the attribute that leads there. Classes, functions and the simulated world are left out."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    queue: deque[tuple[object, str]] = deque((root, type(root).__name__) for root in roots)
    while queue:
        each, name = queue.popleft()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, (*CONTAINERS, IdRanges)):
            assert isinstance(each, Sized)
            found[name] = max(found.get(name, 0), len(each))
        elif not _is_ours(each):
            continue
        for attribute, referent in _held_by(each):
            queue.append((referent, f"{type(each).__name__}.{attribute}" if attribute else name))
    return found


def _is_ours(each: object) -> bool:
    if isinstance(each, type):
        return False
    if isinstance(each, types.MethodType | types.CellType):
        return True
    if isinstance(each, types.FunctionType):
        return each.__closure__ is not None and each.__module__.startswith("bookkeeper.")
    module = type(each).__module__
    return module.startswith("bookkeeper.") and not module.startswith("bookkeeper.testing")


def _held_by(each: object) -> list[tuple[str, object]]:
    if isinstance(each, types.FunctionType):
        return [("", cell) for cell in each.__closure__ or ()]
    named = dict(getattr(each, "__dict__", {}))
    for kind in type(each).__mro__:
        slots = getattr(kind, "__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if hasattr(each, slot):
                named[slot] = getattr(each, slot)
    return list(named.items()) if named else [("", referent) for referent in gc.get_referents(each)]
