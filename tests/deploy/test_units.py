"""The units for systemd: what they start exists, they allow no more than is needed, and systemd takes them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.architecture.test_documented_commands import wrong
from tests.boards.deployed import ROOT

UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
TIMERS = sorted((ROOT / "deploy/systemd").glob("*.timer"))
SERVERS = [path for path in UNITS if not path.with_suffix(".timer").exists()]
"""The units that serve; the others do something now and then."""
PROGRAM = "/opt/bookkeeper/bin/bk"
EXPOSURE_MAX = "20"
"""Of 100, by systemd's own measure of what a unit may do to its machine."""


class Unit(ConfigParser):
    """A unit's settings. A setting that is there twice is a mistake here."""

    def __init__(self, path: Path) -> None:
        super().__init__(delimiters=("=",), comment_prefixes=("#",), interpolation=None, strict=True)
        self.optionxform = str  # type: ignore[assignment,method-assign]  # names of settings have capitals
        self.read(path)

    @property
    def service(self) -> dict[str, str]:
        return dict(self["Service"])


def test_there_is_a_unit_for_each_kind_of_server_and_for_backups() -> None:
    assert [path.stem for path in UNITS] == [
        "bookie",
        "bookkeeper-autorecovery",
        "bookkeeper-backup",
        "bookkeeper-standalone",
        "bookkeeper-streams",
        "bookkeeper-webhdfs",
    ]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_what_a_unit_starts_is_a_command_of_ours_with_options_that_it_has(path: Path) -> None:
    program, *words = shlex.split(Unit(path).service["ExecStart"])
    assert program == PROGRAM and any(word.startswith("--") for word in words)
    assert wrong(" ".join(["bk", *words])) is None


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
@pytest.mark.rule("X44")
def test_every_unit_has_a_user_of_its_own_and_no_more_than_it_needs(path: Path) -> None:
    service = Unit(path).service
    assert service["User"] == service["Group"] == service["StateDirectory"] not in ("", "root")
    assert service["NoNewPrivileges"] == "yes" and service["CapabilityBoundingSet"] == ""
    assert (service["ProtectSystem"], service["UMask"], service["LimitCORE"]) == ("strict", "0077", "0")
    if path in SERVERS:
        assert service["Restart"] == "on-failure" and int(service["TimeoutStopSec"]) >= 60


@pytest.mark.parametrize("path", SERVERS, ids=lambda path: path.stem)
def test_every_unit_waits_until_its_server_says_that_it_serves(path: Path) -> None:
    service = Unit(path).service
    assert (service["Type"], service["NotifyAccess"]) == ("notify", "main")
    assert ("WatchdogSec" in service) == (path.stem != "bookkeeper-standalone"), "whose servers are its children"


def test_a_timer_starts_backups_every_hour_also_those_that_were_missed() -> None:
    assert [path.stem for path in TIMERS] == ["bookkeeper-backup"]
    timer = Unit(TIMERS[0])["Timer"]
    assert (timer["OnCalendar"], timer["Persistent"]) == ("hourly", "true")
    service = Unit(TIMERS[0].with_suffix(".service")).service
    assert service["Type"] == "oneshot" and "Restart" not in service and "TimeoutStartSec" in service
    words = shlex.split(service["ExecStart"])[1:]
    assert words[:3] == ["metadata", "backup", f"/var/lib/{service['StateDirectory']}"], "nothing else can be written"
    assert "--keep" in words, "they do not fill the disk"


def test_users_are_different() -> None:
    users = [Unit(path).service["User"] for path in UNITS]
    assert len(set(users)) == len(users)


@pytest.fixture(scope="module")
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("systemd-analyze is not here: it is part of systemd")
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The units with a program that exists."""
    place = tmp_path_factory.mktemp("units")
    for path in (*UNITS, *TIMERS):
        (place / path.name).write_text(path.read_text().replace(PROGRAM, sys.executable))
    return [str(place / path.name) for path in UNITS]


def test_systemd_takes_them(analyze: str, installed: list[str]) -> None:
    timers = [str(Path(installed[0]).parent / path.name) for path in TIMERS]
    done = subprocess.run([analyze, "verify", *installed, *timers], capture_output=True, text=True, check=False)
    names = [path.name for path in (*UNITS, *TIMERS)]
    told = [line for line in (done.stdout + done.stderr).splitlines() if any(name in line for name in names)]
    assert (done.returncode, told) == (0, [])


def test_systemd_finds_them_well_protected(analyze: str, installed: list[str]) -> None:
    for unit in installed:
        arguments = ["security", "--offline=yes", f"--threshold={EXPOSURE_MAX}", unit]
        done = subprocess.run([analyze, *arguments], capture_output=True, text=True, check=False)
        if "unrecognized option" in done.stderr:
            pytest.skip("this systemd-analyze judges no files: 250 or newer does")
        assert done.returncode == 0, done.stdout + done.stderr
