"""Shell: exclude what a Python process of Spark has loaded from garbage collection.

Spark's Python processes serve one task after the other and collect garbage after each. A collection visits all loaded
objects: PySpark, pandas, pyarrow and this project have about 100,000, which takes longer than reading or writing a
hundred rows. What is alive when the first task of this source or sink ends is frozen (``gc.freeze``), also in the
processes that plan and commit. It is still freed by its reference count; only cycles among it are not found any more.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Final

_DAEMON: Final = "pyspark.daemon"
"""Whose children collect garbage after each task."""

_done: Final[set[int]] = set()
"""The processes in which this was done. A fork inherits the module and what is frozen."""


def freeze_loaded_objects() -> None:
    """Freeze what is loaded, once, in a process that Spark has made to serve tasks. No effect in any other process."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is None or spec.name != _DAEMON or os.getpid() in _done:
        return
    _done.add(os.getpid())
    gc.freeze()
