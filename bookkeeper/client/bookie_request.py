"""One request to one bookie, and the meaning of its reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.services import ClientServices
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import BookieUnavailableError, BookKeeperError, ClientClosedError, MalformedFrameError, in_words
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import DigestScheme, Entry
from bookkeeper.wire import (
    REQUEST_ID,
    BareReply,
    BatchReply,
    Context,
    ListReply,
    ReadReply,
    Reply,
    Request,
    Status,
    error_of,
)
from bookkeeper.wire.availability import HeldEntries, decode_availability

Answered = Callable[["Reply | BookKeeperError"], None]
"""Called exactly once, and never inside ``send_request``, with the reply, whatever its status, or with the error
instead."""


def new_request_id(services: ClientServices) -> str:
    """An id for an operation that asks bookies: the client's session with the metadata store, and a number. The logs of
    bookies, Apache's among them, show it beside each request of the operation."""
    return f"{services.metadata.store.session_id:x}-{next(services.operations)}"


def _context(request_id: str) -> Context:
    return ((REQUEST_ID, request_id.encode()),) if request_id else ()


def send_request(
    services: ClientServices,
    tasks: Tasks,
    bookie: BookieId,
    request: Request,
    answered: Answered,
    *,
    use: ConnectionPurpose = ConnectionPurpose.MAIN,
    timeout_s: float | None = None,
    request_id: str = "",
) -> None:
    """Send ``request``. If there is no connection to the bookie, a task makes one first.

    ``request_id`` names the operation that it belongs to (:func:`new_request_id`), for the bookie's log.
    """
    limit_s = timeout_s if timeout_s is not None else services.config.request_timeout_ms / 1000
    connection = services.pool.ready(bookie, use)
    if connection is not None:
        connection.request_nowait(request, limit_s, answered, _context(request_id))
    else:
        work = _connect_and_send(services, bookie, request, answered, use, limit_s, _context(request_id))
        task = tasks.start(work, f"ask {bookie}")
        task.add_done_callback(lambda done: _answer_if_cancelled(done, bookie, answered))


def request_reply(
    services: ClientServices,
    tasks: Tasks,
    bookie: BookieId,
    request: Request,
    *,
    use: ConnectionPurpose = ConnectionPurpose.MAIN,
) -> asyncio.Future[Reply | BookKeeperError]:
    """Send ``request``. The future returns the reply, or the error in place of it, and never raises.

    The body of a batch read's reply is a copy: the receive buffer has other bytes when the future is awaited.
    """
    answer: asyncio.Future[Reply | BookKeeperError] = asyncio.get_running_loop().create_future()

    def answered(reply: Reply | BookKeeperError) -> None:
        if not answer.done():
            answer.set_result(replace(reply, body=bytes(reply.body)) if isinstance(reply, BatchReply) else reply)

    send_request(services, tasks, bookie, request, answered, use=use)
    return answer


async def reply_of(
    services: ClientServices,
    bookie: BookieId,
    request: Request,
    what: str,
    *,
    use: ConnectionPurpose = ConnectionPurpose.LAC,
) -> Reply:
    """Send one ``request`` and wait for its reply. Raises: BookKeeperError: as :func:`failure_of` says."""
    tasks = Tasks(what)
    try:
        reply = await request_reply(services, tasks, bookie, request, use=use)
    finally:
        await tasks.close()
    if (error := failure_of(reply, what)) is not None:
        raise error
    assert not isinstance(reply, BookKeeperError)
    return reply


def _answer_if_cancelled(task: asyncio.Task[None], bookie: BookieId, answered: Answered) -> None:
    """Answer also if the task was cancelled before its first step, because somebody waits for the answer."""
    if task.cancelled():
        answered(ClientClosedError(f"no request was sent to {bookie}: the handle is closed"))


async def _connect_and_send(
    services: ClientServices,
    bookie: BookieId,
    request: Request,
    answered: Answered,
    use: ConnectionPurpose,
    limit_s: float,
    context: Context,
) -> None:
    try:
        connection = await services.pool.get(bookie, use)
    except BookKeeperError as error:
        answered(error)
        return
    except Exception as error:  # unexpected, and logged as such; the asker must not wait for ever
        answered(BookieUnavailableError(f"no request was sent to {bookie}: {in_words(error)}"))
        raise
    connection.request_nowait(request, limit_s, answered, context)


def failure_of(reply: Reply | BookKeeperError, what: str) -> BookKeeperError | None:
    """The error that a reply stands for; None if the request succeeded. ``what`` names the request and the bookie.

    A success without its message counts as a failure: the reply does not say to which request it belongs.
    """
    if isinstance(reply, BookKeeperError):
        return reply
    if isinstance(reply, BareReply) and reply.status is Status.OK:
        return MalformedFrameError(f"{what}: the bookie answered OK, but its reply is empty")
    if reply.status is Status.OK:
        return None
    return error_of(reply.status, what)


def held_entries_of(reply: Reply | BookKeeperError, what: str) -> HeldEntries:
    """The list in the reply to a successful ListEntries. Raises: MalformedFrameError: there is none."""
    if not isinstance(reply, ListReply) or reply.availability is None:
        raise MalformedFrameError(f"{what}: the bookie answered OK, but sent no list")
    return decode_availability(reply.availability)


def entry_of(
    reply: Reply | BookKeeperError, digest: DigestScheme, ledger_id: LedgerId, entry_id: int | None, what: str
) -> Entry:
    """The entry in a read's reply, with its digest and ids checked. With ``entry_id`` None any entry id is right.

    Raises:
        BookKeeperError: the bookie answered with an error, no reply came, or the entry is wrong (DigestMismatchError).
    """
    if (error := failure_of(reply, what)) is not None:
        try:
            raise error
        finally:
            error = None  # an error whose frames know it is a circle
    if not isinstance(reply, ReadReply) or reply.entry is None:
        raise MalformedFrameError(f"{what}: the bookie answered OK, but sent no entry")
    return digest.unseal(reply.entry, ledger_id, entry_id)
