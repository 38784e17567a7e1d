"""The options of ``format("bookkeeper")`` as settings (pure).

Spark makes names of options lower-case; they are written here as users write them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from segments.errors import SeekFormatError, StreamNameError
from segments.names import check_short_name, check_stream_name
from segments.seek import Seek, parse_seek


class DataSourceOptionError(ValueError):
    """An option is unknown, missing, or has a value that cannot be. Nothing was read or written."""


METADATA: Final = "metadata"
_OBJECTS: Final = ("stream", "streams", "ledger", "journal")
_FORMATS: Final = ("raw", "json", "arrow")
_MODES: Final = ("FAILFAST", "PERMISSIVE")
_GAPS: Final = ("fail", "count")
_GATEWAYS: Final = ("grpc://", "grpcs://")
_GUARANTEES: Final = ("exactlyOnce", "atLeastOnce")
_COMPRESSIONS: Final = ("none", "lz4", "zstd")

READ_OPTIONS: Final = (
    METADATA,
    *_OBJECTS,
    "startingPosition",
    "endingPosition",
    "valueFormat",
    "mode",
    "minPartitions",
    "onGap",
    "retrySeconds",
    "passwordFile",
)
STREAM_OPTIONS: Final = ("maxRowsPerTrigger", "maxBytesPerTrigger", "holdName", "cursor")
WRITE_OPTIONS: Final = (
    METADATA,
    "stream",
    "createStream",
    "gateway",
    "takeOver",
    "guarantee",
    "valueFormat",
    "compression",
    "txnAppId",
    "txnVersion",
    "txnStart",
    "retrySeconds",
)
_PURPOSES: Final = (
    (WRITE_OPTIONS, "is for writing"),
    (READ_OPTIONS, "is for reading"),
    (STREAM_OPTIONS, "is for a stream that is read by readStream"),
)
"""What options are for, where they are not known; the last that fits counts."""
_SPARK_OWN: Final = frozenset({"checkpointlocation", "queryname"})
"""Options that Spark hands on although they are its own."""
_OF_TABLE: Final = "provider"
"""Spark hands it on with the options of a table of its catalog."""

MIN_PARTITIONS: Final = 4
RETRY_S: Final = 120.0
_NUMBER_MAX: Final = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """The settings of a reader of any kind."""

    metadata: str
    """The cluster's address."""
    stream: str | None = None
    streams: str | None = None
    """A prefix with a star at its end: all streams whose names begin so."""
    ledger: int | None = None
    journal: str | None = None
    start: str = "earliest"
    """As ``parse_seek`` reads it; of a ledger or a journal, a number or earliest."""
    stop: str = "latest"
    value_format: str = "raw"
    permissive: bool = False
    """A value that does not fit becomes a row of nulls; otherwise the query ends."""
    min_partitions: int = MIN_PARTITIONS
    count_gaps: bool = False
    """Missing records are counted and told in the log; otherwise the query ends."""
    retry_s: float = RETRY_S
    """For how many seconds calls to a cluster that does not answer are repeated."""
    password_file: str | None = None
    """Of a ledger; read where the tasks run."""
    max_rows: int | None = None
    max_bytes: int | None = None
    hold_name: str | None = None
    cursor: str | None = None

    @property
    def what(self) -> str:
        """What is read, for messages."""
        for kind, name in (("stream", self.stream), ("streams", self.streams), ("journal", self.journal)):
            if name is not None:
                return f"{kind} {name}"
        return f"ledger {self.ledger}"

    @property
    def start_seek(self) -> Seek:
        """Where reading a stream begins."""
        return parse_seek(self.start)

    @property
    def stop_seek(self) -> Seek:
        """Where reading a stream ends."""
        return parse_seek(self.stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSettings:
    """The settings of a writer."""

    metadata: str
    stream: str
    gateway: str | None = None
    """Who publishes the batch, where a gateway owns the stream. The same as ``metadata`` where tasks reach gateways
    alone: then their rows go along in their messages."""
    at_least_once: bool = False
    """Tasks append through gateways, whose address is ``metadata``."""
    create: bool = False
    """Make the stream if it is not there."""
    take_over: bool = False
    """End the segment of a writer that has the stream open, and may be alive."""
    compression: str | None = None
    """Of the ledgers that tasks write; None: as the stream's settings say."""
    value_format: str | None = None
    """``raw`` or ``json``; None: raw if there is a column ``value``, else JSON of all columns without a meaning."""
    app: str | None = None
    """Who writes, instead of the query's id; it outlives a checkpoint."""
    version: int | None = None
    """The batch's number, where Spark does not give one (``df.write``)."""
    start: int | None = None
    """The number that batch 0 of a query with another id counts as."""
    retry_s: float = RETRY_S


def read_settings(options: Mapping[str, str], *, streaming: bool) -> ReadSettings:
    """The settings of a reader. Raises DataSourceOptionError."""
    known = READ_OPTIONS + (STREAM_OPTIONS if streaming else ())
    found = _Options(options, known)
    named = [name for name in _OBJECTS if found.has(name)]
    if len(named) != 1:
        said = f"{' and '.join(named)} are given" if named else "none is given"
        raise DataSourceOptionError(f"name what to read by one of the options {', '.join(_OBJECTS)}: {said}")
    if streaming and named != ["stream"]:
        raise DataSourceOptionError(f"readStream reads one stream (option stream), not a {named[0]}: use read")
    if streaming and found.has("endingPosition"):
        raise DataSourceOptionError("endingPosition is for read: a query that reads a stream has no end")
    if found.has("maxRowsPerTrigger") and found.has("maxBytesPerTrigger"):
        raise DataSourceOptionError("Spark knows one limit of a batch: maxRowsPerTrigger or maxBytesPerTrigger")
    if found.has("streams") and not found.text("streams", "").endswith("*"):
        raise DataSourceOptionError('streams has a star at its end, as in "app/*"; one stream is named by stream')
    settings = ReadSettings(
        metadata=found.metadata(),
        stream=found.name("stream", check_stream_name),
        streams=found.get("streams"),
        ledger=found.number("ledger", least=0),
        journal=found.get("journal"),
        start=found.text("startingPosition", "earliest"),
        stop=found.text("endingPosition", "latest"),
        value_format=found.word("valueFormat", _FORMATS, "raw"),
        permissive=found.word("mode", _MODES, "FAILFAST") == "PERMISSIVE",
        min_partitions=found.number("minPartitions", least=1) or MIN_PARTITIONS,
        count_gaps=found.word("onGap", _GAPS, "fail") == "count",
        retry_s=found.seconds("retrySeconds"),
        password_file=found.get("passwordFile"),
        max_rows=found.number("maxRowsPerTrigger", least=1),
        max_bytes=found.number("maxBytesPerTrigger", least=1),
        hold_name=found.name("holdName", lambda name: check_short_name(name, "hold")),
        cursor=found.name("cursor", lambda name: check_short_name(name, "cursor")),
    )
    _check_places(settings)
    if settings.password_file is not None and settings.ledger is None:
        raise DataSourceOptionError("passwordFile is for a ledger: a stream's ledgers have no password")
    return settings


def write_settings(options: Mapping[str, str], *, streaming: bool) -> WriteSettings:
    """The settings of a writer. Raises DataSourceOptionError."""
    found = _Options(options, WRITE_OPTIONS)
    if not found.has("stream"):
        raise DataSourceOptionError("name the stream to write to by the option stream")
    if streaming and found.has("txnVersion"):
        raise DataSourceOptionError("txnVersion is for write: a query's batches have numbers of their own")
    if found.has("txnVersion") != found.has("txnAppId") and not streaming:
        raise DataSourceOptionError(
            "txnAppId and txnVersion go together: who writes, and the number of what is written"
        )
    if found.has("txnStart") and not (streaming or found.has("txnAppId")):
        raise DataSourceOptionError(
            "txnStart is the number with which a query goes on; a single write has one only beside txnAppId"
        )
    at_least_once = found.word("guarantee", _GUARANTEES, "exactlyOnce") != "exactlyOnce"
    gateway = found.get("gateway")
    if at_least_once:
        _check_at_least_once(found)
    elif gateway is not None and not gateway.startswith(_GATEWAYS):
        raise DataSourceOptionError(f"option gateway is grpc://HOST:PORT, not {gateway!r}")
    elif gateway is not None and found.flag("takeOver"):
        raise DataSourceOptionError("takeOver takes a stream from its owner, and through a gateway nothing is taken")
    metadata = found.text(METADATA, "")
    alone = metadata.startswith(_GATEWAYS)
    if alone and not at_least_once:
        _check_gateway_alone(found)
        gateway = metadata
    return WriteSettings(
        metadata=metadata if alone else found.metadata(),
        gateway=gateway,
        at_least_once=at_least_once,
        stream=found.name("stream", check_stream_name) or "",
        create=found.flag("createStream"),
        take_over=found.flag("takeOver"),
        compression=found.word("compression", _COMPRESSIONS, "none") if found.has("compression") else None,
        value_format=found.word("valueFormat", ("raw", "json"), "raw") if found.has("valueFormat") else None,
        app=found.get("txnAppId"),
        version=found.number("txnVersion", least=0),
        start=found.number("txnStart", least=0),
        retry_s=found.seconds("retrySeconds"),
    )


def _check_at_least_once(found: _Options) -> None:
    if not found.text(METADATA, "").startswith(_GATEWAYS):
        raise DataSourceOptionError(
            "with guarantee atLeastOnce tasks append through gateways: the option metadata is grpc://HOST:PORT then; "
            "with the cluster's own address there is exactlyOnce alone"
        )
    for name in ("gateway", "takeOver", "compression", "txnAppId", "txnVersion", "txnStart"):
        if found.has(name):
            raise DataSourceOptionError(f"option {name} is for exactlyOnce, and guarantee atLeastOnce is asked for")


def _check_gateway_alone(found: _Options) -> None:
    if found.has("gateway"):
        raise DataSourceOptionError(
            "option gateway stands beside the cluster's own address, and metadata is a gateway's: leave one of them out"
        )
    if found.flag("takeOver"):
        raise DataSourceOptionError("takeOver takes a stream from its owner, and through a gateway nothing is taken")
    if found.has("compression"):
        raise DataSourceOptionError(
            "option compression is for ledgers that tasks write themselves; a gateway compresses as the stream's "
            "settings say"
        )


def _check_places(settings: ReadSettings) -> None:
    for option, place, word in (
        ("startingPosition", settings.start, "earliest"),
        ("endingPosition", settings.stop, "latest"),
    ):
        if settings.stream is not None or settings.streams is not None:
            try:
                parse_seek(place)
            except SeekFormatError as error:
                raise DataSourceOptionError(f"option {option}: {error}") from error
        elif place != word and not _is_number(place):
            raise DataSourceOptionError(f"option {option} of a {settings.what} is a number or {word}, not {place!r}")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20


class _Options:
    """Options by their names as users write them."""

    def __init__(self, options: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._given = {name.lower(): str(value) for name, value in options.items()}
        names = {name.lower(): name for name in known}
        if _OF_TABLE in self._given:
            raise DataSourceOptionError(
                "a table of Spark's catalog cannot be a stream, because Spark keeps its options from who writes: use "
                "CREATE TEMPORARY VIEW … USING bookkeeper OPTIONS (…)"
            )
        others = {
            name.lower(): f"{name} {purpose}" for names, purpose in _PURPOSES for name in names if name not in known
        }
        for name in self._given:
            if name in names or name in _SPARK_OWN:
                continue
            if name == "path":
                raise DataSourceOptionError("there is no path: use the options metadata and stream")
            if name in others:
                raise DataSourceOptionError(f"option {others[name]}")
            near = difflib.get_close_matches(name, list(names), 1)
            hint = f": did you mean {names[near[0]]}?" if near else f"; there are {', '.join(known)}"
            raise DataSourceOptionError(f"there is no option {name}{hint}")

    def has(self, name: str) -> bool:
        return name.lower() in self._given

    def get(self, name: str) -> str | None:
        value = self._given.get(name.lower())
        if value is not None and not value:
            raise DataSourceOptionError(f"option {name} is empty")
        return value

    def text(self, name: str, default: str) -> str:
        return self.get(name) or default

    def metadata(self) -> str:
        uri = self.get(METADATA)
        if uri is None:
            raise DataSourceOptionError(
                'name the cluster by the option metadata, as in "zk+hierarchical://host:2181/ledgers" or "sqlite:///FILE"'
            )
        if uri.startswith(("embedded:", "memory:")):
            raise DataSourceOptionError(
                f"{uri} is a cluster within one process, and Spark's tasks run in processes of their own: start "
                "bk standalone, and give the address that it prints"
            )
        if uri.startswith(_GATEWAYS):
            raise DataSourceOptionError(
                f"{uri} is a gateway: tasks read bookies themselves, so give the cluster's own address"
            )
        return uri

    def number(self, name: str, *, least: int) -> int | None:
        value = self.get(name)
        if value is None:
            return None
        if not _is_number(value.strip()) or not least <= int(value) <= _NUMBER_MAX:
            shown = value if len(value) < 40 else f"{value[:40]}…"
            raise DataSourceOptionError(
                f"option {name} is a whole number of at least {least} and at most 2 to the power of 62, not {shown!r}"
            )
        return int(value)

    def name(self, option: str, check: Callable[[str], object]) -> str | None:
        """A name, as it was given. Raises: DataSourceOptionError: nothing can be named so."""
        value = self.get(option)
        try:
            if value is not None:
                check(value)
        except StreamNameError as error:
            raise DataSourceOptionError(f"option {option}: {error}") from error
        return value

    def seconds(self, name: str) -> float:
        value = self.get(name)
        try:
            found = RETRY_S if value is None else float(value)
        except ValueError:
            found = -1.0
        if not 0 <= found < 86_400 * 365:
            raise DataSourceOptionError(f"option {name} is a number of seconds, not {value!r}")
        return found

    def word(self, name: str, words: tuple[str, ...], default: str) -> str:
        value = self.text(name, default)
        found = next((word for word in words if word.lower() == value.lower()), None)
        if found is None:
            raise DataSourceOptionError(f"option {name} is one of {', '.join(words)}, not {value!r}")
        return found

    def flag(self, name: str) -> bool:
        return self.word(name, ("true", "false"), "false") == "true"
