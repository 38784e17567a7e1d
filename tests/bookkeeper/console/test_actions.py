"""What pages may change: only if it is named, with a token in a header, and when it was said twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bookkeeper.access import CLUSTER, Grant, Mode, Policy, PolicyChange, Resource, Right, Subject
from bookkeeper.console.actions import ActionRequest
from bookkeeper.errors import NoSuchLedgerError
from bookkeeper.http_api.request import RefusedRequestError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.read_only import ReadOnlyOrders
from tests.bookkeeper.console.served import Served, audit_lines, ledger, story
from tests.bookkeeper.http_api.waiting import until

EVERY = ("all",)


async def order_of(served: Served, bookie: str) -> str | None:
    metadata = served.bk.metadata_store
    return await ReadOnlyOrders(metadata.store, metadata.paths).read(BookieId(bookie))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (None, "JSON object"),
        ("[]", "JSON object"),
        ("[" * 100_000, "JSON object"),
        ('{"target": "b1", "confirm": "b1", "more": 1}', "JSON object"),
        ('{"target": "b1"}', "typed to confirm"),
        ('{"target": "b1", "confirm": "b2"}', "typed to confirm"),
        ('{"target": "", "confirm": ""}', "no target"),
        ('{"target": 7, "confirm": 7}', "no target"),
        ('{"target": "b1", "confirm": "b1", "off": "yes"}', "neither empty nor 1"),
    ],
)
def test_a_request_that_does_not_say_twice_what_is_meant_is_refused(body: str | None, says: str) -> None:
    with pytest.raises(RefusedRequestError, match=says):
        ActionRequest.parse("drain", body, "me")


@pytest.mark.rule("X67")
def test_actions_are_off_unless_they_are_named_and_need_a_token_in_a_header(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        body = {"target": "b1", "confirm": "b1"}
        assert (await served.act("read-only", None, **body)).status == 401
        assert (await served.act("read-only", "wrong", **body)).status == 401
        refused = await served.act("read-only", served.viewer, **body)
        assert refused.status == 403 and "for reading only" in refused.body
        refused = await served.act("drain", served.token, **body)
        assert refused.status == 403 and "--actions drain" in refused.body
        assert (await served.act("reboot", served.token, **body)).status == 404
        assert (await served.act("read-only", served.token, target="b1", confirm="b2")).status == 400
        assert await order_of(served, "b1") is None
        headers = {"Authorization": f"Bearer {served.token}"}
        page = await served.shows("/bookies?of=b1", "Make it read-only", headers=headers)
        assert "Drain" not in page

    story(tmp_path, work, actions=("read-only",))


@pytest.mark.rule("X67")
def test_a_password_that_a_browser_sends_unasked_changes_nothing(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        from base64 import b64encode

        headers = {"Authorization": "Basic " + b64encode(f"me:{served.token}".encode()).decode()}
        assert (await served.ask("/", headers=headers)).status == 200
        body = '{"target": "b1", "confirm": "b1"}'
        assert (await served.ask("/actions/read-only", method="POST", headers=headers, body=body)).status == 401
        assert await order_of(served, "b1") is None

    story(tmp_path, work, actions=EVERY, bookies=())


@pytest.mark.rule("X67")
def test_a_console_without_tokens_changes_nothing(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        for token in (None, served.token):
            refused = await served.act("read-only", token, target="b1", confirm="b1")
            assert refused.status == 403 and "--actions read-only" in refused.body
        assert await order_of(served, "b1") is None

    story(tmp_path, work, bookies=())


def test_a_bookie_is_made_read_only_and_drained_and_all_of_it_is_noted(tmp_path: Path) -> None:
    async def act(served: Served, action: str, **more: Any) -> str:
        reply = await served.act(action, served.token, target="b1", confirm="b1", **more)
        return f"{reply.status} {reply.body}"

    async def work(served: Served) -> None:
        number = await ledger(served.bk)
        assert (await act(served, "drain")).startswith("409 Nothing was done: b1 is writable")
        assert "take no new entries" in await act(served, "read-only")
        assert "operator by the console test" in str(await order_of(served, "b1"))

        async def follows() -> bool:
            return "b1" in await served.bk.metadata_store.bookies.read_only()

        await until(follows)
        assert (await act(served, "drain")).startswith("200 b1 is being drained")
        assert "may take new entries" in await act(served, "read-only", off="1")
        assert await order_of(served, "b1") is None
        assert (await served.act("drain", served.token, target="b7", confirm="b7")).status == 404
        assert number >= 0

    story(tmp_path, work, actions=EVERY)
    noted = [(line["on"], line["allowed"]) for line in audit_lines(tmp_path) if line["what"] == "administer"]
    assert noted[:2] == [("drain b1", False), ("read-only b1", True)]
    assert ("read-only off b1", True) in noted and ("drain b7", False) in noted


@pytest.mark.rule("X12d", "X16")
def test_who_administers_needs_the_right_of_what_an_action_does_besides(tmp_path: Path) -> None:
    """Cause: with the right to administer alone one purged everybody's ledgers for ever."""

    async def work(served: Served) -> None:
        gone, alive, damaged = [await ledger(served.bk) for _ in range(3)]
        shop = Resource.parse("streams:shop")
        await served.bk.metadata_store.ledger_owners.hand_over([LedgerId(gone), LedgerId(alive)], shop)
        for each in (gone, damaged):
            await served.bk.delete_ledger(each, grace_s=1000)
        operator = Subject.parse("token:operator")

        async def enforce(*more: Right) -> None:
            rights = (Grant(operator, frozenset({Right.ADMINISTER}), CLUSTER), Grant(operator, frozenset(more), shop))
            await served.bk.metadata_store.access.change(
                lambda old: Policy(Mode.ENFORCE, rights, changes=old.changes), PolicyChange(0, "a test", "changed")
            )
            await served.console._admission._policy.read()

        async def act(action: str, target: object) -> int:
            return (await served.act(action, served.token, target=str(target), confirm=str(target))).status

        await enforce(Right.READ)
        for action, target in (("purge", gone), ("repair", alive), ("drain", "b1")):
            assert await act(action, target) == 403, action
        restorable = served.bk.metadata_store.ledgers.restorable
        assert await restorable.has(LedgerId(gone), fresh=True)
        await enforce(Right.DELETE, Right.REPAIR)
        assert await act("drain", "b1") == 403, "which is on the whole cluster"
        assert await act("repair", alive) == 200
        await served.bk.metadata_store.store.set(restorable.path(damaged), b"?", None)
        assert await act("purge", damaged) == 403, "nobody knows whose it was"
        assert await act("purge", gone) == 200 and not await restorable.has(LedgerId(gone), fresh=True)

    story(tmp_path, work, actions=EVERY)
    denied = [line["on"] for line in audit_lines(tmp_path) if line["what"] == "deny"]
    assert denied == ["purge 0", "repair 1", "drain b1", "drain b1", "purge 2"]


