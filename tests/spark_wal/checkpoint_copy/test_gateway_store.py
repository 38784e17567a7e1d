"""What every place does is in test_places."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

import spark_wal
from bookkeeper.errors import ConfigError
from bookkeeper.gateways.tokens import new_token
from examples.certificates import Authority
from spark_wal.checkpoint_copy import gateway_store
from spark_wal.checkpoint_copy.gateway_store import GatewayStore
from spark_wal.checkpoint_copy.stores import CheckpointStoreError
from spark_wal.spark_access import GatewayAccess
from spark_wal.webhdfs.files.numbered import NumberLimit
from tests.spark_wal.checkpoint_copy.test_stores import protected


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_store, "PAUSE_S", 0.0)


def test_refusals_are_passed_on_with_their_reason(tmp_path: Path) -> None:
    protection, access = protected(tmp_path)
    other = Authority(tmp_path / "other")
    with spark_wal.checkpoint_service(f"mem:{uuid4()}", listen="127.0.0.1:0", protection=protection) as wal:

        def listed(name: str, shown: GatewayAccess) -> str:
            place = GatewayStore(wal.location(name), shown)
            try:
                with pytest.raises(CheckpointStoreError) as refused:
                    place.listing()
            finally:
                place.close()
            return str(refused.value)

        assert "Permission denied" in listed("elsewhere", access)
        wrong = GatewayAccess(ca=access.ca, certificate=access.certificate, key=access.key, token=new_token())
        assert "not valid" in listed("deep/a", wrong)
        assert "not trusted" in listed("deep/a", GatewayAccess(ca=other.ca, token=access.token))


def test_a_file_is_not_a_directory() -> None:
    with spark_wal.checkpoint_service(f"mem:{uuid4()}", listen="127.0.0.1:0") as wal:
        above = GatewayStore(wal.location("a"), GatewayAccess())
        above.write("b", lambda: [b"x"])
        place = GatewayStore(wal.location("a/b"), GatewayAccess())
        with pytest.raises(CheckpointStoreError, match="is a file"):
            place.listing()
        place.close()
        above.close()


@contextmanager
def answering(*replies: bytes) -> Iterator[str]:
    """A server that gives each connection one of these and closes it."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for reply in replies:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"webhdfs://127.0.0.1:{listening.getsockname()[1]}/a"
    finally:
        thread.join()
        listening.close()


SHORT = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"


def json_reply(status: str, body: bytes) -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


STANDBY = json_reply("403 Forbidden", b'{"RemoteException":{"exception":"StandbyException","message":"x"}}')
EMPTY = json_reply("200 OK", b'{"FileStatuses":{"FileStatus":[]}}')


def test_a_file_that_ends_early_is_an_error() -> None:
    with answering(SHORT) as uri:
        place = GatewayStore(uri, GatewayAccess())
        with pytest.raises(CheckpointStoreError, match="5 bytes early"):
            b"".join(place.read("x"))
        place.close()


def test_a_gateway_that_is_restarted_is_asked_again() -> None:
    with answering(b"", STANDBY, EMPTY) as uri:
        place = GatewayStore(uri, GatewayAccess())
        assert place.listing() == {}
        place.close()


def test_a_gateway_that_stays_away_is_an_error() -> None:
    with answering(*[b""] * gateway_store.TRIES) as uri:
        place = GatewayStore(uri, GatewayAccess())
        with pytest.raises(CheckpointStoreError, match="does not answer"):
            place.listing()
        place.close()


def test_a_redirect_out_of_tls_is_not_followed() -> None:
    away = b"HTTP/1.1 307 T\r\nLocation: https://elsewhere.example.org/x\r\nContent-Length: 0\r\n\r\n"
    with answering(away) as uri:
        place = GatewayStore(uri, GatewayAccess())
        with pytest.raises(CheckpointStoreError, match="not followed"):
            b"".join(place.read("x"))
        place.close()


