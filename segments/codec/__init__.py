"""The hot paths: a reader's runs of entries of one record are read as one thing, and numbers become columns; a writer's
values become an entry, and the results of their appends.

A *lone* entry holds one value and nothing else, as a writer leaves it that waits for each record: no key, no headers,
no producer, not compressed.
The compiled codec is used where bookkeeper's is; both give the same results.

pure    the functions in Python
native  the same, compiled: typed Cython in pure-Python syntax
"""

from typing import TYPE_CHECKING

from bookkeeper.codec import IMPLEMENTATION
from segments.codec import pure

if TYPE_CHECKING or IMPLEMENTATION == "pure":
    _codec = pure
else:
    try:
        from segments.codec import native as _codec
    except ImportError:
        _codec = pure
    if not hasattr(_codec, "append_results"):  # built from an earlier version
        _codec = pure

count_lone = _codec.count_lone
lone_values = _codec.lone_values
lone_records = _codec.lone_records
lone_columns = _codec.lone_columns
rising = _codec.rising
repeated = _codec.repeated
entry_of_values = _codec.entry_of_values
append_results = _codec.append_results

__all__ = [
    "append_results",
    "count_lone",
    "entry_of_values",
    "lone_columns",
    "lone_records",
    "lone_values",
    "repeated",
    "rising",
]
