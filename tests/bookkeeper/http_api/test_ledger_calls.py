"""What is asked of ledgers."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import pytest

from bookkeeper.access import Resource, Right
from bookkeeper.client.operators import Operator
from bookkeeper.http_api.ledger_calls import ENTRIES_EACH, LedgerCalls
from bookkeeper.http_api.request import ApiRequest, JsonStream, RefusedRequestError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata, LedgerState
from bookkeeper.ledger.quorum import QuorumSpec
from tests.bookkeeper.http_api.served import Served, story

LIST = "/api/v1/ledger/list"


async def listed(served: Served, query: str) -> list[int]:
    reply = await served.ask("GET", f"{LIST}?{query}")
    assert reply.status == 200, reply
    return [int(name) for name in json.loads(reply.body)]


def test_pages_are_those_of_apaches_server_and_together_all_ledgers(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        spec = QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1)
        metadata = LedgerMetadata.create(spec, [BookieId(str(served.server.bookie_id))])
        ids = list(range(1000, 1230))
        for number in ids:
            await served.bk.metadata_store.ledgers.create(metadata, LedgerId(number))
        assert await listed(served, "") == ids
        pages = [await listed(served, f"print_metadata=true&page={page}") for page in (1, 2, 3, 4)]
        assert list(map(len, pages)) == [99, 100, 31, 0]
        assert list(chain(*pages)) == ids
        assert await listed(served, "print_metadata=true") == ids
        assert await listed(served, "print_metadata=true&page=0") == ids, "no page, as in Apache's server"

    story(tmp_path, work, auditor=False)


def test_metadata_that_cannot_be_read_stop_no_list(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        await served.furnish()
        ledgers, store = served.bk.metadata_store.ledgers, served.bk.metadata_store.store
        broken = LedgerId(int(served.names["open"]))
        await store.set(ledgers.path(broken), b"rubbish", None)
        for query in ("print_metadata=true&decode_meta=true", "print_metadata=true&page=1"):
            found = json.loads((await served.ask("GET", f"{LIST}?{query}")).body)
            assert len(found) == 3
            assert found[str(broken)].startswith("cannot be read: "), found
        refused = await served.ask("GET", "/api/v1/ledger/metadata?ledger_id={open}")
        assert refused.status == 500

    story(tmp_path, work, auditor=False)


def test_reading_fences_nobody_and_ends_at_the_last_entry_confirmed(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        await served.furnish()
        writer = await served.bk.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1)
        for number in range(3):
            await writer.append(b"%d\xff" % number)
        target = f"/api/v1/ledger/read?ledger_id={writer.id}"
        found = json.loads((await served.ask("GET", target)).body)
        assert list(found)[:2] == ["0", "1"], "the third may be known as confirmed, or not yet"
        assert found["0"] == "0\ufffd"
        await writer.append(b"3")
        await writer.close()
        assert list(json.loads((await served.ask("GET", f"{target}&start_entry_id=1&end_entry_id=2")).body)) == [
            "1",
            "2",
        ]
        page = json.loads((await served.ask("GET", f"{target}&page=1")).body)
        assert page.pop("Entries for page: ") == "1" and len(page) == 4
        assert json.loads((await served.ask("GET", f"{target}&page=2")).body) == {"Entries for page: ": "2"}
        for query in ("start_entry_id=-1", "end_entry_id=-2", "start_entry_id=0&end_entry_id=5&page=2"):
            assert (await served.ask("GET", f"{target}&{query}")).status == 500

    story(tmp_path, work, auditor=False)


def test_a_ledger_that_is_open_is_closed_before_it_is_deleted_and_can_come_back(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        await served.furnish()
        assert (await served.ask("DELETE", "/api/v1/ledger/delete?ledger_id={open}")).status == 200
        assert not await served.bk.exists(int(served.names["open"]))
        from bookkeeper import Operator

        back = await Operator(served.bk).undelete_ledger(int(served.names["open"]))
        assert back.state is LedgerState.CLOSED and back.last_entry == 2
        for number in ("-1", str(1 << 63)):
            assert (await served.ask("DELETE", f"/api/v1/ledger/delete?ledger_id={number}")).status == 500

    story(tmp_path, work, auditor=False)


@pytest.mark.rule("X15a")
def test_entries_end_when_the_right_to_read_them_is_gone(tmp_path: Path) -> None:
    asked: list[str] = []

    def require(request: ApiRequest, right: Right, on: Resource) -> None:
        assert right is Right.READ
        asked.append(request.caller)
        if len(asked) == 3:  # when it begins, and with entries 0 and 100
            raise RefusedRequestError("taken away", 403)

    async def work(served: Served) -> None:
        async with await served.bk.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1) as ledger:
            await ledger.append_many([b"entry"] * (ENTRIES_EACH + 50))
        calls = LedgerCalls(Operator(served.bk), require)
        stream = await calls.read(ApiRequest("GET", "/api/v1/ledger/read", {"ledger_id": str(ledger.id)}, caller="a"))
        assert isinstance(stream, JsonStream)
        with pytest.raises(RefusedRequestError, match="taken away"):
            async for _ in stream.chunks():
                pass

    story(tmp_path, work, auditor=False)
    assert asked == ["a"] * 3


@pytest.mark.rule("X12")
def test_whose_a_ledger_is_counts_as_on_bookies_also_in_the_middle(tmp_path: Path) -> None:
    """X12: not what the ledger's own metadata have named once."""
    asked: list[str] = []

    async def work(served: Served) -> None:
        owners = served.bk.metadata_store.ledger_owners
        calls = LedgerCalls(Operator(served.bk), lambda request, right, on: asked.append(f"{right} {on}"))

        async def read(ledger_id: LedgerId) -> list[bytes]:
            request = ApiRequest("GET", "/api/v1/ledger/read", {"ledger_id": str(ledger_id)}, caller="a")
            stream = await calls.read(request)
            assert isinstance(stream, JsonStream)
            await owners.hand_over([ledger_id], Resource.parse("ledgers:newest"))
            found = [chunk async for chunk in stream.chunks()]
            await calls.delete(ApiRequest("DELETE", "/api/v1/ledger/delete", {"ledger_id": str(ledger_id)}))
            assert not await served.bk.exists(ledger_id)
            return found

        for name in ("ledgers:named", None):
            async with await served.bk.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1, owner=name) as ledger:
                await ledger.append_many([b"entry"])
            if name is None:
                await owners.claim(LedgerId(ledger.id), Resource.parse("ledgers:claimed"))
            else:
                await owners.hand_over([LedgerId(ledger.id)], Resource.parse("ledgers:other"))
            await read(LedgerId(ledger.id))

    story(tmp_path, work, auditor=False)
    newest = ["read ledgers:newest", "delete ledgers:newest"]
    assert asked == ["read ledgers:other", *newest, "read ledgers:claimed", *newest]
