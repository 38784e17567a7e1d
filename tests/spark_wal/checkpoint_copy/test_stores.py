"""One contract for every kind of place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

import spark_wal
from bookkeeper.gateways.access_control import AccessConfig
from bookkeeper.gateways.server_tls import ServerTlsFiles
from bookkeeper.gateways.tokens import new_token, token_line
from examples.certificates import Authority
from spark_wal.checkpoint_copy.open_store import open_store
from spark_wal.checkpoint_copy.stores import CheckpointStore, CheckpointStoreError
from spark_wal.spark_access import GatewayAccess

LARGE = bytes(range(256)) * 10_000


@pytest.fixture(params=["file", "path", "webhdfs", "swebhdfs", "arrow"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CheckpointStore]:
    kind = request.param
    if kind in ("file", "path"):
        yield open_store(f"file://{tmp_path}/a" if kind == "file" else f"{tmp_path}/a", GatewayAccess())
        return
    if kind == "arrow":
        arrow_store = pytest.importorskip("spark_wal.checkpoint_copy.arrow_store")
        yield arrow_store.ArrowStore(f"file://{tmp_path}/a")
        return
    protection, access = (None, GatewayAccess()) if kind == "webhdfs" else protected(tmp_path)
    uri = f"mem:{uuid4()}"
    with spark_wal.checkpoint_service(uri, listen="127.0.0.1:0", protection=protection) as wal:
        opened = open_store(wal.location("deep/a"), access)
        yield opened
        opened.close()


def protected(directory: Path) -> tuple[AccessConfig, GatewayAccess]:
    authority = Authority(directory / "ca")
    shown, ours, token = authority.server("gateway"), authority.client(), new_token()
    tokens = directory / "tokens"
    tokens.touch(0o600)
    tokens.write_text(token_line("alice", token, ["/deep/a"]))
    tls = ServerTlsFiles(certificate=shown.cert, key=shown.key, client_ca=authority.ca)
    access = GatewayAccess(ca=authority.ca, certificate=ours.cert, key=ours.key, token=token)
    return AccessConfig(tls=tls, token_file=str(tokens)), access


def content(place: CheckpointStore, path: str) -> bytes:
    return b"".join(place.read(path))


def test_nothing_is_there_before_anything_is_written(place: CheckpointStore) -> None:
    assert place.listing() == {}
    with pytest.raises(CheckpointStoreError, match="none"):
        content(place, "none")


def test_files_are_written_replaced_listed_and_read(place: CheckpointStore) -> None:
    files = {"metadata": b"m", "a/b/c": LARGE, "a/empty": b"", "a/ü %+#?&=x": b"odd name"}
    for path, data in files.items():
        place.write(path, lambda data=data: [b"old", data])  # type: ignore[misc]
        place.write(path, lambda data=data: [data[:5], data[5:]])  # type: ignore[misc]
    place.sync()
    assert {path: stamp.size for path, stamp in place.listing().items()} == {p: len(d) for p, d in files.items()}
    assert {path: content(place, path) for path in files} == files


def test_a_change_shows_in_the_listing(place: CheckpointStore) -> None:
    place.write("a", lambda: [b"one"])
    before = place.listing()
    assert place.listing() == before
    place.write("a", lambda: [b"other"])
    assert place.listing() != before


def test_a_reader_that_stops_early_does_not_disturb_the_next(place: CheckpointStore) -> None:
    place.write("large", lambda: [LARGE])
    for _ in range(3):
        next(iter(place.read("large")))
    assert content(place, "large") == LARGE


def test_a_failure_of_the_bytes_to_be_written_is_passed_on(place: CheckpointStore) -> None:
    def broken() -> Iterator[bytes]:
        yield b"x"
        raise CheckpointStoreError("the other side failed")

    with pytest.raises(CheckpointStoreError, match="the other side"):
        place.write("a", broken)
    place.write("a", lambda: [b"whole"])
    assert content(place, "a") == b"whole"
