"""What the providers that are built in have in common: their option, and how soon they notice a changed file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from bookkeeper.errors import ConfigError
from bookkeeper.real import WatchedFile
from bookkeeper.seams import Clock

LOOK_S: Final = 1.0
"""The least seconds between two looks at a file because of a new connection."""


def file_option(options: Mapping[str, Any], provider: str, what: str) -> str:
    """The option ``file``, which is all that a provider has; ``what`` it holds stands in the error.

    Raises:
        ConfigError: it is missing, or there is another one.
    """
    unknown = next((name for name in options if name != "file"), None)
    if unknown is not None:
        raise ConfigError(f'auth.options.{unknown} is unknown: the provider "{provider}" has the option file')
    path = options.get("file")
    if not isinstance(path, str) or not path:
        raise ConfigError(f'the provider "{provider}" needs auth.options.file, the name of a private file ({what})')
    return path


class Freshness:
    """Looks at a file when a client comes, so that a new user or key is known at once; once a second at most."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looked = clock.monotonic()

    def refresh(self, file: WatchedFile[Any]) -> None:
        """Read the file again if it has changed. If it cannot be used, the old value stays: the regular check
        reports that."""
        now = self._clock.monotonic()
        if now - self._looked >= LOOK_S:
            self._looked = now
            with suppress(ConfigError):
                file.refresh()
