"""Where a bookie stands: a path such as ``/region/rack``, from the largest place to the smallest.

Bookies in one place fail together: a rack loses its power, a region its network. Two bookies are in one rack if their
whole paths are equal, and in one region if the paths begin alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import ConfigError

DEFAULT_RACK: Final = "/default-rack"
"""Where a bookie counts as standing if nothing is known of it, as with Apache's."""

PARTS_MAX: Final = 8
LENGTH_MAX: Final = 256

_PART: Final = re.compile(r"[^\s/\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place, by its parts from the largest to the smallest."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Location:
        """Read ``/rack`` or ``/region/rack``; a slash at the end, or none at the beginning, makes no other place.

        Raises:
            ConfigError: the text names no place; the error says what was given and what is expected.
        """
        parts = tuple(part for part in text.strip().split("/") if part)
        fits = len(text) <= LENGTH_MAX and 0 < len(parts) <= PARTS_MAX and all(map(_PART.fullmatch, parts))
        if not fits:
            raise ConfigError(
                f"{text[:100]!r} is no network location: write /RACK or /REGION/RACK, of at most {PARTS_MAX} parts and "
                f"{LENGTH_MAX} characters, without blanks"
            )
        return cls(parts)

    def __str__(self) -> str:
        return "/" + "/".join(self.parts)

    def distance(self, other: Location) -> int:
        """0: the same place; 1: the same region; 2: another one."""
        return 0 if self == other else 1 if self.region == other.region else 2

    @property
    def region(self) -> str:
        """The largest place: the first part."""
        return self.parts[0]


DEFAULT_LOCATION: Final = Location.parse(DEFAULT_RACK)
