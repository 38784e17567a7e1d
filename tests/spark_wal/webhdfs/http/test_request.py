from __future__ import annotations

import pytest

from spark_wal.webhdfs.errors import AccessDeniedError, NoSuchFileError, RateExceededError
from spark_wal.webhdfs.http.parameters import Query
from spark_wal.webhdfs.http.request import Request, given_parameters, is_step_one, redirect, refusal_reply
from tests.spark_wal.webhdfs.http.test_operations import no_body


def request_of(query: str, *, path: str = "/a", scheme: str = "http") -> Request:
    return Request("GET", path, Query(query), "host:1", no_body(), scheme)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_redirect_leads_to_the_host_that_was_asked_and_is_the_second_step(scheme: str) -> None:
    asked = request_of("op=OPEN&user.name=a%20b&delegation=t%2F1", path="/a b/%", scheme=scheme)
    assert is_step_one(asked.query)
    reply = redirect(asked, ("offset", 7), ("length", "1 2"))
    assert (reply.status, reply.body) == (307, b"")
    start, _, query = str(reply.location).partition("?")
    assert start == f"{scheme}://host:1/webhdfs/v1/a%20b/%25"
    assert query == "op=OPEN&user.name=a%20b&delegation=t/1&namenoderpcaddress=host:1&length=1%202&offset=7"
    assert not is_step_one(Query(query))


def test_a_client_that_wants_no_redirect_gets_its_address_as_a_reply() -> None:
    reply = redirect(request_of("op=OPEN&noredirect=true"))
    assert (reply.status, reply.location) == (200, None)
    assert b'"Location":"http://host:1/webhdfs/v1/a?op=OPEN&namenoderpcaddress=host:1"' in reply.body


def test_only_parameters_that_were_given_are_handed_on() -> None:
    assert given_parameters(Query("op=OPEN&length=5&other=1"), "length", "buffersize") == [("length", "5")]


def test_a_refusal_says_when_to_ask_again_and_why_somebody_may_not() -> None:
    late = refusal_reply(RateExceededError("slowly", after_s=3))
    assert (late.retry_after_s, late.denial) == (3, "")
    denied = refusal_reply(AccessDeniedError("not yours"))
    assert (denied.status, denied.retry_after_s, denied.denial) == (403, None, "not yours")
    absent = refusal_reply(NoSuchFileError("File does not exist: /a"))
    assert (absent.status, absent.retry_after_s, absent.denial) == (404, None, "")
    assert b"File does not exist: /a" in absent.body
