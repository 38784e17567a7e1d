from __future__ import annotations

from typing import Any

import pytest

from bookkeeper.client.arguments import LEDGER_ID_MAX, is_whole, ledger_number, require_bytes, require_whole
from bookkeeper.errors import BookKeeperError, ConfigError
from tests.bookkeeper.client.scripted import ScriptedCluster, written


def test_a_ledger_has_a_whole_number() -> None:
    assert [ledger_number(each) for each in (0, 7, LEDGER_ID_MAX)] == [0, 7, LEDGER_ID_MAX]
    for wrong in ("1", 1.0, None, True, -1, LEDGER_ID_MAX + 1):
        with pytest.raises(ConfigError, match=r"ledger_id must be a whole number from 0 to 2\*\*63 - 1, not"):
            ledger_number(wrong)


def test_what_is_of_another_type_is_named_and_a_secret_is_not_shown() -> None:
    assert is_whole(3)
    assert not is_whole(True)
    require_whole("ensemble", 3)
    require_bytes("password", b"x")
    with pytest.raises(ConfigError, match="ensemble must be a whole number, not '3'"):
        require_whole("ensemble", "3")
    with pytest.raises(ConfigError, match=r"^password must be bytes, not str$"):
        require_bytes("password", "planted")


@pytest.mark.parametrize(
    "call",
    [
        lambda bk: bk.create_ledger(ensemble="3"),
        lambda bk: bk.create_ledger(write_quorum=2.0),
        lambda bk: bk.create_ledger(ack_quorum=None),
        lambda bk: bk.create_ledger(ensemble=True, write_quorum=True, ack_quorum=True),
        lambda bk: bk.create_ledger(digest=7),
        lambda bk: bk.create_ledger(when_short=7),
        lambda bk: bk.create_ledger(password="text"),
        lambda bk: bk.create_ledger(ledger_id="1"),
        lambda bk: bk.open_ledger("1"),
        lambda bk: bk.open_ledger(-1),
        lambda bk: bk.open_ledger(0, "text"),
        lambda bk: bk.delete_ledger("1"),
        lambda bk: bk.metadata(1.5),
        lambda bk: bk.exists(None),
    ],
)
def test_an_argument_of_another_type_is_refused_by_name_before_anything_is_done(call: Any) -> None:
    """Cause: arguments were compared, hashed or packed first, and so ended in a TypeError of Python's own."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            with pytest.raises(ConfigError, match=r"must be|not"):
                await call(bk)
            assert [i async for i in bk.list_ledgers()] == []

    ScriptedCluster().run(story)


def test_entries_have_whole_numbers() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.open_ledger(await written(bk, 3)) as reader:
            wrong: list[tuple[Any, Any]] = [("0", 1), (0, "1"), (0.0, 1), (None, None)]
            for first, last in wrong:
                with pytest.raises(BookKeeperError, match="entry must be a whole number"):
                    _ = [each async for each in reader.read(first, last)]
            with pytest.raises(BookKeeperError, match="entry must be a whole number"):
                await reader.read_entry("0")  # type: ignore[arg-type]

    ScriptedCluster().run(story)
