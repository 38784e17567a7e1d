"""Detects which protocol a connection speaks, frame by frame, as Apache's server does.

A connection begins with v3. The first frame that is no v3 request makes it v2 for ever. A v2 client with TLS uses just
that: its START_TLS is a v3 request, and everything after it is v2.
"""

from __future__ import annotations

from bookkeeper.codec.shapes import Dialect
from bookkeeper.seams import Buffer
from bookkeeper.wire import v2, v3
from bookkeeper.wire.requests import BatchReply, Context, RefusedFrame, Reply, Request, RequestHeader, StartTls


class DialectDetector:
    """The server's side of one connection.

    ``v2`` is true once the connection has spoken v2. Hand it to ``codec.split_adds``, and set it from ``Adds.v2``.
    """

    __slots__ = ("v2",)

    def __init__(self, v2: bool = False) -> None:
        self.v2 = v2

    def decode(self, body: Buffer) -> tuple[RequestHeader, Request] | RefusedFrame:
        """The request in a frame body, or the refusal to answer instead.

        Raises:
            MalformedFrameError: the connection must be closed without an answer.
        """
        if not self.v2:
            decoded = v3.decode_request(body)
            if decoded is not None:
                return decoded
            self.v2 = True
        return v2.decode_request(body)


def encode_request(request: Request, dialect: Dialect, txn_id: int = 0, context: Context = ()) -> bytes:
    """The whole frame (with its length) of a request. START_TLS is always v3. ``context``: pairs of text for the
    bookie's log, of which v2 knows nothing.

    Raises:
        ValueError: the dialect has no such request (or no such field of it).
    """
    if dialect is Dialect.V3 or isinstance(request, StartTls):
        return v3.encode_request(request, txn_id, context)
    return v2.encode_request(request)


def encode_reply(header: RequestHeader, reply: Reply) -> bytes:
    """The whole frame (with its length) of the reply to the request that came under ``header``.

    Raises:
        ValueError: the dialect has no such reply.
    """
    if header.dialect is Dialect.V3:
        return v3.encode_reply(header, reply)
    return v2.encode_reply(header, reply)


def reply_pieces(header: RequestHeader, reply: Reply) -> list[Buffer]:
    """The frame as :func:`encode_reply` gives it, in pieces: the entries of a batch read are not copied.

    Raises:
        ValueError: the dialect has no such reply.
    """
    if header.dialect is Dialect.V2 and isinstance(reply, BatchReply) and reply.body:
        return [v2.batch_reply_head(header, reply), reply.body]
    return [encode_reply(header, reply)]


def decode_reply(body: Buffer, dialect: Dialect) -> tuple[RequestHeader, Reply]:
    """The reply in a frame body. In v3 ``header.txn_id`` and ``header.op`` tell its request; in v2 the operation and
    the ids do.

    Raises:
        MalformedFrameError: the connection must be closed.
    """
    return v3.decode_reply(body) if dialect is Dialect.V3 else v2.decode_reply(body)
