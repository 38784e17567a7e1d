"""The gateway against exchanges captured from HDFS 3.4.2: the same requests, in the same order.

Compared: status, exception, the first line of its message, the shape of JSON, what it says apart from
times and numbers that differ from run to run, bodies of files, where a redirect leads. What differs on
purpose stands in ``DIFFERENT``, with the reason.
"""

from __future__ import annotations

import asyncio
import functools
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from spark_wal.webhdfs.files.inodes import ROOT_INODE
from spark_wal.webhdfs.http.operations import UNSUPPORTED
from tests.spark_wal.webhdfs.wire import Answer, Wire, connected, served

EXCHANGES = Path(__file__).parents[2] / "vectors" / "webhdfs" / "exchanges.json"

NO_PERMISSIONS = "nobody is refused anything: a user name is a claim, not an identity, until there is authentication"
WHOLE_FILES = "S2: a file is visible complete or not at all, so there is no file that is being written"
ONE_SERVER = "one server is both steps: what only a DataNode would refuse is answered"
NO_SUCH_STATE = "a state that a gateway does not have"
JETTY = "what Jetty or Jersey say about odd HTTP is theirs"
DEPENDS = "rests on a case before it that is not supported or differs"

DIFFERENT: dict[str, str] = {
    r".*/denied(/\d)?$|.*denied.*|setowner/(denied|group-not-member)|auth/no-user-write": NO_PERMISSIONS,
    r"delegation-parameter/bad-put|create/no-user/2|op/parameter-names-mixed-case": NO_PERMISSIONS,
    r"auth/doas-.*": "impersonation needs authentication; doas is ignored",
    r"rename/no-options/onto-root": NO_PERMISSIONS,
    r"rename/options-to_trash": "the same reply; trash is off",
    r"in-progress/.*": WHOLE_FILES,
    r"method/datanode-.*": ONE_SERVER,
    r"method/(options|patch|trace|head|head-open)": JETTY,
    r"open/head-on-datanode": JETTY,
    r"http/(accept-text|space-in-the-target)|param/user-name-empty": JETTY,
    r"path/(relative|dotdot-above-root|v2|webhdfs-only|other)": JETTY,
    r"path/mkdirs-(nul|bad-escape)": JETTY,
    r"path/mkdirs-raw-utf8-bytes.*": "bytes beyond ASCII in a target are refused by the HTTP library, as the RFC asks",
    r"concat/ok/after": DEPENDS,
    r"path/reserved-.*": "HDFS's reserved paths are ordinary names here",
    r"standby/.*|no-datanode/.*|safemode/.*": NO_SUCH_STATE,
    r"gettrashroots.*|getdelegationtoken/kind-service": "not done; see UNSUPPORTED",
    r"mkdirs/quota-exceeded": "clients set no quotas here; the operator does (--names-quota)",
    r"getcontentsummary/quota|getfilestatus/with-acl|liststatus/snapshot": DEPENDS,
    r"getstatus": "capacity is not known",
}


def _load() -> list[dict[str, Any]]:
    document = json.loads(EXCHANGES.read_text("utf-8"))
    exchanges: list[dict[str, Any]] = document["exchanges"]
    return [e for e in exchanges if e["request"]]


def _reason(name: str) -> str | None:
    return next((why for pattern, why in DIFFERENT.items() if re.fullmatch(pattern, name)), None)


def _operation(exchange: dict[str, Any]) -> tuple[str, str]:
    query = parse_qsl(urlsplit(exchange["request"]["target"]).query)
    found = next((value for name, value in query if name.lower() == "op"), "")
    return exchange["request"]["method"], found.upper()


def test_every_difference_has_a_case() -> None:
    names = [e["name"] for e in _load()]
    for pattern, why in DIFFERENT.items():
        assert why and any(re.fullmatch(pattern, name) for name in names), pattern


@functools.cache
def _replayed() -> dict[str, Answer | BaseException]:
    return asyncio.run(_replay())


