"""Decides whether a batch is new (a machine): by application and number, never by its rows.

An application's batches have rising numbers. After a crash the same batch comes again, perhaps with other rows; the
first that was published stays. A query that has lost its checkpoint counts from 0 again under another id: it is refused
until somebody says which number its batch 0 has, because "already there" would silently lose all that it writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bookkeeper.amounts import counted
from segments.errors import AppendOutcomeUnknownError, BatchRefusedError

NAME_BYTES_MAX: Final = 512
"""Bytes of the name of an application, of the id of its query and of the one of a run, each: the stream keeps them."""

NUMBER_MAX: Final = 2**62
"""The greatest number of a batch, and of the one with which a query begins: their sum has 63 bits."""


@dataclass(frozen=True, slots=True)
class BatchKey:
    """What a batch is known by."""

    app: str
    """Who writes. It outlives a checkpoint."""
    query: str
    """The id of the query, whose batches have rising numbers; empty where the application gives the numbers itself."""
    batch: int
    start: int | None = None
    """The number that batch 0 of a query with another id counts as; None: such a query is refused."""
    run: str = ""
    """Of the program that publishes. One run publishes a number once; empty: nobody can tell."""


@dataclass(frozen=True, slots=True)
class AppRecord:
    """What a stream remembers of an application."""

    app: str
    query: str
    base: int
    """The number that batch 0 of the query counts as."""
    last: int
    """The last number that was published."""
    run: str
    first_seq_no: int
    """Of the last batch."""
    records: int
    """Of the last batch; it may have none."""
    published_ms: int
    attempt: str = ""
    """The staging of the rows that were published: it tells apart two attempts to publish one number."""
    by: str = ""
    """Whose it is: the name of who had a gateway publish its first batch. Empty: of nobody, or nobody was asked who he
    is."""


@dataclass(frozen=True, slots=True)
class NewBatch:
    """It was not published yet."""

    number: int
    base: int


@dataclass(frozen=True, slots=True)
class KnownBatch:
    """Its number, or a later one, was published before."""

    number: int
    record: AppRecord
    same_rows: bool = False
    """By an earlier call of this very attempt, which got no answer."""


def require_key(key: BatchKey, stream: str) -> None:
    """Check that a key can be kept: whoever sends it may have made it up.

    Raises:
        BatchRefusedError: a name is empty or too long, or a number is out of range.
    """
    for what, name in (("application", key.app), ("query", key.query), ("run", key.run)):
        if len(name.encode("utf-8", "replace")) > NAME_BYTES_MAX or (what == "application" and not name):
            raise BatchRefusedError(
                f"the {what} of a batch for stream {stream} has a name of at most {NAME_BYTES_MAX} bytes, and this one "
                f"has {len(name.encode('utf-8', 'replace'))}: nothing was published",
                stream=stream,
            )
    for number in (key.batch, key.start or 0):
        if not 0 <= number < NUMBER_MAX:
            raise BatchRefusedError(
                f"the batches of an application of stream {stream} are counted from 0, and below 2 to the power of 62; "
                f"{number} is no such number: nothing was published",
                stream=stream,
            )


def judge_batch(key: BatchKey, known: AppRecord | None, stream: str, attempt: str) -> NewBatch | KnownBatch:
    """Whether a batch is new, when ``attempt`` publishes it.

    Raises:
        BatchRefusedError: another query, or the same run a second time.
    """
    if known is None:
        base = key.start or 0
        return NewBatch(base + key.batch, base)
    base = known.base
    if key.query != known.query:
        if key.start is None:
            raise BatchRefusedError(
                f"application {key.app} wrote batches up to number {known.last} of stream {stream} as query "
                f"{known.query or '(none)'}, and query {key.query or '(none)'} is another one. If the first one is "
                f'gone (its checkpoint was lost), say where this one goes on: option("txnStart", "{known.last + 1}"); '
                "otherwise give it a txnAppId of its own",
                stream=stream,
            )
        base = key.start
    number = base + key.batch
    if number > known.last:
        return NewBatch(number, base)
    if number == known.last and attempt == known.attempt:
        return KnownBatch(number, known, same_rows=True)
    if key.run and key.run == known.run and number == known.last:
        raise BatchRefusedError(
            f"application {key.app} has written number {number} of stream {stream} already in this run: a second write "
            "needs a txnAppId of its own",
            stream=stream,
        )
    return KnownBatch(number, known)


def outcome_unknown(stream: str, ledger_id: int, records: int) -> AppendOutcomeUnknownError:
    """The error of a batch without a key, of which nothing tells whether it was published. ``ledger_id``: its first."""
    return AppendOutcomeUnknownError(
        f"it is not known whether a batch of {counted(records, 'record')} was published to stream "
        f"{stream}: look whether ledger "
        f"{ledger_id} is in `bk stream show {stream}`; with txnAppId and txnVersion a write may be repeated",
        stream=stream,
    )
