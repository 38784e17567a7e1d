from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_wal.webhdfs.contents.upload_log import CutUpload
from tests.kills.harness import Trial
from tests.kills.verdict import Cause, Kill, Verdict, cause_of, read_kills, written_kills
from tests.spark_wal.streaming_job import expected

SEED = 20261122

STATE = CutUpload("CREATE", "/q/state/0/1/.5.delta.0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f.TID7.tmp", begun=True)
LOG = CutUpload("CREATE", "/q/offsets/.5.0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f.tmp", begun=True)
PROMISED = CutUpload("CREATE", LOG.path, begun=False)
RUNNER = "java.net.SocketException\n\tat org.apache.hadoop.hdfs.web.WebHdfsFileSystem$FsPathOutputStreamRunner$1.close"
STATE_FAILED = f"{RUNNER}\n\tat ...HDFSBackedStateStoreProvider$HDFSBackedStateStore.commit"
LOG_FAILED = f"{RUNNER}\n\tat ...HDFSMetadataLog.write"


@pytest.mark.parametrize(
    ("text", "open_then", "cause"),
    [
        (STATE_FAILED, [STATE], Cause.CUT),
        (LOG_FAILED, [LOG], Cause.CUT),
        (LOG_FAILED, [STATE, LOG], Cause.CUT),
        (LOG_FAILED, [PROMISED], Cause.CUT_BEFORE),
        (LOG_FAILED, [STATE], Cause.OTHER),
        (STATE_FAILED, [LOG], Cause.OTHER),
        (STATE_FAILED, [], Cause.OTHER),
        ("java.net.ConnectException: Connection refused", [STATE, LOG], Cause.OTHER),
        ("[RENAME_SRC_PATH_NOT_FOUND] Failed to rename as /q/offsets/.5 was not found", [LOG], Cause.LOST),
    ],
)
def test_a_death_is_excused_by_an_upload_of_its_own_that_was_open(
    text: str, open_then: list[CutUpload], cause: Cause
) -> None:
    assert cause_of(text, open_then) is cause


def sink(*batches: int, wrong: int | None = None) -> Verdict:
    verdict = Verdict()
    verdict.take_sink("q", [json.dumps({"batch": b, "rows": expected(b + (b == wrong))}) for b in batches])
    return verdict


def test_the_sink_is_compared_attempt_by_attempt() -> None:
    good = sink(0, 1, 2, 2, 3)
    assert (good.is_good, good.batches, good.repeated) == (True, 4, 1)
    assert not sink(0, 2).is_good, "one is missing"
    assert not sink(1).is_good, "the first is missing"
    assert not sink(0, 1, 0).is_good, "one comes back"
    assert not sink(0, 1, wrong=1).is_good


@pytest.mark.parametrize("cause", Cause)
def test_a_verdict_says_what_was_seen(cause: Cause) -> None:
    verdict = Verdict([Kill(1, "local[2]", 0.0, (LOG,), 1.5, None, cause, "the error")])
    assert verdict.is_good == (cause in (Cause.CUT, Cause.CUT_BEFORE))
    told = "\n".join(verdict.lines())
    assert f"deaths by {cause.value}: 1" in told
    assert ("the error" in told) != verdict.is_good
    assert "median 1.50 s" in told


def test_a_trial_goes_on_with_the_kills_that_were_done() -> None:
    kills = [
        Kill(1, "local[2]", 1.0, (LOG, STATE), 1.5, None, Cause.CUT, "the error"),
        Kill(2, "local[4]", 2.0, (), 1.0, 1.25),
    ]
    assert read_kills(written_kills(kills)) == kills


@pytest.mark.spark
@pytest.mark.integration
@pytest.mark.timeout(600)
@pytest.mark.rule("S1", "S2", "S3", "S4")
def test_a_gateway_that_is_killed_ten_times_ends_no_query_but_by_an_upload_that_it_cut(tmp_path: Path) -> None:
    """Acknowledged temporary files died with the gateway: of 69 kills four ended the query with
    RENAME_SRC_PATH_NOT_FOUND, since the rename came to a gateway that had never heard of the file."""
    pytest.importorskip("pyspark")
    pytest.importorskip("bookkeeper.launchers.java")
    print(f"seed {SEED}")
    verdict = Trial(tmp_path, SEED, tell=print).run(10, ["local[2]", "local[4]"])
    told = "\n".join(verdict.lines())
    print(told)
    assert verdict.is_good, told
    assert len(verdict.kills) == 10
    assert verdict.batches > 10


@pytest.mark.spark
@pytest.mark.integration
@pytest.mark.timeout(600)
@pytest.mark.rule("S2", "S3", "S12")
def test_the_active_one_of_a_pair_is_killed_four_times_and_the_other_takes_over(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    pytest.importorskip("bookkeeper.launchers.java")
    verdict = Trial(tmp_path, SEED, tell=print, pair=True).run(4, ["local[2]"])
    told = "\n".join(verdict.lines())
    assert verdict.is_good, told
    assert len(verdict.kills) == 4
