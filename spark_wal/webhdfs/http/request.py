"""A request and its reply, as operations see them, and the redirect to the second of two steps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights
from spark_wal.webhdfs.errors import AccessDeniedError, RateExceededError, WebHdfsError
from spark_wal.webhdfs.files.paths import PREFIX, encode_path
from spark_wal.webhdfs.http import replies
from spark_wal.webhdfs.http.parameters import Query
from spark_wal.webhdfs.ownership.file_system import FileContents
from spark_wal.webhdfs.ownership.gateway import Gateway

STEP_TWO: Final = "namenoderpcaddress"


@dataclass(frozen=True, slots=True)
class Request:
    """One request."""

    method: str
    path: str
    query: Query
    authority: str
    """Host and port as the client has given them. Redirects lead there."""
    body: AsyncIterator[bytes]
    scheme: str = "http"
    take_any_time: Callable[[], None] = lambda: None
    """Tells the connection that the body may pause for as long as it wants."""
    principal: Caller | None = None
    """The authenticated client. None: the gateway does not authenticate, and ``user.name`` is believed."""
    permissions: CallerRights = field(default_factory=CallerRights)

    @property
    def user(self) -> str:
        return self.query.user() if self.principal is None else self.principal.name


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request."""

    status: int = 200
    body: bytes = b""
    content: FileContents | None = None
    """Bytes to stream instead of ``body``."""
    location: str | None = None
    retry_after_s: int | None = None
    """In how many seconds to ask again."""
    denial: str = ""
    """Why somebody who is known may not do this; empty for all other answers."""

    @property
    def is_json(self) -> bool:
        return bool(self.body)


Operation = Callable[[Gateway, Request], Awaitable[Reply]]
DONE: Final = Reply()
"""The answer of an operation without a result."""


def refusal_reply(error: WebHdfsError) -> Reply:
    """The answer that tells the client of an error, as HDFS does."""
    denial = str(error) if isinstance(error, AccessDeniedError) else ""
    after_s = error.after_s if isinstance(error, RateExceededError) else None
    return Reply(error.status, replies.remote_exception(error), retry_after_s=after_s, denial=denial)


def redirect(request: Request, *parameters: tuple[str, object]) -> Reply:
    """Redirect to this gateway, with what the second step needs."""
    query = request.query
    parts = [f"op={query.op}"]
    for name in ("user.name", "delegation"):
        if (value := query.text(name)) is not None:
            parts.append(f"{name}={_quoted(value)}")
    parts.append(f"{STEP_TWO}={quote(request.authority, safe=':')}")
    parts += [f"{name}={_quoted(str(value))}" for name, value in sorted(parameters, key=lambda p: p[0])]
    url = f"{request.scheme}://{request.authority}{PREFIX}{encode_path(request.path)}?{'&'.join(parts)}"
    if query.boolean("noredirect", False):
        return Reply(200, replies.location(url))
    return Reply(307, location=url)


def _quoted(value: str) -> str:
    return value if value.isascii() and value.isalnum() else quote(value)


def given_parameters(query: Query, *names: str) -> list[tuple[str, object]]:
    """Those of the named parameters that the request has, each with its text."""
    return [(name, value) for name in names if (value := query.text(name)) is not None]


def is_step_one(query: Query) -> bool:
    """Whether this is the first of two steps, which is answered by a redirect."""
    return not query.given(STEP_TWO)
