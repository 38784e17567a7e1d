"""How an optional part is installed: the distribution is in no registry, so its name alone finds nothing."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """What to type for one of the extras (``[project.optional-dependencies]``)."""
    return f"pip install '.[{extra}]' in a checkout, or pip install 'PATH_OF_THE_WHEEL[{extra}]'"
