"""The Python clients, and each one's ways to send a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import fsspec
import hdfs
import pyarrow.fs
import requests

PIECE = 256 * 1024


@dataclass(frozen=True, slots=True)
class Client:
    """One way of a client."""

    name: str
    write: Callable[[str, bytes], None]
    read: Callable[[str], bytes]


def pieces(data: bytes) -> Iterator[bytes]:
    """As a program has them that makes its file bit by bit."""
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]


@contextlib.contextmanager
def python_clients(address: str) -> Iterator[list[Client]]:
    """All of them, each with a session of its own."""
    host, port = address.split(":")
    with requests.Session() as session:
        files = fsspec.filesystem("webhdfs", host=host, port=int(port), user="alice", skip_instance_cache=True)
        client = hdfs.InsecureClient(f"http://{address}", user="alice")
        yield [*_requests(session, f"http://{address}/webhdfs/v1"), *_fsspec(files), _pyarrow(files), *_hdfs(client)]
        client._session.close()
        files.session.close()


def _requests(session: requests.Session, url: str) -> list[Client]:
    def write(path: str, body: Any) -> None:
        asked = session.put(f"{url}{path}?op=CREATE", allow_redirects=False)
        session.put(asked.headers["Location"], data=body).raise_for_status()

    def write_and_follow(path: str, data: bytes) -> None:
        session.put(f"{url}{path}?op=CREATE&overwrite=true", data=data).raise_for_status()

    def read(path: str) -> bytes:
        found = session.get(f"{url}{path}?op=OPEN")
        found.raise_for_status()
        return bytes(found.content)

    return [
        Client("requests, length said", write, read),
        Client("requests, chunks", lambda path, data: write(path, pieces(data)), read),
        Client("requests, body in both steps", write_and_follow, read),
    ]


def _fsspec(files: Any) -> list[Client]:
    def buffered(path: str, data: bytes) -> None:
        with files.open(path, "wb") as out:
            for piece in pieces(data):
                out.write(piece)

    return [
        Client("fsspec, at once", files.pipe_file, files.cat_file),
        Client("fsspec, buffered", buffered, files.cat_file),
    ]


def _pyarrow(files: Any) -> Client:
    arrow = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(files))

    def write(path: str, data: bytes) -> None:
        with arrow.open_output_stream(path) as out:
            out.write(data)

    def read(path: str) -> bytes:
        with arrow.open_input_stream(path) as found:
            return bytes(found.read())

    return Client("pyarrow over fsspec", write, read)


def _hdfs(client: Any) -> list[Client]:
    def read(path: str) -> bytes:
        with client.read(path) as found:
            data: bytes = found.read()
            return data

    return [
        Client("HdfsCLI, at once", lambda path, data: client.write(path, data=data), read),
        Client("HdfsCLI, chunks", lambda path, data: client.write(path, data=pieces(data)), read),
    ]
