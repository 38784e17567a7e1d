"""What a bookie on empty storage finds out and remembers."""

from __future__ import annotations

import pytest

from bookkeeper.bookie.birth import BIRTH, READS, Birth, read_birth, survey, write_birth
from bookkeeper.errors import CookieError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.testing import World
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster, run
from tests.bookkeeper.bookie.test_limbo import OTHERS, named


def test_what_was_seen_survives_a_crash_and_damage_is_said() -> None:
    with World(1) as world:
        disk = world.node("b").disk
        disk.make_directories("/data")
        assert read_birth(disk, "/data") is None
        birth = Birth(LedgerId(9), frozenset({LedgerId(3), LedgerId(1)}))
        write_birth(disk, "/data", birth)
        disk.crash(keep=0.0)
        disk.process_died()
        assert read_birth(disk, "/data") == birth
        disk.open(f"/data/{BIRTH}").pwrite(b"??", 0)
        with pytest.raises(CookieError, match="is damaged"):
            read_birth(disk, "/data")


def test_a_later_loss_only_ever_covers_more() -> None:
    birth = Birth(LedgerId(9), frozenset({LedgerId(3)}))
    assert birth.with_highest(LedgerId(4)) == birth
    assert birth.with_highest(LedgerId(12)) == Birth(LedgerId(12), birth.suspects)


@pytest.mark.rule("W10a", "B9")
def test_a_survey_sees_every_ledger_and_suspects_those_that_name_the_bookie_or_cannot_be_read() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        assert await survey(metadata, BOOKIE) == Birth()
        made = [(await metadata.ledgers.create(named(*OTHERS)))[0] for _ in range(READS + 5)]
        assert await survey(metadata, BOOKIE) == Birth(made[-1])
        mine = [(await metadata.ledgers.create(named(BOOKIE)))[0] for _ in range(3)]
        path = metadata.ledgers.path(made[7])
        await metadata.store.set(path, b"no metadata at all", (await metadata.store.get(path)).version)
        await metadata.ledgers.delete(mine[1])
        assert await survey(metadata, BOOKIE) == Birth(mine[2], frozenset({made[7], mine[0], mine[2]}))
        assert (await survey(metadata, BookieId("nobody:1"))).suspects == {made[7]}

    run(main)
