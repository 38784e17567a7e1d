"""A committer may die, or lose a reply, at any step: the batch is there once, whatever rows it has the second time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from bookkeeper.meta.store import Check
from segments.chain import StreamSegment
from segments.publish import publisher
from segments.publish.batch_key import NewBatch
from segments.retention import stagings
from tests.segments.publish.stories import LEASE_S, Hook, Story, dies_at, loses_reply


@pytest.fixture(autouse=True)
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stagings, "LEASE_MS", LEASE_S * 1000)


def hooks(step: int) -> list[tuple[str, Hook]]:
    return [
        (f"dies before write {step}", dies_at(step, False)),
        (f"dies after write {step}", dies_at(step, True)),
        (f"gets no reply to write {step}", loses_reply(step)),
    ]


@pytest.mark.rule("S14", "C1", "C9")
@pytest.mark.parametrize(
    ("large", "opened", "ahead"),
    [(True, True, False), (True, False, False), (False, True, False), (False, False, False), (False, False, True)],
)
def test_a_committer_dies_at_any_step_and_the_batch_is_there_once(large: bool, opened: bool, ahead: bool) -> None:
    found: list[str] = []
    for step in itertools.count():
        stories = []
        for name, hook in hooks(step):
            stories.append(story := Story(large=large, opened=opened, ahead=ahead))
            found += [f"{name}: {problem}" for problem in story.run(hook)]
        if all(story.ended and story.steps <= step for story in stories):
            break
    assert not found
    assert step > 8


@pytest.mark.rule("S14")
@pytest.mark.parametrize(("large", "ahead"), [(True, False), (False, False), (False, True)])
@pytest.mark.parametrize("kind", ["overtaken_at", "cleaned_at"])
def test_whoever_comes_between_two_steps_the_batch_is_there_once(kind: str, large: bool, ahead: bool) -> None:
    found: list[str] = []
    for step in itertools.count():
        story = Story(large=large, ahead=ahead)
        found += [f"{kind} {step}: {problem}" for problem in story.run(getattr(story, kind)(step))]
        if story.steps <= step:
            break
    assert not found
    assert step > 8


def _problems(large: bool = True) -> Iterator[str]:
    """What is found one after the other: whoever has seen enough lives through no further story."""
    return (problem for step in (99, 6) for _, hook in hooks(step) for problem in Story(large=large).run(hook))


def test_a_batch_whose_key_is_ignored_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "judge_batch", lambda key, known, stream, attempt: NewBatch(key.batch, 0))
    assert any("was published again" in problem for problem in _problems())


def test_a_base_that_is_forgotten_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamSegment, "base", property(lambda self: 0))
    assert any(_problems())


def test_a_batch_that_is_published_although_it_was_given_up_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step does not depend on the staging: a cleaner deletes its ledgers, and they are published all the same."""
    monkeypatch.setattr(stagings.Stagings, "end", lambda self, staging, ledgers: [Check(self._parent, None)])
    for step in itertools.count():
        story = Story(large=True)
        if story.run(story.cleaned_at(step)):
            return
        assert story.steps > step, "it was not noticed"
