"""The API of ``bk bookie`` and ``bk autorecovery``, as processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bookkeeper.gateways.tokens import new_token, token_line
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Process
from tests.interop.http_routes.capture import ask
from tests.interop.http_routes.exchanges import Exchange

pytestmark = pytest.mark.integration

WHERE = r"HTTP API http://127\.0\.0\.1:(\d+)"


@contextmanager
def running(process: Process) -> Iterator[int]:
    """The process, with the port of its API."""
    process.start()
    try:
        yield int(process.until_said(WHERE)[1])
    finally:
        process.stop()


def test_both_processes_serve_it_and_end_cleanly(tmp_path: Path) -> None:
    uri, token, tokens = f"sqlite:///{tmp_path}/cluster.db", new_token(), tmp_path / "tokens"
    assert bk("init", "--metadata", uri).status == 0
    tokens.touch(mode=0o600)
    tokens.write_text(token_line("operator", token))
    api = ("--metadata", uri, "--http-api", "127.0.0.1:0", "--http-token-file", str(tokens))
    bookie = Process("bookie", tmp_path, "bookie", "--dir", str(tmp_path / "b1"), *api, "--http-actions", "compaction")
    pages = ("--http", "127.0.0.1:0", "--audit", str(tmp_path / "audit"))
    healer = Process("healer", tmp_path, "autorecovery", "--name", "healer", *api, *pages)
    suspend = Exchange("PUT", "/api/v1/bookie/gc/suspend_compaction", '{"suspendMajor": true}')
    switch = Exchange("PUT", "/api/v1/autorecovery/status?enabled=false")
    with running(bookie) as port, running(healer) as other:
        assert ask(port, suspend, {}, token.reveal()).status == 200
        assert ask(other, suspend, {}, token.reveal()).status == 404, "it is no bookie"
        for each in (port, other):
            assert ask(each, switch, {}, token.reveal()).status == 403, "that action was not named"
            assert ask(each, Exchange("GET", "/api/v1/ledger/list"), {}, token.reveal()).body == "{}\n"
            assert ask(each, Exchange("GET", "/heartbeat"), {}).body == "OK\n"
            assert ask(each, Exchange("GET", "/livez"), {}).status == 200
        told = healer.until_said(r"serves as healer, http://127\.0\.0\.1:(\d+)")
        assert ask(int(told[1]), Exchange("GET", "/heartbeat"), {}).body == "OK\n"
        assert ask(int(told[1]), switch, {}, token.reveal()).status == 405, "pages change nothing"
    assert "switch-autorecovery" in (tmp_path / "audit").read_text()


@pytest.mark.parametrize("mode", [0o644, None])
def test_a_file_of_tokens_that_cannot_be_used_ends_the_start_before_anything_is_made(
    mode: int | None, tmp_path: Path
) -> None:
    uri, tokens = f"sqlite:///{tmp_path}/cluster.db", tmp_path / "tokens"
    assert bk("init", "--metadata", uri).status == 0
    if mode is not None:
        tokens.touch(mode=mode)
    api = ("--http-api", "127.0.0.1:0", "--http-token-file", str(tokens))
    process = Process("bookie", tmp_path, "bookie", "--metadata", uri, "--dir", str(tmp_path / "b1"), *api).start()
    assert process.wait() == 78
    assert str(tokens) in process.said and "Traceback" not in process.said
    assert mode is not None or f"bk gateway token NAME --token-file {tokens}" in process.said
    assert not (tmp_path / "b1").exists()