async def _replay() -> dict[str, Answer | BaseException]:
    answers: dict[str, Answer | BaseException] = {}
    async with served() as server:
        async with connected(server.address) as wire:
            await wire.request("PUT", "/webhdfs/v1/v?op=MKDIRS&user.name=alice")
            await wire.request("PUT", "/webhdfs/v1/v?op=SETOWNER&owner=alice&group=users")
        for exchange in _load():
            if _reason(exchange["name"]) in (NO_SUCH_STATE, WHOLE_FILES, JETTY, NO_PERMISSIONS):
                continue
            async with connected(server.address) as wire:
                for step in exchange.get("before", ()):
                    await _prepare(wire, step)
                answers[exchange["name"]] = await _send(wire, exchange["request"])
    return answers


async def _send(wire: Wire, request: dict[str, Any]) -> Answer | BaseException:
    headers = [(name, value) for name, value in request.get("headers", ()) if name.lower() != "transfer-encoding"]
    chunks = [chunk.encode() for chunk in request["chunks_text"]] if "chunks_text" in request else None
    body = request["body"].encode() if "body" in request else None
    try:
        async with asyncio.timeout(30):
            return await wire.request(request["method"], request["target"], headers=headers, body=body, chunks=chunks)
    except (OSError, EOFError, TimeoutError) as error:
        return error


async def _prepare(wire: Wire, step: Any) -> None:
    if step == "rename_tree":
        await wire.request("DELETE", "/webhdfs/v1/v/r?op=DELETE&recursive=true")
        for path in ("dir/sub", "edir", "full/x"):
            await _prepare(wire, {"dir": f"/v/r/{path}"})
        for path, content in (("a", "a"), ("b", "bb"), ("dir/f", "f")):
            await _prepare(wire, {"file": f"/v/r/{path}", "content": content})
    elif "dir" in step:
        await wire.request("PUT", f"/webhdfs/v1{step['dir']}?op=MKDIRS&user.name={step.get('user', 'alice')}")
    elif "file" in step:
        target = f"/webhdfs/v1{step['file']}?op=CREATE&overwrite=true&namenoderpcaddress=x&user.name=alice"
        assert (await wire.request("PUT", target, body=step["content"].encode())).status == 201
    else:
        method, target = step["request"].split(" ", 1)
        await wire.request(method, target)


VOLATILE = {
    *("accessTime", "modificationTime", "fileId", "snapshotEnabled", "aclBit"),
    *("topologyPaths", "names", "hosts", "locations", "blockId", "blockPoolId", "generationStamp"),
}
"""Times, and numbers and names of what differs from cluster to cluster."""


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get("fileId") == ROOT_INODE:
            value = {**value, "childrenNum": 0}  # other things lie in HDFS's root
        return {key: _comparable(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    return value


def _told(body: str) -> Any:
    """What a body says, without what differs from run to run."""
    try:
        fields = json.loads(body)
    except ValueError:
        return body
    if isinstance(fields, dict) and "RemoteException" in fields:
        error = fields["RemoteException"]
        message = (error["message"] or "").split("\n")[0]
        return {"exception": error["exception"], "class": error["javaClassName"], "message": message}
    if isinstance(fields, dict) and "Location" in fields:
        return _leads_to(fields["Location"])
    return _comparable(fields)


def _leads_to(location: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(location)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    query.pop("namenoderpcaddress")
    query.pop("createflag", None)  # HDFS encodes it twice
    return parts.path, query


CASES = [e for e in _load() if _reason(e["name"]) is None]


@pytest.mark.parametrize("exchange", CASES, ids=[e["name"] for e in CASES])
def test_reply_is_that_of_hdfs(exchange: dict[str, Any]) -> None:
    answer = _replayed()[exchange["name"]]
    assert isinstance(answer, Answer), answer
    if _operation(exchange) in UNSUPPORTED:
        assert (answer.status, answer.exception) == (400, "UnsupportedOperationException")
        return
    expected = exchange["response"]
    assert answer.status == expected["status"], answer.body
    headers = {h[0].lower(): h[1] for h in expected["headers"] if isinstance(h, list)}
    if expected["status"] == 307:
        assert _leads_to(answer.header("Location") or "") == _leads_to(headers["location"])
        assert answer.header("Content-Length") == "0"
    if "body" in expected:
        assert _told(answer.body.decode("utf-8", "replace")) == _told(expected["body"])


def test_most_cases_are_compared() -> None:
    assert len(CASES) > 350
