"""The whole table of who is served is in test_listener; here is what it stands on."""

from __future__ import annotations

import pytest

from bookkeeper.access import Grant, Mode, Policy, Resource, Right, Subject
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights
from spark_wal.webhdfs.access.authentication import denial_of, denied, token_of
from spark_wal.webhdfs.access.operation_rights import CREATE, DELETE, LOOK, MOVE, READ


@pytest.mark.parametrize(
    ("authorization", "delegation", "token"),
    [
        (None, None, None),
        ("Bearer abc", None, "abc"),
        ("bearer  abc ", "other", "abc"),
        ("Basic abc", "plain", "plain"),
        ("Bearer ", None, None),
    ],
)
def test_the_header_comes_before_the_parameter(
    authorization: str | None, delegation: str | None, token: str | None
) -> None:
    assert token_of(authorization, delegation) == token


@pytest.mark.rule("X57")
def test_above_the_roots_one_may_look_and_nothing_else() -> None:
    etl, permissions = Caller("etl", ("/a/b",)), CallerRights()
    for caller, path, needs in ((etl, "/a/b/c", DELETE), (etl, "/a", LOOK), (etl, "/", LOOK), (None, "/", DELETE)):
        assert denial_of(permissions, caller, path, needs) is None
    for path, needs in (("/a", READ), ("/a", CREATE), ("/x", LOOK), ("/a", MOVE), ("/a/bc", LOOK)):
        denial = denial_of(permissions, etl, path, needs)
        assert denial is not None
        text = str(denied(denial, path, "OPEN"))
        assert text.startswith(
            f"Permission denied: user=etl, access=OPEN, path='{path}': its token is valid below /a/b"
        )


@pytest.mark.rule("X12", "X57")
def test_a_policy_that_is_enforced_shows_the_way_to_what_it_grants() -> None:
    policy = Policy(Mode.ENFORCE, (Grant(Subject.parse("etl"), frozenset({Right.READ}), Resource.parse("paths:/a/b")),))
    permissions = CallerRights(lambda: policy)
    etl, other = Caller("etl"), Caller("other")
    assert denial_of(permissions, etl, "/a", LOOK) is None
    assert denial_of(permissions, etl, "/a/b/c", READ) is None
    for caller, path, needs in ((etl, "/b", LOOK), (etl, "/a", READ), (etl, "/a/b", CREATE), (other, "/a", LOOK)):
        denial = denial_of(permissions, caller, path, needs)
        assert denial is not None
        assert denial.reason.startswith(f"no grant gives {denial.who} the right to")
    assert denial_of(permissions, None, "/a/b", READ) is not None, (
        "a gateway without authentication is no way around it"
    )
