"""Random walks through a world: one seed is one world, and the same seed is the same walk.

Hypothesis finds short stories and shrinks them; walks find the long ones (a lost acknowledgement takes a dozen events
in the right order). Each walk has a character of its own: how much is lost, whether the writer's messages are slow,
how many recover, whether there are spares.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from bookkeeper.ledger.quorum import QuorumSpec
from tests.bookkeeper.ledger.world import NEVER_MS, World, WriterShell

SHAPES = [(3, 3, 2), (3, 3, 2), (3, 2, 2), (4, 3, 2), (1, 1, 1), (3, 3, 3), (5, 3, 2), (3, 2, 1), (5, 5, 3)]


@dataclass(frozen=True)
class Character:
    """What kind of world this is."""

    faults: float
    slow_writer: float
    """How often the writer's own messages are passed over."""
    recoveries: int
    adds_max: int

    @classmethod
    def draw(cls, dice: random.Random) -> Character:
        return cls(
            dice.choice([0.0, 0.02, 0.08, 0.15]),
            dice.choice([0.0, 0.0, 0.8, 0.95]),
            dice.choice([0, 1, 1, 2, 3]),
            dice.choice([1, 2, 5]),
        )


def spec_of(shape: tuple[int, int, int]) -> QuorumSpec:
    return QuorumSpec(ensemble_size=shape[0], write_quorum=shape[1], ack_quorum=shape[2])


def walk(seed: int, steps: int = 160) -> World:
    """One world, from birth to the end of all faults. Raises AssertionError with the story if a promise breaks."""
    dice = random.Random(seed)
    world = World(
        spec_of(dice.choice(SHAPES)),
        spares=dice.choice([0, 0, 1, 2]),
        add_timeout_ms=dice.choice([8_000, NEVER_MS]),
    )
    character = Character.draw(dice)
    try:
        for _ in range(steps):
            _step(world, character, dice)
        world.settle()
        alive = [s for s in world.recoveries if s.alive]
        assert not alive or world.stored.is_closed or any(s.error for s in alive), "V2: recovered, and not closed"
    except Exception as error:
        error.add_note(f"seed {seed}\n{world!r}")
        raise
    return world


def _step(world: World, character: Character, dice: random.Random) -> None:
    chance = dice.random()
    if chance < character.faults:
        _fault(world, dice)
    elif chance < 0.25:
        if len(world.writer.sizes) < character.adds_max * 12:
            world.writer.add(dice.randint(1, character.adds_max))
    elif chance < 0.30:
        world.look(dice.randrange(99))
    elif chance < 0.33:
        world.tick(0.2)
    elif chance < 0.345:
        if len(world.recoveries) < character.recoveries:
            world.recover()
    elif chance < 0.346:
        world.writer.close()
    elif chance < 0.45 and world.effects:
        world.store_step(dice.randrange(99))
    elif chance < 0.5 and world.writer.lost and world.writer.alive:
        world.writer.bookie_returns(dice.randrange(99))
    else:
        _deliver(world, character, dice)


def _deliver(world: World, character: Character, dice: random.Random) -> None:
    """Any message, with a preference: a slow writer's are passed over."""
    for _ in range(4):
        if not world.messages:
            return
        index = dice.randrange(len(world.messages))
        if not isinstance(world.messages[index].client, WriterShell) or dice.random() >= character.slow_writer:
            world.deliver(index)
            return


def _fault(world: World, dice: random.Random) -> None:
    chance = dice.random()
    if chance < 0.6:
        if world.messages:
            world.lose(dice.randrange(len(world.messages)))
    elif chance < 0.85:
        world.flip(dice.randrange(99))
    elif chance < 0.88:
        world.writer.alive = False
    elif chance < 0.9:
        if world.recoveries:
            dice.choice(world.recoveries).alive = False
    else:
        world.tick(dice.choice([0.1, 0.5, 3.0]))
