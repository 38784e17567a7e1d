"""A directory behind a WebHDFS server, with TLS and a token for a protected gateway."""

from __future__ import annotations

import getpass
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from bookkeeper.errors import ConfigError
from bookkeeper.real import FileTls
from bookkeeper.seams import TlsFiles
from bookkeeper.secret import without_secrets
from spark_wal.checkpoint_copy.contents import FileStamp
from spark_wal.checkpoint_copy.stores import PIECE, CheckpointStoreError, Parts
from spark_wal.spark_access import GatewayAccess
from spark_wal.webhdfs.files.numbered import Limits, limits_text, listing_digest, removed_by

TIMEOUT_S: Final = 60.0
TRIES: Final = 5
PAUSE_S: Final = 0.5
_PORTS: Final = {"webhdfs": 9870, "swebhdfs": 9871}
_SCHEMES: Final = {"http": 80, "https": 443}
_PREFIX: Final = "/webhdfs/v1"

T = TypeVar("T")


class GatewayStore:
    """The store at ``webhdfs://HOST:PORT/PATH``, or ``swebhdfs://`` with TLS."""

    def __init__(self, uri: str, access: GatewayAccess, *, may_be_root: bool = False) -> None:
        parts = urlsplit(uri)
        if "@" in parts.netloc:
            raise ConfigError("the address must not hold credentials: give the token in a file (--token-file)")
        if not parts.hostname or parts.query or parts.fragment or not (may_be_root or parts.path.strip("/")):
            raise ConfigError(f"expected {parts.scheme}://HOST:PORT/PATH, got {without_secrets(uri)!r}")
        self._tls = _context(access) if parts.scheme == "swebhdfs" else None
        if self._tls is None and access.token is not None:
            raise ConfigError(f"a token is not sent without TLS: the address must begin with swebhdfs://; got {uri!r}")
        self._host = parts.hostname
        self._port = parts.port or _PORTS[parts.scheme]
        self._root = "/" + parts.path.strip("/") if parts.path.strip("/") else ""
        self.uri = f"{parts.scheme}://{parts.hostname}:{self._port}{self._root}"
        self._token = access.token
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[HTTPConnection] = []

    def listing(self) -> dict[str, FileStamp]:
        found: dict[str, FileStamp] = {}
        waiting = [""]
        while waiting:
            directory = waiting.pop()
            for status in self._again(partial(self._entries, directory)):
                name = f"{directory}/{status['pathSuffix']}".lstrip("/")
                if status["type"] == "DIRECTORY":
                    waiting.append(name)
                else:
                    changed = status["modificationTime"]
                    found[name] = FileStamp(status["length"], changed, changed, status.get("owner", ""))
        return found

    def _entries(self, directory: str) -> list[dict[str, Any]]:
        reply = self._request("GET", directory, "LISTSTATUS")
        if reply.status == 404:
            reply.read()
            return []
        document = json.loads(self._good(reply, directory, 200).read())
        entries: list[dict[str, Any]] = document["FileStatuses"]["FileStatus"]
        if any(not entry["pathSuffix"] for entry in entries):
            raise CheckpointStoreError(f"{self.uri} is a file, not a directory")
        for name in (entry["pathSuffix"] for entry in entries):
            if name in (".", "..") or "/" in name or "\0" in name:  # the copy will have this name
                raise CheckpointStoreError(f"{self.uri} lists the name {name!r}, which leads out of its directory")
        return entries

    def read(self, path: str) -> Iterator[bytes]:
        whole = False
        try:
            reply = self._again(lambda: self._good(self._request("GET", path, "OPEN"), path, 200))
            while data := reply.read(PIECE):
                yield data
            if reply.length:
                raise CheckpointStoreError(f"{self.uri}: {path} ends {reply.length} bytes early")
            whole = True
        except (OSError, HTTPException) as error:
            raise CheckpointStoreError(f"{self.uri}: reading {path}: {_text(error)}") from error
        finally:
            if not whole:
                self._forget()

    def write(self, path: str, parts: Parts) -> None:
        self._again(lambda: self._write(path, parts))

    def _write(self, path: str, parts: Parts) -> None:
        self._good(self._request("PUT", path, "CREATE", parts, overwrite="true"), path, 201).read()

    def remove_numbered(self, limits: Limits, seen: Mapping[str, FileStamp], quiet_s: float) -> None:
        """Remove the files above the limits by one edit of the gateway's namespace: all of them or none.

        Args:
            seen: the listing on which the decision rests. If there is another one now, the gateway refuses.
            quiet_s: it also refuses if something was written in the last ``quiet_s`` seconds, or is being written.

        Raises:
            CheckpointStoreError: the gateway refused, and nothing was done; or it does not answer any more, and the
                outcome is unknown: the listing then shows which it was, and the call may be repeated.
        """
        digest = listing_digest((path, stamp.size, stamp.modified) for path, stamp in seen.items())
        text, quiet = limits_text(limits), str(round(quiet_s * 1000))

        def request_deletion() -> None:
            reply = self._request("DELETE", "", "DELETENUMBERED", limits=text, listing=digest, quiet=quiet)
            self._good(reply, "", 200).read()

        try:
            self._again(request_deletion)
        except CheckpointStoreError:
            if self.listing().keys() != seen.keys() - set(removed_by(limits, seen)):
                raise  # otherwise it was done, and only the answer was lost

    def sync(self) -> None:
        """Does nothing: a file is durable when its upload is answered."""

    def close(self) -> None:
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()

    # -- requests --------------------------------------------------------------------------------------

    def _request(self, method: str, path: str, op: str, parts: Parts | None = None, **query: str) -> HTTPResponse:
        """Perform one operation and follow its redirect. The bytes go with the second step."""
        if self._token is None:
            query["user.name"] = _user()
        full = quote(f"{_PREFIX}{self._root}/{path}".rstrip("/") + ("" if self._root or path else "/"))
        reply = self._send(method, f"{full}?{urlencode({'op': op, **query})}", None)
        if reply.status != 307:
            return reply
        reply.read()
        target = urlsplit(reply.headers.get("Location", ""))
        if (target.scheme == "https") != (self._tls is not None):
            raise CheckpointStoreError(
                f"{self.uri} redirects to {target.scheme}://{target.netloc}, which changes between TLS and no "
                "TLS: the redirect is not followed"
            )
        host_and_port = (target.hostname, target.port or _SCHEMES.get(target.scheme))
        if self._token is not None and host_and_port != (self._host, self._port):
            raise CheckpointStoreError(
                f"{self.uri} redirects to {target.netloc}: the redirect is not followed, because the token "
                "is for the first host only"
            )
        return self._send(method, f"{target.path}?{target.query}", parts, target.hostname, target.port)

    def _send(
        self, method: str, target: str, parts: Parts | None, host: str | None = None, port: int | None = None
    ) -> HTTPResponse:
        connection = self._connection(host or self._host, port or self._port)
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token.reveal()}"}
        if parts is None:
            connection.request(method, target, headers=headers)
        else:
            headers["Transfer-Encoding"] = "chunked"
            connection.request(method, target, body=parts(), headers=headers, encode_chunked=True)
        return connection.getresponse()

    def _connection(self, host: str, port: int) -> HTTPConnection:
        """This thread's connection to a host."""
        kept: dict[tuple[str, int], HTTPConnection] = self._local.__dict__.setdefault("kept", {})
        connection = kept.get((host, port))
        if connection is None:
            if self._tls is not None:
                connection = HTTPSConnection(host, port, timeout=TIMEOUT_S, context=self._tls)
            else:
                connection = HTTPConnection(host, port, timeout=TIMEOUT_S)
            kept[host, port] = connection
            with self._lock:
                self._connections.append(connection)
        return connection

    def _forget(self) -> None:
        """Close this thread's connections after a failure, because they may hold the rest of an old reply."""
        for connection in self._local.__dict__.pop("kept", {}).values():
            connection.close()

    def _again(self, request: Callable[[], T]) -> T:
        """Repeat a request as often as a restart of the gateway may need."""
        for attempt in range(1, TRIES + 1):
            try:
                return request()
            except ssl.SSLCertVerificationError as error:
                raise CheckpointStoreError(
                    f"{self.uri}: its certificate is not trusted: {error.verify_message}; give the "
                    "authority that signed it with --ca"
                ) from error
            except (OSError, HTTPException) as error:
                self._forget()
                if attempt == TRIES:
                    raise CheckpointStoreError(f"{self.uri} does not answer: {_text(error)}") from error
                time.sleep(PAUSE_S * attempt)
            except CheckpointStoreError:
                self._forget()
                raise
        raise AssertionError("not reached")

    def _good(self, reply: HTTPResponse, path: str, status: int) -> HTTPResponse:
        if reply.status == status:
            return reply
        data = reply.read(64 * 1024)
        try:
            refusal = json.loads(data)["RemoteException"]
            text = f"{refusal['exception']}: {refusal['message']}"
        except (ValueError, KeyError, TypeError):
            text = f"{reply.status} {reply.reason}"
        if "StandbyException" in text or "RetriableException" in text:
            raise HTTPException(text)
        raise CheckpointStoreError(f"{self.uri}/{path}: {text}")


def _context(access: GatewayAccess) -> ssl.SSLContext:
    files = TlsFiles(server=False, cert=access.certificate, key=access.key, ca=access.ca)
    context = FileTls(files).context
    if access.ca is None:
        context.load_default_certs()
    return context


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "bk"


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
