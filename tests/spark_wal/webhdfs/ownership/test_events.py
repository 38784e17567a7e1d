from __future__ import annotations

import json

import pytest

from spark_wal.webhdfs.files.records import (
    DeletePath,
    MakeDirectories,
    NewFile,
    PutFile,
    RemoveNumbered,
    Rename,
    RenameMode,
    SetAttributes,
    SetQuota,
)
from spark_wal.webhdfs.files.tree_answers import ApplyResult
from spark_wal.webhdfs.ownership.events import (
    PENDING_MAX,
    TreeEvent,
    TreeEventFeed,
    common_directory,
    event_of,
    events_of,
)

FILE = NewFile((b"abc",), 0o644, "a", 1, 1, 5)


def test_each_record_is_an_event() -> None:
    events = [
        event_of(record, ApplyResult(length=3), 3)
        for record in (
            MakeDirectories("/a", 0o755, "a", 1),
            PutFile("/a", FILE, overwrite=False),
            Rename("/t", "/a", RenameMode.NONE, 1),
            DeletePath("/a", False, 1),
            SetAttributes("/a", owner="b"),
            SetQuota("/a", 1, 1),
        )
    ]
    assert [e.op for e in events] == ["mkdirs", "create", "rename", "delete", "attributes", "quota"]
    assert {e.path for e in events} == {"/a"}
    assert events[1].length == events[2].length == 3
    assert json.loads(events[2].line()) == {
        "op": "rename", "path": "/a", "source": "/t", "txid": 3, "at": 1, "length": 3,
    }  # fmt: skip


def test_a_rename_into_a_directory_tells_where_it_ended() -> None:
    assert event_of(Rename("/t", "/d", RenameMode.BARE, 1), ApplyResult(path="/d/t"), 1).path == "/d/t"


def test_files_that_go_in_one_step_are_an_event_each() -> None:
    applied = ApplyResult(removed=("/c/offsets/4", "/c/offsets/5"))
    events = events_of(RemoveNumbered("/c", (), 7), applied, 3)
    assert [(e.op, e.path, e.txid, e.at_ms) for e in events] == [
        ("delete", "/c/offsets/4", 3, 7),
        ("delete", "/c/offsets/5", 3, 7),
    ]
    assert [e.op for e in events_of(DeletePath("/a", False, 1), ApplyResult(), 4)] == ["delete"]


async def test_subscribers_get_what_comes_after_they_subscribed() -> None:
    feed = TreeEventFeed()
    feed.publish(TreeEvent("create", "/before", 1, 1))
    subscription = feed.subscribe()
    feed.publish(TreeEvent("create", "/after", 2, 1))
    feed.close()
    assert [event.path async for event in subscription] == ["/after"]


async def test_one_that_does_not_keep_up_is_let_go_and_knows_it() -> None:
    feed = TreeEventFeed()
    slow, quick = feed.subscribe(), feed.subscribe()
    for number in range(PENDING_MAX + 1):
        feed.publish(TreeEvent("create", f"/{number}", number, 1))
        await quick.next()
    assert feed.subscribers == 1
    assert len([event async for event in slow]) == PENDING_MAX
    quick.close()
    assert feed.subscribers == 0


def test_nobody_is_told_a_path_that_he_may_not_see() -> None:
    """Cause: a rename told both of its paths to whoever might see the new one."""
    mine = TreeEvent("create", "/a/f", 1, 2, length=3)
    into, out = TreeEvent("rename", "/a/f", 1, 2, "/b/g", 3), TreeEvent("rename", "/b/g", 1, 2, "/a/f", 3)
    theirs, within = TreeEvent("delete", "/b/g", 1, 2), TreeEvent("rename", "/a/f", 1, 2, "/a/e", 3)

    def sees(path: str) -> bool:
        return path.startswith("/a/")

    assert mine.seen_by(sees) == mine
    assert within.seen_by(sees) == within
    assert into.seen_by(sees) == TreeEvent("create", "/a/f", 1, 2, length=3)
    assert out.seen_by(sees) == TreeEvent("delete", "/a/f", 1, 2)
    assert theirs.seen_by(sees) is None
    assert into.seen_by(lambda path: path.startswith("/c/")) is None


@pytest.mark.parametrize(
    ("prefix", "directory"),
    [("", "/"), ("/", "/"), ("/a", "/"), ("/a/", "/a"), ("/a/b", "/a"), ("/a/b//", "/a/b"), ("a", "/")],
)
def test_a_prefix_is_of_paths_of_one_directory(prefix: str, directory: str) -> None:
    assert common_directory(prefix) == directory
