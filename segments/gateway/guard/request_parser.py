"""One call's requests: what they cost, and the messages in their bytes. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError

from bookkeeper.gateways.permissions import Needs
from segments.errors import StreamConfigError
from segments.gateway.guard.request_rights import MAKES, RequestRights, needs_of
from segments.protocol.methods import Method
from segments.protocol.request_elements import ElementCounter


class RequestParser:
    """Parses the requests of one call of the protocol."""

    def __init__(self, method: Method, elements_max: int, rights: RequestRights | None = None) -> None:
        self._rights = rights
        self._name = method.request.DESCRIPTOR.name
        self._parse = method.parse_request
        self._counter = ElementCounter(method.request)
        self._elements_max = elements_max
        self.makes = method.key in MAKES
        """Whether a request makes something in the metadata, which its caller's rates count."""
        self.answers_each = method.answers_each
        """Whether each request has a reply of its own, with which its bytes are given back."""

    def elements(self, raw: bytes) -> int:
        """How many repeated values the message has. Raises StreamConfigError: more than it may have."""
        return self._counter.count(raw, self._elements_max)

    def parse(self, raw: bytes) -> Any:
        """The message. Raises StreamConfigError: it is none."""
        try:
            return self._parse(raw)
        except DecodeError as error:
            raise StreamConfigError(f"the request cannot be read: its bytes are no {self._name}") from error

    def needs(self, request: Any) -> Iterator[tuple[str, Needs]]:
        """The streams that a request names, each with what is needed on it."""
        return iter(()) if self._rights is None else needs_of(self._rights, request)