@pytest.mark.rule("X58")
def test_a_token_is_not_taken_to_another_host(tmp_path: Path) -> None:
    """A gateway that was broken into, or one that believes any Host, leads to whoever collects tokens."""
    authority = Authority(tmp_path)
    heard: list[bytes] = []
    for location in ("https://localhost:%d/webhdfs/v1/a?op=OPEN", "https://127.0.0.1:1/webhdfs/v1/a?op=OPEN"):
        with answering_by_tls(authority, location, heard) as port:
            place = GatewayStore(f"swebhdfs://127.0.0.1:{port}/a", GatewayAccess(ca=authority.ca, token=new_token()))
            with pytest.raises(CheckpointStoreError, match="the token is for the first host only"):
                b"".join(place.read("x"))
            place.close()
    assert len(heard) == 2, "only who was asked was spoken to"


@contextmanager
def answering_by_tls(authority: Authority, location: str, heard: list[bytes]) -> Iterator[int]:
    """Every connection gets a redirect; what is said on each is kept."""
    shown = authority.server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.cert, shown.key)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    told = (location % port if "%d" in location else location).encode()
    reply = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % told

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = listening.accept()
                with context.wrap_socket(plain, server_side=True) as connection:
                    heard.append(connection.recv(65536))
                    connection.sendall(reply)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield port
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


@pytest.mark.rule("X42")
@pytest.mark.parametrize("name", ["..", ".", "a/b", "../../etc/passwd", "a\\u0000b"])
def test_a_listing_does_not_lead_out_of_its_directory(name: str) -> None:
    entry = f'{{"pathSuffix":"{name}","type":"FILE","length":1,"modificationTime":1}}'
    body = f'{{"FileStatuses":{{"FileStatus":[{entry}]}}}}'.encode()
    with answering(json_reply("200 OK", body)) as uri:
        place = GatewayStore(uri, GatewayAccess())
        with pytest.raises(CheckpointStoreError, match="leads out"):
            place.listing()
        place.close()


@pytest.mark.rule("X58")
def test_credentials_in_an_address_are_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="the address must not hold credentials") as refused:
        GatewayStore("swebhdfs://me:hunter2@gateway:9871/a", GatewayAccess())
    assert "hunter2" not in str(refused.value)


def test_files_above_a_number_go_at_once_and_only_if_the_listing_is_still_the_one_that_was_seen() -> None:
    limits = (NumberLimit("offsets", 0), NumberLimit("state/*/*", 1))
    with spark_wal.checkpoint_service(f"mem:{uuid4()}", listen="127.0.0.1:0") as wal:
        place = GatewayStore(wal.location("a"), GatewayAccess())
        for path in ("offsets/0", "offsets/1", "state/0/0/2.delta", "metadata"):
            place.write(path, lambda: [b"x"])
        seen = place.listing()
        place.write("offsets/2", lambda: [b"x"])
        with pytest.raises(CheckpointStoreError, match="look again"):
            place.remove_numbered(limits, seen, 0)
        with pytest.raises(CheckpointStoreError, match="stop the query"):
            place.remove_numbered(limits, place.listing(), 600)
        seen = place.listing()
        place.remove_numbered(limits, seen, 0)
        assert sorted(place.listing()) == ["metadata", "offsets/0"]
        place.remove_numbered(limits, seen, 0)  # as if the first answer had been lost
        place.close()


def test_the_root_is_a_directory_only_where_it_may_be() -> None:
    with spark_wal.checkpoint_service(f"mem:{uuid4()}", listen="127.0.0.1:0") as wal:
        root = wal.location("a").removesuffix("a")
        with pytest.raises(ConfigError, match="expected webhdfs://HOST:PORT/PATH"):
            GatewayStore(root, GatewayAccess())
        whole = GatewayStore(root, GatewayAccess(), may_be_root=True)
        whole.write("a/b", lambda: [b"x"])
        (stamp,) = whole.listing().values()
        assert list(whole.listing()) == ["a/b"] and stamp.owner and stamp.modified_ms
        whole.close()
