"""What a stream's creator may set. Defaults stand here and nowhere else. Sizes are in bytes, times in milliseconds or
seconds, as the names say."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import lru_cache
from typing import Any, Final

from bookkeeper.client.config import ACK_QUORUM, ENSEMBLE, WRITE_QUORUM
from bookkeeper.errors import ConfigError
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.settings import structure
from segments.errors import StreamConfigError, StreamCorruptError, UnsupportedStreamFormatError

KIB: Final = 1024
MIB: Final = 1024 * KIB
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class RollPolicy:
    """When a segment ends and the next one starts: as soon as any of the conditions holds. 0 turns one off."""

    max_bytes: int = 128 * MIB
    max_records: int = 0
    max_age_s: float = 4 * 3600.0
    idle_age_s: float = 0.0
    """A segment with records that got none for this long ends."""
    min_age_s: float = 10.0
    """A younger segment ends only on demand."""
    age_jitter: float = 0.05
    """The age is longer by up to this share, so that many streams do not roll together."""

    def problems(self) -> list[str]:
        """What cannot be."""
        found = [f"roll.{name} is negative" for name, value in asdict(self).items() if value < 0]
        return found + (["roll.age_jitter is above 1"] if self.age_jitter > 1 else [])


@dataclass(frozen=True, slots=True)
class FlushPolicy:
    """When gathered records are sent, and when readers see them."""

    linger_ms: float = 0.0
    """How long a record may wait for others. 0: until the next turn of the loop."""
    max_bytes: int = 512 * KIB
    """An entry with this many bytes of records is sent at once."""
    max_records: int = 16_384
    visibility: str = "explicit"
    """How readers learn of the last records of a burst: ``"explicit"``, by an explicit LAC of the ledger's client;
    ``"control"``, by an entry without records, which old readers of ledgers understand, too."""

    def problems(self) -> list[str]:
        """What cannot be."""
        found = ["flush.linger_ms is negative"] if self.linger_ms < 0 else []
        if not 1 <= self.max_bytes <= ENTRY_BYTES_MAX:
            found.append(f"flush.max_bytes must be from 1 to {ENTRY_BYTES_MAX}")
        if self.max_records < 1:
            found.append("flush.max_records must be at least 1")
        if self.visibility not in ("explicit", "control"):
            found.append("flush.visibility must be explicit or control")
        return found


@dataclass(frozen=True, slots=True)
class StreamRetention:
    """Which completed segments may be removed. Without a limit everything is kept. A hold keeps in any case."""

    max_age_s: float | None = None
    """Segments completed longer ago may go."""
    max_bytes: int | None = None
    """The newest bytes that are kept; older segments may go."""
    max_records: int | None = None
    """The newest records that are kept; older segments may go."""
    consumed: bool = False
    """Segments that all durable cursors have passed may go."""
    cursors: str = "block"
    """Of a cursor that needs what age, bytes or records would remove: ``"block"`` keeps it, ``"expire"`` does not."""

    def problems(self) -> list[str]:
        """What cannot be."""
        limits = {"max_age_s": self.max_age_s, "max_bytes": self.max_bytes, "max_records": self.max_records}
        found = [f"retention.{name} is negative" for name, value in limits.items() if value is not None and value < 0]
        return found + ([] if self.cursors in ("block", "expire") else ["retention.cursors must be block or expire"])


@dataclass(frozen=True, slots=True)
class ProducerPolicy:
    """How much is remembered of idempotent producers."""

    snapshot_every_bytes: int = 4 * MIB
    """The producers are written into the stream after this many bytes of entries."""
    max_producers: int = 10_000
    """The one that was idle longest is forgotten first."""
    positions_each: int = 64
    """Of each producer, the positions of as many last batches are remembered, to answer duplicates."""

    def problems(self) -> list[str]:
        """What cannot be."""
        return [f"producers.{name} must be positive" for name, value in asdict(self).items() if value <= 0]


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """What a writer takes."""

    record_bytes: int = 16 * MIB
    """A larger record is refused. One that does not fit into an entry is stored in pieces."""
    pending_bytes: int = 32 * MIB
    """Bytes that are appended and not yet durable; then ``append`` waits, and ``append_nowait`` refuses."""

    def problems(self) -> list[str]:
        """What cannot be."""
        return [f"limits.{name} must be positive" for name, value in asdict(self).items() if value <= 0]


POSITIONS_MAX: Final = 4_000_000
"""Positions that one stream may remember of all its producers: some hundred bytes each, in whoever writes it."""

_MOST: Final = {"max_producers": 1_000_000, "snapshot_every_bytes": 1024 * MIB}

ENTRY_BYTES_MAX: Final = MIB - 4 * KIB
"""An entry is never larger, unpacked."""


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """All settings of a stream. They are stored with it; segments that exist keep theirs.

    Raises:
        StreamConfigError: names every value that cannot be.
    """

    ensemble: int = ENSEMBLE
    write_quorum: int = WRITE_QUORUM
    ack_quorum: int = ACK_QUORUM
    digest: str = "crc32c"
    roll: RollPolicy = field(default_factory=RollPolicy)
    flush: FlushPolicy = field(default_factory=FlushPolicy)
    compression: str = "none"
    """``"none"``, ``"lz4"`` or ``"zstd"``; the latter two need the extra ``[streams]``."""
    retention: StreamRetention = field(default_factory=StreamRetention)
    producers: ProducerPolicy = field(default_factory=ProducerPolicy)
    limits: StreamLimits = field(default_factory=StreamLimits)
    txid: str = "application"
    """``"application"``: it may give one with each record; ``"clock"``: the writer gives milliseconds since 1970;
    ``"none"``: no record has one."""

    def __post_init__(self) -> None:
        found = [
            problem
            for policy in (self.roll, self.flush, self.retention, self.producers, self.limits)
            for problem in policy.problems()
        ]
        found += [
            f"{policy}.{name} must be finite"
            for policy in ("roll", "flush", "retention", "producers")
            for name, value in asdict(getattr(self, policy)).items()
            if isinstance(value, float) and not math.isfinite(value)
        ]
        try:
            _ = self.quorum
        except ValueError as error:
            found.append(str(error))
        if self.compression not in ("none", "lz4", "zstd"):
            found.append("compression must be none, lz4 or zstd")
        if self.txid not in ("application", "clock", "none"):
            found.append("txid must be application, clock or none")
        if found:
            raise StreamConfigError("; ".join(found))

    @property
    def quorum(self) -> QuorumSpec:
        """How the ledgers of new segments are spread."""
        return QuorumSpec(ensemble_size=self.ensemble, write_quorum=self.write_quorum, ack_quorum=self.ack_quorum)

    @property
    def ledger_digest(self) -> str:
        """The digest of the ledgers of new segments. What travels to readers elsewhere has no password, and so no key
        of ``hmac``; a stream that asks for it from an earlier version goes on with ``crc32c``, and so does one that
        asks for none at all."""
        return "crc32c" if _has_key(self.digest) or self.digest.lower() == "dummy" else self.digest

    def require_digest(self) -> None:
        """Check that a new stream asks for nothing that it cannot have. Raises: StreamConfigError."""
        if _has_key(self.digest):
            raise StreamConfigError(
                "digest cannot be hmac: readers elsewhere, as Spark's tasks, would need the stream's password to check "
                "it; take crc32c"
            )
        if self.digest.lower() == "dummy":
            raise StreamConfigError("digest cannot be dummy: readers would check nothing; take crc32c")

    def require_bounds(self) -> None:
        """Check that a new stream, or one whose settings change, asks for no more memory than a gateway that serves
        many should give to one. Streams that have more go on. Raises: StreamConfigError."""
        producers = self.producers
        remembered = producers.max_producers * producers.positions_each
        found = [
            f"producers.{name} is more than {most}" for name, most in _MOST.items() if getattr(producers, name) > most
        ]
        if remembered > POSITIONS_MAX:
            found.append(
                f"producers.max_producers ({producers.max_producers}) times producers.positions_each "
                f"({producers.positions_each}) is more than {POSITIONS_MAX}"
            )
        if found:
            raise StreamConfigError("; ".join(found))

    def patched(self, patch: Mapping[str, Any]) -> StreamConfig:
        """The same settings with some changed: ``{"roll": {"max_age_s": 60}, "compression": "lz4"}``, or with dotted
        names, ``{"roll.max_age_s": 60}``.

        Raises:
            StreamConfigError: an option is unknown, or cannot have this value.
        """
        tables = asdict(self)
        for name, value in _nested(patch).items():
            if isinstance(value, Mapping) and isinstance(tables.get(name), dict):
                tables[name] |= value
            else:
                tables[name] = value
        changed = from_table(tables)
        if "digest" in patch:
            changed.require_digest()
        if any(name.partition(".")[0] == "producers" for name in patch):
            changed.require_bounds()
        return changed

    def encode(self) -> bytes:
        """JSON, for people and other versions."""
        return json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> StreamConfig:
        """Read what ``encode`` wrote; a setting that is not there has its default.

        Raises:
            UnsupportedStreamFormatError: a newer format. StreamCorruptError: no settings.
        """
        return _decoded(data)


def _has_key(digest: str) -> bool:
    return digest.lower() in ("hmac", "mac")


@lru_cache(maxsize=64)
def _decoded(data: bytes) -> StreamConfig:
    """Streams with the same settings share them: a process may follow ten thousand."""
    try:
        table = json.loads(data)
        version = table.pop("format")
        if version > FORMAT:
            raise UnsupportedStreamFormatError(
                f"the stream's settings have format {version}, and this program reads formats up to {FORMAT}"
            )
        return from_stored_table(table)
    except (ValueError, KeyError, TypeError, AttributeError, StreamConfigError, RecursionError) as error:
        raise StreamCorruptError(f"these are no settings of a stream: {data[:80]!r}: {error}") from error


DEFAULTS: Final = StreamConfig()

_FIELDS: Final = frozenset(StreamConfig.__dataclass_fields__)
_POLICIES: Final = frozenset(name for name in _FIELDS if is_dataclass(getattr(DEFAULTS, name)))


def from_table(table: Mapping[str, Any]) -> StreamConfig:
    """The settings from a table of options, as a TOML file or JSON has it. Names may be dotted.

    Raises:
        StreamConfigError: names every option that is unknown, or cannot have this value.
    """
    nested = _nested(table)
    if unknown := sorted(set(_names(nested)) - set(_names(asdict(DEFAULTS)))):
        raise StreamConfigError(f"there is no setting {' and no setting '.join(unknown)}; known are {_known(unknown)}")
    try:
        return structure(StreamConfig, nested)
    except ConfigError as error:
        raise StreamConfigError(str(error)) from error


def from_stored_table(table: Mapping[str, Any]) -> StreamConfig:
    """As :func:`from_table`, of all settings of a stream as they were stored or sent. Earlier versions wrote one more,
    ``producers.idle_after_s``, which never had an effect: it is passed over.
    """
    nested = _nested(table)
    if isinstance(producers := nested.get("producers"), dict):
        producers.pop("idle_after_s", None)
    return from_table(nested)


def _names(table: Mapping[str, Any]) -> Iterator[str]:
    """The dotted names of the settings in a table. A policy that is no table has none."""
    for name, value in table.items():
        if isinstance(value, Mapping) and (name in _POLICIES or name not in _FIELDS):
            yield from (f"{name}.{inner}" for inner in value)
        elif name not in _POLICIES:
            yield name


def _known(unknown: Sequence[str]) -> str:
    """The settings that may have been meant: those of the same policies, if these exist; otherwise all."""
    heads = {name.partition(".")[0] for name in unknown}
    known = sorted(_names(asdict(DEFAULTS)))
    return ", ".join(name for name in known if not heads <= _POLICIES or name.partition(".")[0] in heads)


def _nested(table: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted names as tables in tables."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        head, dot, rest = name.partition(".")
        if dot:
            inner = found.setdefault(head, {})
            if not isinstance(inner, dict):
                raise StreamConfigError(f"{head} is given as a value and as a table")
            inner.update(_nested({rest: value}))
        elif isinstance(value, Mapping) and isinstance(found.get(head), dict):
            found[head].update(value)
        else:
            found[head] = dict(value) if isinstance(value, Mapping) else value
    return found
