"""Requests, and answers that are made while they are sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from bookkeeper.http_api.request import (
    CHUNK_BYTES,
    PARAMETERS_MAX,
    ApiRequest,
    JsonStream,
    RefusedRequestError,
    parameters,
)


def test_of_parameters_with_one_name_the_last_one_counts_and_there_is_a_limit() -> None:
    assert parameters("a=1&a=2&b=&c=x%20y") == {"a": "2", "b": "", "c": "x y"}
    assert parameters("") == {}
    with pytest.raises(RefusedRequestError) as refused:
        parameters("&".join(f"p{number}=1" for number in range(PARAMETERS_MAX + 1)))
    assert refused.value.status == 400


def test_numbers_that_are_none_are_refused() -> None:
    odd = {name: name for name in ("1.5", "1_0", " 1", "1\n", "٣", "0x1", "9" * 40, "", "-")}
    request = ApiRequest("GET", "/", {"page": "7", "back": "-7", **odd})
    assert (request.number("page"), request.number("back"), request.number("none", -1)) == (7, -7, -1)
    for name in (*odd, "none"):
        with pytest.raises(RefusedRequestError, match="must be a whole number"):
            request.number(name)


@pytest.mark.parametrize("body", [None, "", "[]", "{", "7", '"x"', "[" * 100_000])
def test_a_body_that_is_no_object_is_refused_with_what_the_route_says(body: str | None) -> None:
    with pytest.raises(RefusedRequestError, match=r"^wrong: the body is no JSON object$") as refused:
        ApiRequest("PUT", "/", body=body).document("wrong: ", 418)
    assert refused.value.status == 418


def _sent(items: list[tuple[str | None, Any]], *, is_object: bool = True, fails: bool = False) -> list[bytes]:
    async def made() -> AsyncGenerator[tuple[str | None, Any], None]:
        for item in items:
            yield item
        if fails:
            raise OSError("gone")

    sent: list[bytes] = []

    async def work() -> None:
        async for piece in JsonStream(made(), is_object=is_object).chunks():
            sent.append(piece)

    if fails:
        with pytest.raises(OSError, match="gone"):
            asyncio.run(work())
    else:
        asyncio.run(work())
    return sent


def test_a_stream_is_whole_json_in_pieces_of_a_bounded_size() -> None:
    items: list[tuple[str | None, Any]] = [(str(number), {"x": [number]}) for number in range(10_000)]
    sent = _sent(items)
    assert json.loads(b"".join(sent)) == dict(items)
    assert len(sent) > 3 and max(map(len, sent)) < CHUNK_BYTES + 100
    assert json.loads(b"".join(_sent([(None, 7), (None, 8)], is_object=False))) == [7, 8]
    assert json.loads(b"".join(_sent([]))) == {}


def test_a_stream_that_fails_in_its_middle_is_no_json() -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(b"".join(_sent([(str(number), "x" * 100) for number in range(1000)], fails=True)))
