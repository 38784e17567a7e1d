"""Asks the metadata before a ledger begins to exist on this bookie, where clients are told apart.

A ledger comes into being here with the first add, fence or explicit LAC that names it, and has that request's key from
then on. So whoever names the next million ids owns them: their writers would be refused everywhere. With TLS or
authentication such a first request waits until the bookie knows that the ledger exists, and has that key, which is made
from the password in its metadata. That is asked once for each ledger: afterwards it is here.

* A store's follower may lag behind, and show no node of a ledger that was made a moment ago: nobody is refused by what
  was read without a sync. What lets a request pass needs none, because an id and a password never change.
* Nobody has to be named by the metadata. A recovery adds to bookies that replace failed ones, and names them only with
  the close; so do Apache's clients.
* Metadata without a password (the oldest format) leave nothing to compare: there the ledger's existence is enough.

Requests that wait stay in order, each ledger's by themselves, and count in admission like all requests in progress.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from hmac import compare_digest
from typing import Final

from bookkeeper.errors import NoSuchLedgerError, in_words
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata, master_key
from bookkeeper.meta import Metadata
from bookkeeper.metrics import Metrics
from bookkeeper.rate_limited_log import RateLimitedLogger
from bookkeeper.volumes import Volumes
from bookkeeper.wire import Status

log = logging.getLogger(__name__)

ANSWER_S: Final = 5.0
"""Seconds that a request waits for metadata at most; its client gives up after the same time."""

READS: Final = 32
"""Reads of metadata at a time; further ledgers wait."""

Verdict = Callable[[Status], None]
"""Called with OK (go on), or with UNAUTHORIZED, NO_LEDGER or IO_ERROR."""


class LedgerKeys:
    """Decides which ledgers may begin to exist on one bookie, and with which key. Runs on the loop's thread."""

    def __init__(self, engine: Volumes, metadata: Metadata, bookie: BookieId, metrics: Metrics) -> None:
        self._engine, self._metadata, self._bookie = engine, metadata, bookie
        self._waiting: dict[LedgerId, list[tuple[bytes, Verdict]]] = {}
        self._reads = asyncio.Semaphore(READS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = RateLimitedLogger(log, lambda: asyncio.get_running_loop().time())
        self._asked = metrics.counter(
            "first_requests_total", "Ledgers whose metadata were read before their first request was taken."
        )
        self._refused = metrics.counter(
            "first_requests_refused_total", "First requests of ledgers that do not exist, or have another key."
        )

    def must_verify(self, ledger_id: LedgerId) -> bool:
        """Whether a request with a key has to wait for :meth:`verify`: nothing of the ledger, or no key, is here."""
        return self._engine.is_strange(ledger_id)

    def verify(self, ledger_id: LedgerId, key: bytes, then: Verdict) -> None:
        """Read the ledger's metadata, unless a read is under way, compare the key, and call ``then`` with the verdict.

        Calls for one ledger are answered in their order.
        """
        if (waiting := self._waiting.get(ledger_id)) is not None:
            waiting.append((key, then))
            return
        self._waiting[ledger_id] = [(key, then)]
        task = asyncio.get_running_loop().create_task(self._settle(ledger_id), name=f"first request of {ledger_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Cancel the reads. What waits is answered with IO_ERROR."""
        for task in list(self._tasks):
            task.cancel()
        for ledger_id in list(self._waiting):
            self._notify(ledger_id, None, Status.IO_ERROR)

    async def _settle(self, ledger_id: LedgerId) -> None:
        self._asked.add()
        try:
            async with asyncio.timeout(ANSWER_S), self._reads:
                found = await self._read(ledger_id)
        except NoSuchLedgerError:
            self._notify(ledger_id, None, Status.NO_LEDGER)
        except Exception as error:  # whatever it is, somebody waits for an answer
            text = "bookie %s refuses first requests of ledger %d: it cannot read whether the ledger exists (%s)"
            self._log.warning(text, self._bookie, ledger_id, in_words(error))
            self._notify(ledger_id, None, Status.IO_ERROR)
        else:
            self._notify(ledger_id, found, Status.OK)

    async def _read(self, ledger_id: LedgerId) -> LedgerMetadata:
        """
        Raises:
            NoSuchLedgerError: and a sync has shown nothing newer.
        """
        try:
            found = (await self._metadata.ledgers.read(ledger_id)).value
        except NoSuchLedgerError:
            return (await self._metadata.ledgers.read(ledger_id, fresh=True)).value
        if all(fits(found, key) for key, _ in self._waiting.get(ledger_id, ())):
            return found
        return (await self._metadata.ledgers.read(ledger_id, fresh=True)).value

    def _notify(self, ledger_id: LedgerId, found: LedgerMetadata | None, status: Status) -> None:
        for key, then in self._waiting.pop(ledger_id, ()):
            verdict = Status.UNAUTHORIZED if found is not None and not fits(found, key) else status
            if verdict in (Status.UNAUTHORIZED, Status.NO_LEDGER):
                self._refused.add()
            then(verdict)


def fits(metadata: LedgerMetadata, key: bytes) -> bool:
    """Whether it is the ledger's key, as far as its metadata tell."""
    return metadata.password is None or compare_digest(master_key(metadata.password), key)
