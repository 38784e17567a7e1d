"""Whether a ledger holds what a task's message says; what becomes of a batch that lies is in test_publisher."""

from __future__ import annotations

from dataclasses import replace

import pytest

from segments.errors import StreamCorruptError
from segments.publish.staged_check import AT_ONCE, check_staged
from tests.segments.publish.cluster import Programs, story
from tests.segments.publish.test_publisher import staged


@story
async def test_of_many_ledgers_each_is_looked_at(programs: Programs) -> None:
    async with programs.stream() as stream:
        rows = await staged(stream, "s", *([b"%d" % at] for at in range(AT_ONCE + 2)))
        ledgers = [(each.ledger, "s") for each in rows if each.ledger is not None]
        assert len(ledgers) == AT_ONCE + 2
        await check_staged(stream.client, (stream.name, stream.id), ledgers)
        await check_staged(stream.client, (stream.name, stream.id), [])
        for at in (0, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1):
            ledger = ledgers[at][0]
            lie = replace(ledger, contents=replace(ledger.contents, records=2))
            with pytest.raises(StreamCorruptError, match=f"ledger {ledger.ledger_id} .*it has 1 record, and not 2"):
                await check_staged(
                    stream.client, (stream.name, stream.id), [*ledgers[:at], (lie, "s"), *ledgers[at + 1 :]]
                )
