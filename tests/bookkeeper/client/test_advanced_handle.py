"""Appending under ids that the caller chooses."""

from __future__ import annotations

import pytest

from bookkeeper.errors import IllegalOperationError
from tests.bookkeeper.client.scripted import ScriptedCluster


def test_appends_without_an_id_are_refused_and_say_what_to_use() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger(advanced=True) as ledger:
            for refused in (ledger.append, ledger.append_many):
                with pytest.raises(IllegalOperationError, match="append_at"):
                    await refused([b"x"])  # type: ignore[arg-type]
            with pytest.raises(IllegalOperationError, match="append_at"):
                ledger.append_nowait(b"x")

    ScriptedCluster().run(story)
