"""Which requests leave a line, in a gateway that serves."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.audit import AuditConfig
from bookkeeper.auth.token_file import signing_key_line
from bookkeeper.gateways.access_control import AccessConfig
from bookkeeper.gateways.tokens import TokenBook, new_token, token_line
from bookkeeper.ids import Address
from bookkeeper.real import system_seams
from spark_wal.webhdfs.http.request_audit import NOTED
from spark_wal.webhdfs.service import ServingConfig, WebHdfsService
from tests.spark_wal.webhdfs.wire import connected

CREATE = "op=CREATE&overwrite=true&namenoderpcaddress=x"


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def serving(tmp_path: Path, **access: Any) -> ServingConfig:
    return ServingConfig(
        uri=f"file://{tmp_path}/journal",
        listen=Address("127.0.0.1", 0),
        advertise="gateway:1",  # the host that these requests name
        access=AccessConfig(audit=AuditConfig(to=str(tmp_path / "audit")), **access),
    )


@pytest.mark.rule("X16")
async def test_tokens_denials_and_deletions_are_noted_and_no_token_is(tmp_path: Path) -> None:
    tokens, token, wrong = tmp_path / "tokens", new_token(), new_token()
    tokens.write_text(signing_key_line("k1") + token_line("etl", token, ["/etl"]))
    tokens.chmod(0o600)
    book = TokenBook.parse(tokens.read_text(), "t")
    ended = book.exchange("etl", token.reveal(), 0)
    assert ended is not None
    shown = {
        "good": (("Authorization", f"Bearer {token.reveal()}"),),
        "wrong": (("Authorization", f"Bearer {wrong.reveal()}"),),
        "ended": (("Authorization", f"Bearer {ended.reveal()}"),),
        "none": (),
    }
    grant = base64.b64encode(f"etl:{wrong.reveal()}".encode()).decode()
    async with WebHdfsService(serving(tmp_path, token_file=str(tokens)), system_seams()) as service:
        for method, path, query, who, status in (
            ("PUT", "/etl/f", CREATE, "good", 201),
            ("GET", "/etl/f", "op=GETFILESTATUS", "good", 200),
            ("GET", "/other", "op=OPEN", "good", 403),
            ("DELETE", "/other", "op=DELETE", "good", 403),
            ("DELETE", "/etl/f", "op=DELETE", "good", 200),
            ("PUT", "/etl/none", "op=SETOWNER&owner=x", "good", 404),
            ("GET", "/", "op=LISTSTATUS", "wrong", 401),
            ("GET", "/", "op=LISTSTATUS", "ended", 401),
            ("GET", "/", "op=LISTSTATUS", "none", 401),
        ):
            async with connected(service.address) as wire:
                target = f"/webhdfs/v1{path}?{query}"
                answer = await wire.request(
                    method, target, headers=shown[who], body=b"4711" if method == "PUT" else None
                )
                assert answer.status == status, (target, who)
        async with connected(service.address) as wire:
            asked = (("Authorization", f"Basic {grant}"),)
            answer = await wire.request("POST", "/oauth2/token", headers=asked, body=b"grant_type=client_credentials")
            assert answer.status == 401
    lines = lines_of(tmp_path / "audit")
    assert [(line["what"], line["who"], line["claimed"], line["on"], line["allowed"]) for line in lines] == [
        ("authenticate", "etl", False, "gateway", True),
        ("deny", "etl", False, "/other (OPEN)", False),
        ("delete", "etl", False, "/other (DELETE)", False),
        ("delete", "etl", False, "/etl/f (DELETE)", True),
        ("administer", "etl", False, "/etl/none (SETOWNER)", True),
        ("authenticate", "", False, "gateway", False),
        ("authenticate", "etl", True, "gateway", False),
        ("authenticate", "", False, "gateway", False),
        ("authenticate", "etl", True, "gateway", False),
    ]
    text = (tmp_path / "audit").read_text()
    assert not any(secret in text for secret in (token.reveal(), wrong.reveal(), ended.reveal(), grant, "4711"))


@pytest.mark.rule("X16")
async def test_a_name_that_a_client_gives_itself_is_claimed(tmp_path: Path) -> None:
    async with WebHdfsService(serving(tmp_path), system_seams()) as service, connected(service.address) as wire:
        await wire.request("DELETE", "/webhdfs/v1/f?op=DELETE&user.name=root")
        await wire.request("DELETE", "/webhdfs/v1/f?op=DELETE")
    assert [(line["who"], line["claimed"]) for line in lines_of(tmp_path / "audit")] == [("root", True), ("", False)]


def test_reads_and_new_files_are_not_noted() -> None:
    assert not NOTED.keys() & {"CREATE", "OPEN", "APPEND", "GETFILESTATUS", "MKDIRS", "RENAME"}
