"""Running ``bk`` inside the test's process: what a user would see, without the start of an interpreter."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from unittest import mock

from click.testing import CliRunner

from bookkeeper.admin.cli import main


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Its output as JSON."""
        assert self.status == 0, self.err
        return json.loads(self.out)

    def refused(self, *words: str, status: int = 1) -> None:
        """It ended with one sentence that has all of ``words``: no traceback, nothing on standard output."""
        assert self.status == status, (self.status, self.out, self.err)
        assert "Traceback" not in self.err
        beside = ("writing to ledger ", "bk: others on this machine can read --password")
        said = [line for line in self.err.splitlines() if line and not line.startswith(beside)]
        assert len(said) == (1 if status == 1 else 3), self.err
        assert said[-1].startswith("bk: "), self.err
        for word in words:
            assert word in said[-1], self.err


def bk(*words: object, stdin: bytes = b"", environment: Mapping[str, str] | None = None) -> Said:
    """``bk WORDS``; BK_METADATA and BK_PASSWORD are not inherited."""
    variables: dict[str, str | None] = {"BK_METADATA": None, "BK_PASSWORD": None, "BK_TRACEBACK": None}
    runner = CliRunner()
    with (
        runner.isolation(input=stdin, env={**variables, **(environment or {})}) as (out, err, _),
        mock.patch("sys.argv", ["bk", *map(str, words)]),
    ):
        status = 0
        try:
            main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
        return Said(status, out.getvalue().decode(), err.getvalue().decode())


class Terminal(io.StringIO):
    """In place of standard error: what a progress bar takes for a terminal."""

    def isatty(self) -> bool:
        return True
