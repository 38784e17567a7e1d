"""Line charts with two logarithmic axes, as small SVG files. Pure: values in, text out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

WIDTH: Final = 760
HEIGHT: Final = 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 168, 48, 52
_FONT: Final = "font-family='Helvetica, Arial, sans-serif'"
_LABEL_GAP: Final = 15.0
"""Pixels between two labels at the ends of lines."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line; points with an interval (lowest, highest) get a whisker."""

    name: str
    colour: str
    points: Sequence[tuple[float, float, float, float]]
    """(x, y, lowest y, highest y), ascending in x."""
    dashed: bool = False


def line_chart(
    title: str,
    across: str,
    up: str,
    series: Sequence[Series],
    tell: Callable[[float], str],
) -> str:
    """The SVG text of a chart.

    Args:
        across, up: names of the axes.
        tell: how values of the upright axis are written.
    """
    xs = sorted({point[0] for line in series for point in line.points})
    ys = [value for line in series for point in line.points for value in point[1:]]
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)) + 1e-9)

    def x_of(value: float) -> float:
        span = math.log10(xs[-1]) - math.log10(xs[0]) or 1.0
        return _LEFT + (math.log10(value) - math.log10(xs[0])) / span * (WIDTH - _LEFT - _RIGHT)

    def y_of(value: float) -> float:
        return HEIGHT - _BOTTOM - (math.log10(value) - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)

    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}'>",
        f"<rect width='{WIDTH}' height='{HEIGHT}' fill='#ffffff'/>",
        _text(_LEFT, 24, title, size=16, weight="bold"),
        _text(_LEFT, 40, up, size=12, colour="#555"),
    ]
    for power in range(low, high + 1):
        y = y_of(10.0**power)
        parts.append(f"<path d='M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}' stroke='#ddd'/>")
        parts.append(_text(_LEFT - 8, y + 4, tell(10.0**power), anchor="end"))
    for value in xs:
        parts.append(f"<path d='M{x_of(value):.1f} {HEIGHT - _BOTTOM}v5' stroke='#555'/>")
        parts.append(_text(x_of(value), HEIGHT - _BOTTOM + 20, f"{value:,.0f}", anchor="middle"))
    parts.append(_text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 12, across, size=12, anchor="middle", colour="#555"))
    for line in series:
        parts += _drawn(line, x_of, y_of)
    parts += _labels(series, y_of)
    return "\n".join([*parts, "</svg>", ""])


def _drawn(line: Series, x_of: Callable[[float], float], y_of: Callable[[float], float]) -> list[str]:
    path = " ".join(f"{'L' if i else 'M'}{x_of(x):.1f} {y_of(y):.1f}" for i, (x, y, _, _) in enumerate(line.points))
    dash = " stroke-dasharray='6 4'" if line.dashed else ""
    parts = [f"<path d='{path}' fill='none' stroke='{line.colour}' stroke-width='2'{dash}/>"]
    for x, y, least, most in line.points:
        parts.append(
            f"<path d='M{x_of(x):.1f} {y_of(least):.1f}V{y_of(most):.1f}' stroke='{line.colour}' stroke-width='1'/>"
        )
        parts.append(f"<circle cx='{x_of(x):.1f}' cy='{y_of(y):.1f}' r='3' fill='{line.colour}'/>")
    return parts


def _labels(series: Sequence[Series], y_of: Callable[[float], float]) -> list[str]:
    """Names at the ends of the lines, moved apart where they would cover each other."""
    wanted = sorted((y_of(line.points[-1][1]), line.name, line.colour) for line in series if line.points)
    parts = []
    free = 0.0
    for y, name, colour in wanted:
        y = max(y, free)
        free = y + _LABEL_GAP
        parts.append(_text(WIDTH - _RIGHT + 10, y + 4, name, colour=colour))
    return parts


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 12,
    anchor: str = "start",
    colour: str = "#222",
    weight: str = "normal",
) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' {_FONT} font-size='{size}' font-weight='{weight}' "
        f"text-anchor='{anchor}' fill='{colour}'>{escape(text)}</text>"
    )
