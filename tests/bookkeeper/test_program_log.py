"""A server's log."""

from __future__ import annotations

import json
import logging
import sys

import click
import pytest
from click.testing import CliRunner

from bookkeeper.program_log import JsonLines, begin_log, log_option


def record(message: str, *words: object, **extra: object) -> logging.LogRecord:
    made = logging.getLogger("a.b").makeRecord("a.b", logging.WARNING, "f.py", 1, message, words, None, extra=extra)
    made.created = 1_700_000_000.1239
    return made


def test_a_record_is_one_line_with_its_parts() -> None:
    line = JsonLines().format(record("disk %s\nis full", "b1", ledger=7, place=("a", b"x")))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.123Z",
        "level": "warning",
        "logger": "a.b",
        "message": "disk b1\nis full",
        "fields": {"ledger": 7, "place": ["a", "b'x'"]},
    }


def test_an_error_brings_its_traceback_in_the_same_line() -> None:
    try:
        raise ValueError("wrong")
    except ValueError:
        made = record("it failed")
        made.exc_info = sys.exc_info()
    found = json.loads(JsonLines().format(made))
    assert found["error"].endswith("ValueError: wrong") and "fields" not in found


@pytest.mark.parametrize(
    ("words", "environment", "is_json"),
    [
        ([], {}, False),
        (["--log", "json"], {}, True),
        ([], {"BK_LOG": "json"}, True),
        (["--log", "text"], {"BK_LOG": "json"}, False),
    ],
)
def test_what_was_chosen_is_how_it_is_written(
    words: list[str], environment: dict[str, str], is_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)

    @click.command()
    @log_option
    def serve() -> None:
        begin_log(logging.WARNING)
        logging.getLogger("a").info("too little")
        logging.getLogger("a").warning("enough")

    done = CliRunner().invoke(serve, words, env={"BK_LOG": None, **environment})
    assert done.exit_code == 0, done.output
    (line,) = done.stderr.splitlines()
    assert line.endswith("WARNING a: enough") if not is_json else json.loads(line)["message"] == "enough"


def test_another_form_is_refused() -> None:
    @click.command()
    @log_option
    def serve() -> None:
        raise AssertionError("it was not refused")

    done = CliRunner().invoke(serve, ["--log", "xml"])
    assert done.exit_code == 2 and "'text', 'json'" in done.stderr
