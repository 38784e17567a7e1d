"""The second step of a removal: ledgers on the list are deleted and forgotten, or stay on it."""

from __future__ import annotations

import pytest

from bookkeeper import BookKeeper
from bookkeeper.errors import MetadataUnavailableError
from segments.retention.chain_steps import change_chain
from segments.retention.removal import finish_removals
from tests.segments.retention.chains import at
from tests.segments.retention.streams import ledgers_of, make_stream, run


def test_what_is_listed_is_deleted_and_forgotten() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        chain = await change_chain(record, lambda chain: chain.truncate(at(3)).remove(2))
        listed = {each.ledger_id for each in chain.removing}
        kept = await ledgers_of(client) - listed
        assert set(await finish_removals(client, record)) == listed and len(listed) == 2
        assert await ledgers_of(client) == kept
        assert (await record.read())[0].removing == ()
        assert await finish_removals(client, record) == ()

    run(story)


def test_a_crash_between_the_steps_is_finished_by_the_next() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        chain = await change_chain(record, lambda chain: chain.truncate(at(3)).remove(2))
        await client.delete_ledger(chain.removing[0].ledger_id)
        assert len(await finish_removals(client, record)) == 2
        assert (await record.read())[0].removing == ()

    run(story)


def test_a_ledger_that_cannot_be_deleted_stays_on_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        chain = await change_chain(record, lambda chain: chain.truncate(at(3)).remove(2))
        stuck, other = (each.ledger_id for each in chain.removing)
        really = client.delete_ledger

        async def delete(ledger_id: int) -> None:
            if ledger_id == stuck:
                raise MetadataUnavailableError("not now")
            await really(ledger_id)

        monkeypatch.setattr(client, "delete_ledger", delete)
        assert await finish_removals(client, record) == (other,)
        assert [each.ledger_id for each in (await record.read())[0].removing] == [stuck]

    run(story)
