"""One connection for each process and address, and patience."""

from __future__ import annotations

import os

import pytest

from bookkeeper.errors import MetadataUnavailableError
from segments import StreamNotFoundError, StreamUnavailableError
from spark_wal.data_source import connections
from spark_wal.data_source.connections import RetryTimer, call_with_retries
from tests.spark_wal.data_source.clusters import ONE_BOOKIE


def test_a_process_has_one_connection_to_an_address(cluster_uri: str) -> None:
    assert connections.namespace(cluster_uri) is connections.namespace(cluster_uri)


def test_a_fresh_one_replaces_the_former_which_is_closed(cluster_uri: str) -> None:
    former = connections.namespace(cluster_uri)
    made = connections.namespace(cluster_uri, fresh=True)
    assert made is not former and connections.namespace(cluster_uri) is made
    assert not made.exists("nowhere")


def test_another_process_makes_its_own(cluster_uri: str) -> None:
    """A worker is a fork, and has this module as its parent left it."""
    connections.namespace(cluster_uri)  # makes the file
    uri = f"sqlite://{cluster_uri.removeprefix('embedded://').partition('?')[0]}/metadata.sqlite"
    connections.namespace(uri).create("of-the-parent", config=ONE_BOOKIE)
    child = os.fork()
    if child == 0:
        found = False
        try:
            found = connections.namespace(uri).exists("of-the-parent")  # the parent's connection would refuse
        finally:
            os._exit(0 if found else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_what_may_pass_is_tried_again() -> None:
    calls, forgotten = [], []

    def call() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise StreamUnavailableError("away")
        return "there"

    assert call_with_retries(call, 60.0, lambda: forgotten.append(1)) == "there"
    assert (len(calls), len(forgotten)) == (2, 1)


@pytest.mark.parametrize(
    ("error", "patience_s"),
    [
        (StreamNotFoundError("gone"), 60.0),
        (FileNotFoundError("no password"), 60.0),
        (StreamUnavailableError("away"), 0.0),
        (MetadataUnavailableError("away"), 0.0),
    ],
)
def test_what_lasts_is_raised_at_once(error: Exception, patience_s: float) -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        call_with_retries(call, patience_s)
    assert len(calls) == 1


def test_a_cluster_that_does_not_answer_is_asked_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    patience = RetryTimer(1e6)
    for _ in range(12):
        patience.failed(OSError("away"))
    assert pauses[0] == connections._PAUSE_MIN_S and pauses[-1] == connections._PAUSE_MAX_S
    assert pauses == sorted(pauses)
    patience.succeeded()
    patience.failed(OSError("away"))
    assert pauses[-1] == connections._PAUSE_MIN_S


def test_patience_counts_from_the_first_failure_since_the_last_success() -> None:
    patience = RetryTimer(0.15)
    patience.failed(OSError("once"))
    patience.succeeded()
    patience.failed(OSError("again"))
    with pytest.raises(OSError, match="and again"):
        patience.failed(OSError("and again"))
