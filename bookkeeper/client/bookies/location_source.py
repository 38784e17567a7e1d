"""Loads the source of locations that a client's settings name: a file, a script, or a function, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Final, cast

from bookkeeper.errors import ConfigError

LocationSource = Callable[[Sequence[str]], Mapping[str, str]]
"""Ids of bookies -> the locations of those that are known. It may block, and is called on a worker."""

_BINDINGS: Final = "bookkeeper.real.location_sources"


def location_source(text: str) -> LocationSource:
    """The source that a text names: ``file:/PATH``, ``script:/PATH`` or ``MODULE:FUNCTION``.

    Raises:
        ConfigError: there is no such module or function.
    """
    kind, _, rest = text.partition(":")
    if kind in ("file", "script"):
        bindings = import_module(_BINDINGS)
        return partial(bindings.from_file if kind == "file" else bindings.from_script, rest)
    try:
        return cast(LocationSource, getattr(import_module(kind), rest))
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"locations_from {text}: {error}") from error