def test_a_ledger_is_repaired_in_the_background(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        number = await ledger(served.bk)
        marks = served.bk.metadata_store.under_replication
        await marks.mark(LedgerId(number), [BookieId("b1")], 1)
        text = str(number)
        reply = await served.act("repair", served.token, target=text, confirm=text)
        assert reply.status == 200 and f"Ledger {number} is being repaired" in reply.body

        async def repaired() -> bool:
            return await marks.read(LedgerId(number)) is None

        await until(repaired)
        missing = await served.act("repair", served.token, target="99", confirm="99")
        assert missing.status == 500 and "99" in missing.body
        assert (await served.act("repair", served.token, target="x", confirm="x")).status == 400

    story(tmp_path, work, actions=EVERY)
    assert {"repair 0", "end of repair of ledger 0"} <= {line["on"] for line in audit_lines(tmp_path)}


def test_only_a_deleted_ledger_can_be_purged(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        alive, gone = await ledger(served.bk), await ledger(served.bk)
        await served.bk.delete_ledger(gone, grace_s=1000)
        refused = await served.act("purge", served.token, target=str(alive), confirm=str(alive))
        assert refused.status == 404 and "Nothing was done" in refused.body
        assert (await served.bk.metadata(alive)).is_closed
        restorable = served.bk.metadata_store.ledgers.restorable
        headers = {"Authorization": f"Bearer {served.token}"}
        await served.shows("/deleted", f"/deleted?of={gone}", headers=headers)
        assert await restorable.has(LedgerId(gone), fresh=True)
        done = await served.act("purge", served.token, target=str(gone), confirm=str(gone))
        assert done.status == 200 and not await restorable.has(LedgerId(gone), fresh=True)
        with pytest.raises(NoSuchLedgerError):
            await served.bk.metadata(gone)
        await served.shows("/deleted", "No deleted ledger can be brought back", headers=headers)

    story(tmp_path, work, actions=EVERY, refresh_s=3600.0)  # only what an action does makes a page new
    assert [line["on"] for line in audit_lines(tmp_path) if line["what"] == "delete"] == ["purge 0", "purge 1"]
