"""Rows that are printed as they come: for dumps that are longer than memory."""

from __future__ import annotations

from collections.abc import Mapping

import click

from bookkeeper.admin.shared.options import print_json
from bookkeeper.admin.shared.terminal import harmless


class StreamedTable:
    """A table with columns of fixed widths, or one JSON document on each line."""

    def __init__(self, as_json: bool, columns: Mapping[str, int]) -> None:
        """
        Args:
            columns: name -> width. Of the last one the width does not matter.
        """
        self._as_json, self._columns = as_json, columns
        if not as_json:
            self._line({name: name.replace("_", " ") for name in columns})

    def row(self, **values: object) -> None:
        """One row; keys that are no columns are in the JSON only."""
        if self._as_json:
            print_json(values)
        else:
            self._line(values)

    def damage(self, sentence: str, **values: object) -> None:
        """Something that cannot be read, in its place among the rows."""
        if self._as_json:
            print_json({"damaged": sentence, **values})
        else:
            click.echo(harmless(f"!! {sentence}"))

    def remark(self, sentence: str, **values: object) -> None:
        """Something about the rows that follow."""
        if self._as_json:
            print_json({"remark": sentence, **values})
        else:
            click.echo(harmless(f"-- {sentence}"))

    def _line(self, values: Mapping[str, object]) -> None:
        cells = [_cell(values.get(name)).rjust(width) for name, width in self._columns.items()]
        last = list(self._columns)[-1]
        click.echo("  ".join([*cells[:-1], _cell(values.get(last))]).rstrip())


def _cell(value: object) -> str:
    if value is None:
        return ""
    return harmless(" ".join(map(str, value)) if isinstance(value, list) else str(value), lines=False)
