"""Streams behind a gateway, with the library's API: ``segments.connect("grpc://HOST:PORT")``.

remote_namespace  connect, create, open, list, rename, delete
remote_stream     a stream: writers, producers, readers, batches that its gateway publishes, and what is asked of it
remote_writer     appends and idempotent producers
message_writer    rows of a task that go along with the call that publishes them
append_pipe       a streaming append that goes on after the gateway is gone
append_queue      which batches are to be sent, and what becomes of them (pure)
remote_transfer   copies of streams, out to a file and in from one
remote_cursor     a position that outlives its readers
remote_reader     records as they come, with credits, that go on at another gateway
gateway_channels  connections to gateways, calls, redirects; it knows gRPC
gateway_address   grpc://HOST:PORT,HOST:PORT, and how gateways are reached (pure)
"""

from segments.remote.gateway_address import GatewayCredentials
from segments.remote.remote_cursor import RemoteCursor
from segments.remote.remote_namespace import RemoteNamespace, connect
from segments.remote.remote_reader import RemoteReader
from segments.remote.remote_stream import RemoteStream
from segments.remote.remote_writer import RemoteProducer, RemoteWriter

__all__ = [
    "GatewayCredentials",
    "RemoteCursor",
    "RemoteNamespace",
    "RemoteProducer",
    "RemoteReader",
    "RemoteStream",
    "RemoteWriter",
    "connect",
]
