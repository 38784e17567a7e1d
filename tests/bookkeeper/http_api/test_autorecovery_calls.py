"""What is asked of autorecovery, and bookies that are emptied in the background."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.read_only import ReadOnlyOrders
from bookkeeper.meta.records.under_replication import mark_path
from tests.bookkeeper.http_api.served import Served, audit_lines, story
from tests.bookkeeper.http_api.waiting import until

AT = "/api/v1/autorecovery"


async def on_the_other(served: Served) -> LedgerId:
    """A closed ledger whose only copy is on the other bookie, which takes no more entries."""
    await served.furnish()
    metadata = served.bk.metadata_store
    orders = ReadOnlyOrders(metadata.store, metadata.paths)
    bookie, other = served.server.bookie_id, served.other.bookie_id
    await orders.give(bookie, "a test")
    await until(lambda: _writable(served, [other]))
    async with await served.bk.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1) as writer:
        await writer.append(b"payload")
    await orders.give(other, "a test")
    await orders.take_back(bookie)
    await until(lambda: _writable(served, [bookie]))
    for name in ("closed", "open", "doomed"):  # these are on both, and could not move
        await served.bk.delete_ledger(int(served.names[name]), grace_s=0)
    return LedgerId(writer.id)


async def _writable(served: Served, names: list[BookieId]) -> bool:
    known = await served.bk.metadata_store.bookies.writable()
    return known == names == list(served.bk.services.watcher.writable)


async def _moved(served: Served, ledger_id: LedgerId) -> bool:
    return (await served.bk.metadata(ledger_id)).bookies == {served.server.bookie_id}


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("bookie", {"bookie_src": ["{other}"], "bookie_dest": ["{bookie}"]}),
        ("decommission", {"bookie_src": "{other}"}),
    ],
)
def test_the_ledgers_of_a_bookie_move_and_its_end_is_noted(route: str, body: dict[str, object], tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        ledger_id = await on_the_other(served)
        text = json.dumps(body).replace("{other}", served.names["other"]).replace("{bookie}", served.names["bookie"])
        assert (await served.ask("PUT", f"{AT}/{route}", text)).status == 200
        await until(lambda: _moved(served, ledger_id))

        async def ended() -> bool:
            return not served.api._api._background.running

        await until(ended)
        assert served.other.bookie_id in await served.bk.metadata_store.bookies.known(), "it is not forgotten unasked"

    story(tmp_path, work, auditor=False)
    last = audit_lines(tmp_path)[-1]
    assert last["on"].startswith("end of ") and last["allowed"] and last["who"] == "operator"


def test_a_bookie_that_is_decommissioned_with_its_cookie_is_named_until_it_stops(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        ledger_id = await on_the_other(served)
        body = json.dumps({"bookie_src": served.names["other"], "delete_cookie": "true"})
        assert (await served.ask("PUT", f"{AT}/decommission", body)).status == 200
        await until(lambda: _moved(served, ledger_id))
        await served.other.stop()

        async def forgotten() -> bool:
            return served.other.bookie_id not in await served.bk.metadata_store.bookies.known()

        await until(forgotten)

    story(tmp_path, work, auditor=False)


def test_a_damaged_mark_stops_no_list_of_marks(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        await served.furnish()
        marks, store = served.bk.metadata_store.under_replication, served.bk.metadata_store.store
        names = {name: LedgerId(int(served.names[name])) for name in ("closed", "open", "doomed")}
        other = BookieId(served.names["other"])
        for ledger_id in names.values():
            await marks.mark(ledger_id, [other], 1)
        await store.set(mark_path(served.bk.metadata_store.paths.root, names["open"]), b"rubbish {", None)
        target = f"{AT}/list_under_replicated_ledger"

        async def told(query: str) -> object:
            return json.loads((await served.ask("GET", f"{target}?{query}")).body)

        assert await told("") == sorted(names.values())
        whole = {str(names["closed"]): [other], str(names["open"]): [], str(names["doomed"]): [other]}
        assert await told("printmissingreplica=1") == whole
        assert await told("missingreplica={other}") == [names["closed"], names["doomed"]]
        assert await told("excludingmissingreplica={other}") == [names["open"]]
        assert await told("missingreplica={other}&excludingmissingreplica={bookie}") == [
            names["closed"],
            names["doomed"],
        ]

    story(tmp_path, work, auditor=False)


def test_what_cannot_be_begun_is_said_at_once(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        await served.furnish()
        for body in ('{"bookie_src": ["b9"]}', '{"bookie_src": "b9"}', '{"bookie_src": ["b9"], "delete_cookie": 1}'):
            refused = await served.ask("PUT", f"{AT}/bookie", body)
            assert refused.status == 404 and refused.body.startswith("ERROR parameters: "), refused
        for body in ('{"bookie_src": "b9"}', '{"bookie_src": ["b9"]}'):
            refused = await served.ask("PUT", f"{AT}/decommission", body)
            assert refused.status == 404 and refused.body.startswith("Exception when send decommission command."), (
                refused
            )
        assert not served.api._api._background.running
        assert (await served.ask("PUT", f"{AT}/status?enabled=maybe")).status == 400
        for seconds in ("-1", "true", "1.5", "1e99"):
            assert (
                await served.ask("PUT", f"{AT}/lost_bookie_recovery_delay", f'{{"delay_seconds": {seconds}}}')
            ).status == 500
        assert (await served.ask("GET", f"{AT}/lost_bookie_recovery_delay")).status == 404, "nobody has set it"
        assert (await served.ask("GET", f"{AT}/who_is_auditor")).status == 404
        assert (await served.ask("PUT", f"{AT}/trigger_audit")).status == 404

    story(tmp_path, work, auditor=False)
