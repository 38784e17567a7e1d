from __future__ import annotations

import pytest

from spark_wal.webhdfs.config import GROWING
from spark_wal.webhdfs.growing_paths import GrowingPaths, problem_of


@pytest.mark.parametrize(
    ("path", "grows"),
    [
        ("/local-1.inprogress", True),
        ("/logs/deep/app_1.zstd.inprogress", True),
        ("/logs/app_1", False),
        ("/logs/app.inprogress/x", False),
        ("/logs/eventlog_v2_local-1/events_1_local-1", True),
        ("/eventlog_v2_x/appstatus_x.inprogress", True),
        ("/eventlog_v2_x/a/b", True),
        ("/eventlog_v2_x", False),
        ("/eventlog_v1_x/events", False),
        ("/ckpt/offsets/0", False),
        ("/a\nb/x.inprogress", True),
        ("/", False),
    ],
)
def test_sparks_event_logs_grow_and_its_checkpoints_do_not(path: str, grows: bool) -> None:
    assert GrowingPaths(GROWING).holds(path) is grows


@pytest.mark.parametrize(
    ("pattern", "path", "grows"),
    [
        ("/logs/*", "/logs/a", True),
        ("/logs/*", "/x/logs/a", False),
        ("/logs/*", "/logs/a/b", False),
        ("logs/*", "/x/logs/a", True),
        ("/a/**/z", "/a/z", True),
        ("/a/**/z", "/a/b/c/z", True),
        ("/a/**/z", "/a/b/zz", False),
        ("?.log", "/d/x.log", True),
        ("?.log", "/d/xy.log", False),
        ("[a].log", "/a.log", False),
        ("[a].log", "/[a].log", True),
        ("a.log", "/axlog", False),
        ("a.log", "/ba.log", False),
    ],
)
def test_a_pattern_is_made_of_names(pattern: str, path: str, grows: bool) -> None:
    assert problem_of(pattern) is None
    assert GrowingPaths([pattern]).holds(path) is grows


@pytest.mark.parametrize("pattern", ["", "/", "a//b", "a/", "a**", "**a/b", "**", "/**"])
def test_what_is_no_pattern_is_said(pattern: str) -> None:
    assert problem_of(pattern) is not None
