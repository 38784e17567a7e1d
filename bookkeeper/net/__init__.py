"""Sockets, and nothing but: frames, connections, when to try again."""

from bookkeeper.net.connection import (
    AddRun,
    AddStream,
    BookieConnection,
    StreamIds,
    connect_bookie,
)
from bookkeeper.net.protocol import FrameProtocol
from bookkeeper.net.retry import Backoff
from bookkeeper.runs import FRAME_MAX, STREAM_SHIFT

__all__ = [
    "FRAME_MAX",
    "STREAM_SHIFT",
    "AddRun",
    "AddStream",
    "Backoff",
    "BookieConnection",
    "FrameProtocol",
    "StreamIds",
    "connect_bookie",
]
