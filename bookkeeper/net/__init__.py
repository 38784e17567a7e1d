"""Sockets, and nothing but: frames, connections, when to try again."""

from bookkeeper.net.connection import (
    STREAM_BITS,
    AddRun,
    AddStream,
    BookieConnection,
    StreamIds,
    connect_bookie,
)
from bookkeeper.net.protocol import FRAME_MAX, FrameProtocol
from bookkeeper.net.retry import Backoff

__all__ = [
    "FRAME_MAX",
    "STREAM_BITS",
    "AddRun",
    "AddStream",
    "Backoff",
    "BookieConnection",
    "FrameProtocol",
    "StreamIds",
    "connect_bookie",
]
