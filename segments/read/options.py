"""How a reader behaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypedDict

from segments.errors import StreamConfigError
from segments.seek import Seek

OnGap: TypeAlias = Literal["raise", "yield", "skip"]

Parts: TypeAlias = Callable[[int, int], Sequence[tuple[int, int]]]
"""Which parts of the records ``first .. end - 1`` to hand out, as (first, end) in order."""

READ_AHEAD_BYTES: Final = 8 * 1024 * 1024
BATCH_RECORDS: Final = 65_536
"""The most records of one batch, unless its caller says otherwise."""
LOOK_S: Final = 30.0
REST_AFTER_S: Final = 10.0
PATIENCE_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How a reader behaves. Raises StreamConfigError for a value that cannot be."""

    stop: Seek | None = None
    """End before this place; None: at the end of the stream."""
    follow: bool = False
    """At the end wait for more. The reader ends only at its stop, or when the stream is sealed."""
    on_gap: OnGap = "raise"
    """What to do where records are missing."""
    read_ahead_bytes: int = READ_AHEAD_BYTES
    """How many bytes may be asked for and not yet handed out; one run, or one entry if it is larger, always is."""
    idle_error_s: float | None = None
    """Raise ReaderIdleError after this time without a record, while waiting."""
    patience_s: float = PATIENCE_S
    """How long bookies that fail are asked again before an error is raised."""
    rest_after_s: float = REST_AFTER_S
    """At the end of a stream in which nothing happens for so long, the ledger is closed until there is news. The first
    record after that comes some milliseconds later."""
    look_s: float = LOOK_S
    """How often a waiting reader looks by itself whether it was told everything."""

    def __post_init__(self) -> None:
        if self.on_gap not in ("raise", "yield", "skip"):
            raise StreamConfigError(f'on_gap must be "raise", "yield" or "skip", not {self.on_gap!r}')
        for name in ("read_ahead_bytes", "idle_error_s", "patience_s", "rest_after_s", "look_s"):
            if (value := getattr(self, name)) is not None and value <= 0:
                raise StreamConfigError(f"{name} must be positive, not {value:g}")


DEFAULT_OPTIONS: Final = ReadOptions()


class ReaderOptions(TypedDict, total=False):
    """The same, as keyword arguments."""

    stop: Seek | None
    follow: bool
    on_gap: OnGap
    read_ahead_bytes: int
    idle_error_s: float | None
    patience_s: float
    rest_after_s: float
    look_s: float
