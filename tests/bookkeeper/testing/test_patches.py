"""What was replaced is put back, whatever happens meanwhile."""

from __future__ import annotations

import pytest

from bookkeeper.testing.patches import patches, replaced


class Base:
    def speak(self) -> str:
        return "base"


class Child(Base):
    @staticmethod
    def name() -> str:
        return "child"


def test_what_was_replaced_comes_back_and_what_was_inherited_is_inherited_again() -> None:
    before = dict(vars(Child))
    with replaced({(Child, "speak"): lambda self: "patched", (Child, "name"): staticmethod(lambda: "nobody")}):
        assert (Child().speak(), Child().name()) == ("patched", "nobody")
    assert (Child().speak(), Child().name()) == ("base", "child")
    assert dict(vars(Child)) == before


def test_one_place_replaced_twice_has_its_first_content_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="meanwhile"), patches() as patch:
        patch(Base, "speak", lambda self: "one")
        patch(Base, "speak", lambda self: "two")
        assert Base().speak() == "two"
        raise ValueError("meanwhile")
    assert Base().speak() == "base"
