from __future__ import annotations

import pytest
from multidict import CIMultiDict

from spark_wal.webhdfs.http.origins import refusal

OURS = frozenset(("localhost",))


@pytest.mark.rule("X49")
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site", "something new"])
def test_a_page_of_another_origin_starts_no_work_here(method: str, site: str) -> None:
    """Cause: a page could have whole files read (GETFILECHECKSUM) by naming this machine's address, which no check of
    the host refuses."""
    found = refusal(method, {"Host": "127.0.0.1:9870", "Sec-Fetch-Site": site}, "http", OURS)
    assert found is not None and found.status == 403


@pytest.mark.rule("X49")
def test_clients_and_what_a_person_types_are_served() -> None:
    for headers in ({}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}):
        assert refusal("GET", {"Host": "localhost:1", **headers}, "http", OURS) is None
    assert refusal("PUT", {"Host": "localhost:1", "Origin": "http://localhost:1"}, "http", OURS) is None


@pytest.mark.rule("X49")
@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("PUT", {"Host": "localhost:1", "Origin": "http://evil.example"}, 403),
        ("GET", {"Host": "evil.example"}, 421),
        ("GET", {"Host": "a b"}, 400),
    ],
)
def test_forged_requests_are_refused(method: str, headers: dict[str, str], status: int) -> None:
    found = refusal(method, headers, "http", OURS)
    assert found is not None and found.status == status


@pytest.mark.rule("X49")
@pytest.mark.parametrize("name", ["Authorization", "Host"])
def test_who_asks_and_what_is_meant_is_said_once(name: str) -> None:
    """Cause: of two tokens the first one counted, and a proxy in front may have looked at the other."""
    headers = CIMultiDict({"Host": "localhost:1", "Authorization": "Bearer a"})
    assert refusal("GET", headers, "http", OURS) is None
    headers.add(name.lower(), "localhost:1")
    found = refusal("GET", headers, "http", OURS)
    assert found is not None and found.status == 400
