"""What counts as whole."""

from __future__ import annotations

from pathlib import Path

from bookkeeper import BookKeeper
from examples.demo_heal.verdict import judge_ledgers
from examples.demo_heal.writers import PASSWORD, WrittenLedger, payload


async def test_a_missing_entry_a_wrong_one_and_a_lost_ledger_are_each_found(tmp_path: Path) -> None:
    async with BookKeeper.connect(f"embedded://{tmp_path}?bookies=3") as bk:
        ledgers: dict[int, WrittenLedger] = {}
        for _ in range(3):
            writer = await bk.create_ledger(ensemble=3, write_quorum=3, ack_quorum=2, password=PASSWORD)
            ids = await writer.append_many([payload(writer.id, entry, 100) for entry in range(10)])
            await writer.close()
            ledgers[writer.id] = WrittenLedger(100, set(ids), closed=True)
        first, second, third = ledgers
        found = await judge_ledgers(bk, ledgers)
        assert found.good and (found.ledgers, found.entries, found.problems) == (3, 30, [])

        ledgers[first].acknowledged.add(10)
        ledgers[second].size = 99
        await bk.delete_ledger(third)
        found = await judge_ledgers(bk, ledgers)
        assert not found.good
        assert found.unread[0].startswith(f"ledger {first}: 1 acknowledged")
        assert found.unread[1].startswith(f"ledger {second}: 10 acknowledged")
        assert found.unread[2].startswith(f"ledger {third} could not be read")
        assert found.incomplete[0].startswith(f"ledger {third} could not be checked")
