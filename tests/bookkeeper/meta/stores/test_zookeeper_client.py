from __future__ import annotations

import logging

import pytest
from kazoo import exceptions as zk
from kazoo.security import OPEN_ACL_UNSAFE

from bookkeeper.errors import (
    ConfigError,
    KeyExistsError,
    MetadataConflictError,
    MetadataForbiddenError,
    MetadataUnavailableError,
    NoSuchKeyError,
    SessionExpiredError,
)
from bookkeeper.meta.stores.credentials import Credentials
from bookkeeper.meta.stores.zookeeper_client import (
    KEPT_MAX,
    REPEAT_S,
    ConnectionLog,
    RepeatedLogFilter,
    access_list,
    new_client,
    translate,
)
from bookkeeper.secret import Secret

US = Credentials(user="bk", password=Secret("planted"), readers=(("sasl", "monitor"),))


def test_the_clients_errors_are_translated_once() -> None:
    for theirs, ours in (
        (zk.NoNodeError(), NoSuchKeyError),
        (zk.NodeExistsError(), KeyExistsError),
        (zk.BadVersionError(), MetadataConflictError),
        (zk.ConnectionLoss(), MetadataUnavailableError),
        (zk.SessionExpiredError(), SessionExpiredError),
        (zk.NoAuthError(), MetadataForbiddenError),
        (zk.InvalidACLError(), MetadataForbiddenError),
        (zk.AuthFailedError(), MetadataForbiddenError),
    ):
        assert type(translate("x", theirs, "us")) is ours


@pytest.mark.rule("X26")
def test_what_we_create_is_ours_and_its_readers_and_nobody_elses() -> None:
    acl = access_list(US)
    assert acl is not None
    assert [(entry.id.scheme, entry.id.id, entry.acl_list) for entry in acl] == [
        ("auth", "", ["ALL"]),
        ("sasl", "monitor", ["READ"]),
    ]
    assert new_client("127.0.0.1:1", US, 1.0).default_acl == acl


def test_without_an_identity_everybody_may_as_in_java() -> None:
    assert access_list(Credentials()) is None
    assert OPEN_ACL_UNSAFE[0].id.scheme == "world"


@pytest.mark.rule("X28")
def test_a_client_that_would_show_its_password_is_not_made() -> None:
    with pytest.raises(ConfigError, match="in clear text"):
        new_client("127.0.0.1:1,192.0.2.1:2181", US, 1.0)


def record(message: str, *, level: int = logging.WARNING, at: float = 0.0) -> logging.LogRecord:
    made = logging.LogRecord("x", level, "", 0, message, ("host",), None)
    made.created = at
    return made


def test_a_warning_that_repeats_is_written_once_in_a_while_with_its_number() -> None:
    throttle = RepeatedLogFilter()
    passed = [second for second in range(100) if throttle.filter(record("lost %s", at=second))]
    assert passed == [0, 30, 60, 90]
    assert throttle.filter(record("another %s", at=99))
    late = record("lost %s", at=90 + REPEAT_S)
    assert throttle.filter(late)
    assert late.getMessage() == "lost host (9 more of this kind)"


@pytest.mark.rule("X58")
def test_what_the_client_sends_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    client = new_client("127.0.0.1:1", US, 1.0)
    for level in (5, logging.DEBUG):
        client.logger.log(level, "Sending request: %s", client.auth_data)
    client.logger.info("harmless")
    assert "planted" not in caplog.text
    assert "harmless" in caplog.text


def test_what_a_client_says_before_the_first_contact_waits_for_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = ConnectionLog()
    log.warning("no server at %s", "a")
    log.info("a server at %s", "b")
    assert caplog.messages == []
    log.show()
    log.warning("it has gone")
    log.debug("a password")
    assert caplog.messages == ["no server at a", "a server at b", "it has gone"]


def test_a_client_that_makes_no_contact_for_long_keeps_the_newest_it_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = ConnectionLog()
    for number in range(KEPT_MAX + 5):
        log.info(f"try {number}")  # each of its own: repetitions are left out
    log.show()
    assert caplog.messages == [f"try {number}" for number in range(5, KEPT_MAX + 5)]


def test_where_nobody_logs_a_client_keeps_nothing(caplog: pytest.LogCaptureFixture) -> None:
    log = ConnectionLog()
    log.info("a server")
    caplog.set_level(logging.INFO)
    log.show()
    assert caplog.messages == []
