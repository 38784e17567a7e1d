"""Whatever a known caller sends is answered, and no answer is a defect."""

from __future__ import annotations

import json
import random
from pathlib import Path
from urllib.parse import quote

import pytest

from bookkeeper.http_api.routes import METHODS, ROUTES
from tests.bookkeeper.http_api.served import Served, story

REQUESTS = 150
VALUES = ("", "0", "-1", "70001", "x", "1e3", "9" * 40, "true", "\x00", "é", "../..", "None", "2", " 1", "٣")
NAMES = [
    "ledger_id",
    "page",
    "print_metadata",
    "decode_meta",
    "start_entry_id",
    "end_entry_id",
    "type",
    "print_hostnames",
    "file_type",
    "enabled",
    "missingreplica",
    "excludingmissingreplica",
    "printmissingreplica",
]
KEYS = [
    "readOnly",
    "forceMajor",
    "suspendMajor",
    "suspendMinor",
    "resumeMajor",
    "delay_seconds",
    "bookie_src",
    "bookie_dest",
    "delete_cookie",
    "entryLocationRocksDBCompact",
    "entryLocations",
]


def _value(chance: random.Random, depth: int = 0) -> object:
    simple = [None, True, False, 0, -1, 7, 2**70, 1.5, "", "true", "b9", "x" * 50]
    if depth < 2 and chance.random() < 0.3:
        inner = [_value(chance, depth + 1) for _ in range(chance.randint(0, 3))]
        return inner if chance.random() < 0.5 else {"readOnly": inner}
    return chance.choice(simple)


def _body(chance: random.Random) -> str | None:
    kind = chance.random()
    if kind < 0.2:
        return None
    if kind < 0.4:
        return chance.choice(["{", "[]", "null", "7", '"x"', " ", "\ufeff{}", "[" * 2000, '{"a": NaN}', "{}" * 2])
    return json.dumps({chance.choice(KEYS): _value(chance) for _ in range(chance.randint(0, 3))})


def test_odd_parameters_and_bodies_are_refused_with_a_sentence(tmp_path: Path) -> None:
    chance, paths = random.Random(49), sorted(ROUTES)

    async def work(served: Served) -> None:
        await served.furnish()
        for _ in range(REQUESTS):
            method, path = chance.choice(METHODS), chance.choice(paths)
            query = "&".join(
                f"{chance.choice(NAMES)}={quote(chance.choice(VALUES))}" for _ in range(chance.randint(0, 4))
            )
            body = _body(chance)
            reply = await served.ask(method, f"{path}?{query}", body)
            asked = (method, path, query, body, reply)
            assert reply.status in (200, 400, 403, 404, 405, 500), asked
            assert "unexpectedly" not in reply.body and "Traceback" not in reply.body, asked
            assert reply.status == 200 or reply.body, asked

    story(tmp_path, work, auditor=False)


def test_every_route_answers_what_lacks_a_body_or_has_another_method_or_a_slash_too_much(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What apache/bookkeeper#3845 tells: a change without a body was a defect of the server, and no line told of it."""

    async def work(served: Served) -> None:
        await served.furnish()
        for path in sorted(ROUTES):
            for method in (*METHODS, "HEAD", "PATCH"):
                for body in (None, '"true"', "{"):
                    for asked in (path, f"{path}/"):
                        caplog.clear()
                        reply = await served.ask(method, asked, body)
                        said = (method, asked, body, reply)
                        assert "unexpectedly" not in reply.body and "Traceback" not in reply.body, said
                        assert reply.status < 500 or caplog.records or reply.body, said

    story(tmp_path, work, auditor=False)
