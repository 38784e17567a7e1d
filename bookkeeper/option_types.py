"""Numbers on a command line. What is no such number is answered with what may be given."""

from __future__ import annotations

import math
from typing import Any

import click


class WholeNumber(click.IntRange):
    """A whole number within bounds."""

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number", param, ctx)
        if (allowed := _allowed(self, number)) is not None:
            self.fail(f"it must be {allowed}, not {number}", param, ctx)
        return number


class Number(click.FloatRange):
    """A number within bounds; neither infinite nor "not a number", which every comparison lets pass."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        if (allowed := _allowed(self, number)) is not None:
            self.fail(f"it must be {allowed}, not {number:.15g}", param, ctx)
        return number


class AnyWholeNumber(click.ParamType):  # type: ignore[type-arg]  # older versions of the library have no arguments
    """A whole number without bounds. As a range the help would show the bounds that it does not have."""

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return WholeNumber().convert(value, param, ctx)


class AnyNumber(click.ParamType):  # type: ignore[type-arg]  # older versions of the library have no arguments
    """A number without bounds; neither infinite nor "not a number"."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        return Number().convert(value, param, ctx)


def _allowed(kind: WholeNumber | Number, number: float) -> str | None:
    """What may be given; None if ``number`` may."""
    fits, said = True, []
    if kind.min is not None:
        fits = number > kind.min if kind.min_open else number >= kind.min
        said.append(f"{'more than' if kind.min_open else 'at least'} {kind.min}")
    if kind.max is not None:
        fits = fits and (number < kind.max if kind.max_open else number <= kind.max)
        said.append(f"{'less than' if kind.max_open else 'at most'} {kind.max}")
    return None if fits else " and ".join(said)
