"""What it shows is tested with each of its pictures; here is what they share."""

from __future__ import annotations

import io

from rich.console import Console, Group

from examples.story_view import StoryPicture, StoryView


class Plain(StoryView[StoryPicture]):
    def draw(self) -> Group:
        return Group(self.story())

    def summary(self) -> str:
        return "all in all"


def test_on_a_terminal_the_story_is_printed_at_the_end() -> None:
    out = io.StringIO()
    with Plain(StoryPicture(), Console(file=out, force_terminal=True, width=80)) as view:
        view.happened("one")
        view.waits("two")
        assert str(view.story()).splitlines()[1].strip() == "waiting: two ..."
    assert "s  one" in out.getvalue()
    assert out.getvalue().rstrip().endswith("all in all")
