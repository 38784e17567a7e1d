"""Requests of clients, told apart so that a repeated one is not carried out twice (pure).

A client whose call failed with an unknown outcome repeats it under the same request id. The edit carries the id, so
every replica that reads the log builds the same table, and the table rides in its snapshots:

    answer_to(request)          None: a new request
                                an answer: the request was carried out before; this is what it answered
    record(request, answer)     carried out now

The table is bounded. It keeps the newest answers; when it drops one it remembers the highest call of that client that
it dropped. A call up to there that has no answer any more is refused: it may have been carried out.

A client that was silent while ``max_clients`` others were dropped is forgotten altogether, and cannot be told from a
new one. So a client says with each request which edit was the newest when it began (``since``). All that was forgotten
altogether was carried out by edits up to the ``horizon``: a client that is not known and began later is a new one, and
one that may be older is refused. A client that does not say it counts as new; then its repetition, if it comes as late
as that, is carried out a second time.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

from journal_manager.errors import JournalCorruptionError, RequestForgottenError
from journal_manager.txid import MAX_TXID, NOTHING, TxId

MAX_CLIENT_BYTES: Final = 255
MAX_CALL: Final = 2**64 - 1
_CALL: Final = struct.Struct(">Q")
_ANSWER: Final = struct.Struct(">BQQI")
"""Length of the client's name, call, transaction id, length of the result."""
_FORGOTTEN: Final = struct.Struct(">BQ")
"""Length of the client's name, call. Without a name: the horizon, which earlier versions keep and do not look at."""
_COUNTS: Final = struct.Struct(">II")


@dataclass(frozen=True, slots=True)
class RequestId:
    """One request of one client. A repetition has the same id."""

    client: bytes
    """1 to 255 bytes that no other client uses, for instance random ones that the client chose when it began."""
    call: int
    """The client counts its requests up: 0 <= call < 2**64."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.client) <= MAX_CLIENT_BYTES or not 0 <= self.call <= MAX_CALL:
            raise ValueError(
                f"a request has a client of 1 to {MAX_CLIENT_BYTES} bytes and a call from 0 to {MAX_CALL}; "
                f"got {len(self.client)} bytes and call {self.call}"
            )

    def encode(self) -> bytes:
        """Encode the id: the client's length, the client, the call."""
        return bytes((len(self.client),)) + self.client + _CALL.pack(self.call)

    @classmethod
    def decode_prefix(cls, data: bytes) -> tuple[RequestId, int]:
        """Read the id that ``data`` begins with. Returns it and its length.

        Raises:
            ValueError: there is none.
        """
        end = 1 + data[0] if data else 0
        if end < 2 or len(data) < end + _CALL.size:
            raise ValueError("the bytes do not begin with a request id")
        return cls(data[1:end], _CALL.unpack_from(data, end)[0]), end + _CALL.size

    def __str__(self) -> str:
        return f"call {self.call} of client {self.client.hex()}"


@dataclass(frozen=True, slots=True)
class RequestAnswer:
    """What a request was answered."""

    txid: TxId
    """The edit that carried it out."""
    result: bytes = b""
    """What the application answered besides."""


