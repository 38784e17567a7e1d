"""The judge notices what differs between two places, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.spark_table.comparison import Left, batches, differences, without_place
from tests.spark_table.page import is_as_it_should_be, said, text
from tests.spark_table.scene import Mode
from tests.spark_table.trial import Outcome

HERE, THERE = "file:///tmp/places/m", "webhdfs://127.0.0.1:9870/m"
FIRST = "0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f"
OTHER = "ffffffff-0a1b-2c3d-4e5f-0a1b2c3d4e5f"


def left(base: str, unique: str, stamp: int) -> Left:
    files = {
        "checkpoint/metadata": f'{{"id":"{unique}"}}',
        "checkpoint/offsets/0": f'v1\n{{"batchWatermarkMs":5,"batchTimestampMs":{stamp}}}\n{{"logOffset":0}}',
        "checkpoint/offsets/1": f'v1\n{{"batchWatermarkMs":9,"batchTimestampMs":{stamp}}}\n{{"logOffset":1}}',
        "checkpoint/commits/0": 'v1\n{"nextBatchWatermarkMs":9}',
        "checkpoint/sources/0/0": f'v1\n{{"path":"{base}/in/0.json","timestamp":{stamp},"batchId":0}}',
        "checkpoint/state/0/0/1.delta": str(stamp),
        "checkpoint-1/commits/0": 'v1\n{"nextBatchWatermarkMs":9}',
        f"checkpoint/offsets/.2.{unique}.tmp": "half",
        "out/_spark_metadata/0": f'v1\n{{"path":"{base}/out/part-{unique}.parquet","size":7}}',
    }
    return Left({path: text.encode() for path, text in files.items()}, {"batch.0": [{"key": "a"}]}, ("", ""), 1)


LOCAL, GATEWAY = left(HERE, FIRST, 111), left(THERE, OTHER, 222)


def test_names_times_and_addresses_of_a_place_do_not_count() -> None:
    assert differences(LOCAL, GATEWAY, (HERE, THERE)) == []


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("checkpoint/offsets/1", b'v1\n{"batchWatermarkMs":9,"batchTimestampMs":222}\n{"logOffset":2}'),
        ("checkpoint/offsets/0", b'v1\n{"batchWatermarkMs":6,"batchTimestampMs":222}\n{"logOffset":0}'),
        ("checkpoint/commits/0", None),
        ("checkpoint-1/commits/0", None),
        ("checkpoint/sources/0/0", b"v1\n"),
        ("checkpoint/state/0/0/1.delta", None),
        ("checkpoint/state/0/0/2.delta", b""),
        ("out/_spark_metadata/0", b"v1\n"),
    ],
)
def test_a_log_or_a_file_of_state_that_differs_is_named(path: str, other: bytes | None) -> None:
    files = {**GATEWAY.files, path: other}
    changed = replace(GATEWAY, files={name: data for name, data in files.items() if data is not None})
    (found,) = differences(LOCAL, changed, (HERE, THERE))
    assert ("files of state" if "/state/" in path else path) in found


def test_rows_errors_and_the_batch_of_the_crash_count() -> None:
    for changed in (
        replace(GATEWAY, seen={"batch.0": [{"key": "b"}]}),
        replace(GATEWAY, seen={}),
        replace(GATEWAY, errors=("", "REFUSED")),
        replace(GATEWAY, crashed_in=0),
    ):
        assert len(differences(LOCAL, changed, (HERE, THERE))) == 1


def test_the_batches_of_a_log_are_its_numbers() -> None:
    assert (batches(LOCAL.files, "offsets"), batches(LOCAL.files, "commits")) == ([0, 1], [0])


def test_the_page_counts_what_is_equal_and_says_why_something_is_not() -> None:
    good = Outcome("m", 5, 2, "", (), 1.0)
    mode = Mode("m", lambda scene: None, {})
    refused = replace(good, error="NO_SUCH_THING", crashed_in=None)
    because = Mode("m", lambda scene: None, {}, reason="Spark has none.")
    assert said(because, refused) == "refused as with `file://`: `NO_SUCH_THING`. Spark has none."
    bad = replace(good, differences=("commits/1: a at file://, b at the gateway",))
    page = text([(mode, good), (because, refused), (mode, bad)], ["later"])
    assert "Of 3 modes 1 are equal, and 1 are refused by Spark at both places." in page
    assert "Not run: later." in page
    assert "**fails at both places**" in said(mode, refused) and not is_as_it_should_be(mode, refused)
    assert is_as_it_should_be(because, refused) and not is_as_it_should_be(mode, bad)
    assert "| m | 5; 2 | equal |" in page and "| m | 5; - |" in page
    assert "**differs**: commits/1: a at file://, b at the gateway" in page


def test_an_error_is_said_without_what_differs_in_every_run() -> None:
    said = f"Query [id = {FIRST}]: delete {{}}/checkpoint/offsets to start over"
    assert without_place(said.format(HERE.replace("///", "/")), HERE) == without_place(said.format(THERE), THERE)
    assert without_place(said.format(THERE), THERE) == "Query [id = UUID]: delete BASE/checkpoint/offsets to start over"
