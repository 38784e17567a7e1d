"""The calls of each service, as the protocol's descriptor has them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message_factory import GetMessageClass

from segments.protocol import segments_pb2 as pb

PACKAGE: Final = "segments.v1"

SERVICES: Final[tuple[str, ...]] = tuple(
    f"{PACKAGE}.{name}" for name in ("Streams", "Append", "Read", "Segments", "Cursors", "Operations")
)
"""The full names of the services."""


@dataclass(frozen=True, slots=True)
class Method:
    """One call of a service."""

    service: str
    """The full name of the service."""
    name: str
    request: type[Any]
    """The class of its request, or of each of its requests."""
    reply: type[Any]
    """The class of its reply, or of each of its replies."""
    streams_requests: bool
    streams_replies: bool

    @property
    def answers_each(self) -> bool:
        """Whether each of its requests has one reply, in their order."""
        return self.name == "AppendStream"

    @property
    def key(self) -> str:
        """Its name for people, and in tables: ``Streams.Create``."""
        return f"{self.service.rpartition('.')[2]}.{self.name}"

    @property
    def path(self) -> str:
        """Its name on the wire."""
        return f"/{self.service}/{self.name}"

    @property
    def parse_request(self) -> Callable[[bytes], Any]:
        return self.request.FromString  # type: ignore[no-any-return]


def methods() -> Iterator[Method]:
    """All calls of all services."""
    for full_name in SERVICES:
        service = pb.DESCRIPTOR.services_by_name[full_name.rpartition(".")[2]]
        for method in service.methods:
            yield Method(
                full_name,
                method.name,
                GetMessageClass(method.input_type),
                GetMessageClass(method.output_type),
                method.client_streaming,
                method.server_streaming,
            )


METHODS: Final[dict[str, Method]] = {method.key: method for method in methods()}
"""The calls by service and name: ``Streams.Create``."""