class RequestTable:
    """The newest answers, by request. The same edits make the same table on every replica."""

    def __init__(self, max_answers: int = 100_000, max_clients: int = 100_000) -> None:
        if max_answers < 1 or max_clients < 1:
            raise ValueError("a request table keeps at least one answer and one client")
        self._max_answers, self._max_clients = max_answers, max_clients
        self._answers: OrderedDict[RequestId, RequestAnswer] = OrderedDict()
        """Oldest first."""
        self._forgotten: dict[bytes, int] = {}
        """Client -> the highest call whose answer was dropped."""
        self._silent: OrderedDict[bytes, None] = OrderedDict()
        """The clients of these without an answer here; the one whose last answer was dropped first comes first."""
        self._having_answers: Counter[bytes] = Counter()
        """Client -> how many answers to it are here."""
        self._horizon = NOTHING

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def horizon(self) -> TxId:
        """Clients that are forgotten altogether had nothing carried out after this edit; NOTHING: there are none."""
        return self._horizon

    def answer_to(
        self, request: RequestId, since: TxId | None = None, newest: TxId | None = None
    ) -> RequestAnswer | None:
        """Return the answer to a request that was carried out before; None for a new one.

        Args:
            since: a durable edit that was there when the client began, before its first request; best the newest one.
                None: the client does not say it, and is taken for a new one if it is not known.
            newest: the newest edit of the journal.

        Raises:
            RequestForgottenError: the request is so old that the table cannot tell; or the client began behind
                ``newest``, with edits that were discarded since.
        """
        if (answer := self._answers.get(request)) is not None:
            return answer
        if request.call <= self._forgotten.get(request.client, -1):
            raise RequestForgottenError(
                f"{request} is older than the {self._max_answers} newest requests, which are remembered: it may "
                "have been carried out"
            )
        if since is None:
            return None
        if newest is not None and since > newest:
            raise RequestForgottenError(
                f"{request} comes from a client that began after edit {since}, and the journal ends at {newest}: edits "
                "were discarded since; begin anew, with another name"
            )
        known = request.client in self._forgotten or request.client in self._having_answers
        if since < self._horizon and not known:
            raise RequestForgottenError(
                f"{request} comes from a client that began after edit {since}; clients with nothing newer than edit "
                f"{self._horizon} are forgotten: it may have been carried out"
            )
        return None

    def record(self, request: RequestId, answer: RequestAnswer) -> None:
        """Note that ``request`` was carried out. The first answer stays."""
        if request in self._answers:
            return
        self._answers[request] = answer
        self._having_answers[request.client] += 1
        self._silent.pop(request.client, None)
        while len(self._answers) > self._max_answers:
            old, _ = self._answers.popitem(last=False)
            self._forgotten[old.client] = max(old.call, self._forgotten.pop(old.client, -1))
            self._having_answers[old.client] -= 1
            if not self._having_answers[old.client]:
                del self._having_answers[old.client]
                self._silent[old.client] = None
                self._forget_silent(next(iter(self._answers.values())).txid)

    def clear(self) -> None:
        """Forget everything, as at the first edit."""
        self._answers.clear()
        self._forgotten.clear()
        self._silent.clear()
        self._having_answers.clear()
        self._horizon = NOTHING

    def encode(self) -> bytes:
        """Encode the table for a snapshot; :meth:`restore` reads it."""
        parts = [_COUNTS.pack(len(self._answers), len(self._forgotten) + (self._horizon != NOTHING))]
        for request, answer in self._answers.items():
            head = _ANSWER.pack(len(request.client), request.call, answer.txid, len(answer.result))
            parts += (head, request.client, answer.result)
        active = (client for client in self._forgotten if client not in self._silent)
        for client in (*self._silent, *active):
            parts += (_FORGOTTEN.pack(len(client), self._forgotten[client]), client)
        if self._horizon != NOTHING:
            parts.append(_FORGOTTEN.pack(0, self._horizon))
        return b"".join(parts)

    def restore(self, data: bytes) -> None:
        """Replace the content by an encoded table. A table that was larger loses its oldest answers.

        Raises:
            JournalCorruptionError: the bytes are not a table; the content is then undefined.
        """
        self.clear()
        answers: list[tuple[RequestId, RequestAnswer]] = []
        try:
            many, dropped = _COUNTS.unpack_from(data)
            at = _COUNTS.size
            for _ in range(many):
                client_size, call, txid, size = _ANSWER.unpack_from(data, at)
                client, at = _slice(data, at + _ANSWER.size, client_size)
                result, at = _slice(data, at, size)
                answers.append((RequestId(client, call), RequestAnswer(TxId(txid), result)))
            for _ in range(dropped):
                client_size, call = _FORGOTTEN.unpack_from(data, at)
                client, at = _slice(data, at + _FORGOTTEN.size, client_size)
                if client:
                    self._forgotten[client] = call
                else:
                    self._horizon = TxId(call)
        except (struct.error, ValueError) as error:
            raise JournalCorruptionError("a snapshot's table of requests is damaged") from error
        if at != len(data):
            raise JournalCorruptionError(f"a snapshot's table of requests ends {len(data) - at} bytes early")
        answered = {request.client for request, _ in answers}
        self._silent.update((client, None) for client in self._forgotten if client not in answered)
        self._forget_silent(answers[0][1].txid if answers else MAX_TXID)
        for request, answer in answers:
            self.record(request, answer)

    def _forget_silent(self, oldest: TxId) -> None:
        """Forget the clients that are too many. ``oldest``: the edit of the oldest answer that stays; what was dropped
        is older."""
        while len(self._silent) > self._max_clients:
            client, _ = self._silent.popitem(last=False)
            del self._forgotten[client]
            self._horizon = max(self._horizon, TxId(oldest - 1))


def _slice(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise ValueError("the bytes end early")
    return data[at : at + size], at + size
