"""Q6: where bookies stand, from a file or a script."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.real import location_sources
from bookkeeper.real.location_sources import FILE_MAX, HOSTS_MAX, from_file, from_script, host_of

NAMES = ("bk1:3181", "bk1:3182", "bk2:3181", "[::1]:3181", "uuid-1")


def _script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def test_a_file_names_bookies_or_hosts(tmp_path: Path) -> None:
    file = tmp_path / "racks"
    file.write_text("# ours\nbk1 /r1   # the host\nbk1:3182 /r2\n\nuuid-1 r3/\n::1 /east/r4\nbk9:1 /gone\n")
    assert from_file(str(file), NAMES) == {
        "bk1:3181": "/r1",
        "bk1:3182": "/r2",
        "[::1]:3181": "/east/r4",
        "uuid-1": "r3/",
    }


def test_a_file_that_is_exchanged_behind_links_is_read_anew(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"v{number}").mkdir()
        (tmp_path / f"v{number}" / "racks").write_text(f"bk1 /r{number}\n")
        os.utime(tmp_path / f"v{number}" / "racks", (1000 - number, 1000 - number))
    (tmp_path / "..data").symlink_to("v1")
    (tmp_path / "racks").symlink_to("..data/racks")
    assert from_file(str(tmp_path / "racks"), ["bk1:1"]) == {"bk1:1": "/r1"}
    (tmp_path / "..new").symlink_to("v2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert from_file(str(tmp_path / "racks"), ["bk1:1"]) == {"bk1:1": "/r2"}


def test_a_file_with_a_bad_line_is_refused_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / "racks"
    file.write_text("bk1 /r1\nbk2\n")
    with pytest.raises(ConfigError, match="racks, line 2: expected a bookie and its location"):
        from_file(str(file), NAMES)
    file.write_bytes(b"#" * (FILE_MAX + 1))
    with pytest.raises(ConfigError, match="too large"):
        from_file(str(file), NAMES)


def test_a_script_gets_hosts_and_prints_a_location_for_each(tmp_path: Path) -> None:
    script = _script(tmp_path / "script", 'for host; do echo "/rack-of-$host"; done')
    assert from_script(script, NAMES) == {name: f"/rack-of-{host_of(name)}" for name in NAMES}
    many = [f"host{number}:1" for number in range(HOSTS_MAX + 5)]
    assert from_script(script, many)["host104:1"] == "/rack-of-host104"


@pytest.mark.parametrize("text", ["echo /r1", "exit 3", 'for host; do echo /r; done; echo "/too many"', "kill -9 $$"])
def test_a_script_that_fails_or_prints_another_number_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="it must print one for each, and end with 0"):
        from_script(_script(tmp_path / "script", text), NAMES)


def test_nothing_of_a_name_is_read_by_a_shell(tmp_path: Path) -> None:
    script = _script(tmp_path / "script", 'for host; do echo "/r"; done')
    assert from_script(script, [f"x;touch {tmp_path}/made;:1"]) == {f"x;touch {tmp_path}/made;:1": "/r"}
    assert not (tmp_path / "made").exists()


def test_a_bookie_that_is_named_like_an_option_is_not_shown_to_the_script(tmp_path: Path) -> None:
    script = _script(tmp_path / "script", 'for host; do case $host in -*) touch "$0.made";; esac; echo "/r"; done')
    assert from_script(script, ["-rf:1", "bk1:1", "--help", "bk1:2"]) == {"bk1:1": "/r", "bk1:2": "/r"}
    assert from_script(script, ["--help"]) == {}
    assert not (tmp_path / "script.made").exists()


def test_a_script_gets_no_input(tmp_path: Path) -> None:
    inside, outside = os.pipe()
    kept = os.dup(0)
    try:
        os.write(outside, b"/of-the-program\n")
        os.dup2(inside, 0)
        with pytest.raises(ConfigError, match="printed 0 locations"):
            from_script(_script(tmp_path / "script", "head -n 1"), ["bk1:1"])
        assert os.read(inside, 100) == b"/of-the-program\n"
    finally:
        os.dup2(kept, 0)
        for descriptor in (inside, outside, kept):
            os.close(descriptor)


def test_a_script_that_prints_for_ever_ends(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="printed more than 1048576 bytes"):
        from_script(_script(tmp_path / "script", "yes"), ["bk1:1"])


def test_a_script_that_hangs_ends_with_what_it_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(location_sources, "SCRIPT_S", 0.5 * stretch())
    os.mkfifo(tmp_path / "held")
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    try:
        script = _script(tmp_path / "script", f"exec 3>{tmp_path}/held; sleep 1000 & wait")
        with pytest.raises(ConfigError, match="gave no locations within"):
            from_script(script, ["bk1:1"])
        os.set_blocking(held, True)
        assert os.read(held, 1) == b"", "the last of its processes has ended"
    finally:
        os.close(held)
