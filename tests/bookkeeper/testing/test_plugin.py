"""The plugin is off unless a test asks for its fixture; then a cluster runs in virtual time. Pytest in its own runs."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.testing.cluster import SimCluster
from bookkeeper.testing.plugin import in_virtual_time

pytest_plugins = ["pytester", "bookkeeper.testing.plugin"]

ROOT = Path(__file__).resolve().parents[3]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PLUGIN = "bookkeeper.testing.plugin"
STRICT = (
    *("-p", "no:randomly", "--strict-markers", "-W", "error"),
    *("-o", "asyncio_default_fixture_loop_scope=function"),
)

UNRELATED = """
import sys

def test_nothing_of_ours_is_there(request):
    ours = ("bookkeeper", "journal_manager", "segments", "spark_wal")
    found = {name for name in sys.modules if name.partition(".")[0] in ours}
    assert found == {"bookkeeper", "bookkeeper.testing", "bookkeeper.testing.plugin"}
    assert request.config.pluginmanager.has_plugin("bookkeeper.testing.plugin")
"""

RELATED = """
import asyncio
import pytest
from bookkeeper.testing import faults
from bookkeeper.testing.plugin import in_virtual_time

@pytest.mark.parametrize("bookkeeper_seed", range(3))
@in_virtual_time
async def test_an_append_survives_a_bookie(bookkeeper_cluster, tmp_path):
    cluster = bookkeeper_cluster
    async with cluster.connect() as bk, await bk.create_ledger() as ledger:
        with faults.stopped(cluster, "b1"):
            cluster.acked(ledger.id, await ledger.append(b"x"), b"x")
        await asyncio.sleep(300)
    await cluster.wait_until_up()
    await cluster.check_acked()

@pytest.fixture
def bookkeeper_bookies():
    return 5

def test_a_story_is_run_by_hand(bookkeeper_cluster):
    async def story(cluster):
        return len(cluster.servers)

    assert bookkeeper_cluster.run(story) == 5

@in_virtual_time
async def test_one_that_fails(bookkeeper_cluster):
    assert bookkeeper_cluster.servers == {}
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pip leaves the distribution: the packages, and beside them its metadata with the entry points."""
    site = tmp_path / "site"
    (site / "bookkeeper_py-0.dist-info").mkdir(parents=True)
    packages = [pattern.rstrip("*") for pattern in PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]]
    for package in packages:
        (site / package).symlink_to(ROOT / package)
    points = PROJECT["project"]["entry-points"]["pytest11"]
    metadata = {
        "METADATA": "Metadata-Version: 2.1\nName: bookkeeper-py\nVersion: 0\n",
        "entry_points.txt": "[pytest11]\n" + "".join(f"{name} = {place}\n" for name, place in points.items()),
        "RECORD": "".join(f"{package}/__init__.py,,\n" for package in packages),
    }
    for name, text in metadata.items():
        (site / "bookkeeper_py-0.dist-info" / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)


def test_the_entry_point_is_named_as_the_module() -> None:
    """Else pytest would refuse ``-p`` with the module's name where the distribution is installed."""
    assert PROJECT["project"]["entry-points"]["pytest11"] == {PLUGIN: PLUGIN}


def test_where_it_is_installed_another_project_notices_nothing(pytester: pytest.Pytester, installed: None) -> None:
    pytester.makepyfile(UNRELATED)
    pytester.runpytest_subprocess(*STRICT, "--strict-config").assert_outcomes(passed=1)


def test_a_program_may_have_imported_us_before_it_runs_pytest(pytester: pytest.Pytester, installed: None) -> None:
    pytester.makepyfile("def test_it(): pass")
    program = pytester.makepyfile(program=f"import bookkeeper, segments, pytest; pytest.main({[*STRICT]})")
    pytester.run(sys.executable, program).assert_outcomes(passed=1)


@pytest.mark.parametrize("asked", [(), ("-p", PLUGIN)], ids=["by its fixture", "by -p"])
def test_who_asks_for_the_fixture_has_a_cluster(
    pytester: pytest.Pytester, installed: None, asked: tuple[str, ...]
) -> None:
    pytester.makepyfile(RELATED)
    done = pytester.runpytest_subprocess(*STRICT, "-o", "asyncio_mode=auto", *asked)
    done.assert_outcomes(passed=4, failed=1)
    done.stdout.fnmatch_lines(["*seed 1; last events:*"])


def test_without_autoloading_it_is_had_by_its_name(
    pytester: pytest.Pytester, installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile("def test_it(bookkeeper_cluster): assert bookkeeper_cluster.names == ['b1', 'b2', 'b3']")
    pytester.runpytest_subprocess().assert_outcomes(errors=1)
    pytester.runpytest_subprocess("-p", PLUGIN).assert_outcomes(passed=1)


@in_virtual_time
async def test_a_cluster_is_there_when_the_test_begins(bookkeeper_cluster: SimCluster, tmp_path: Path) -> None:
    assert sorted(bookkeeper_cluster.servers) == ["b1", "b2", "b3"]
    assert os.listdir(tmp_path) == []


def test_what_it_makes_of_a_coroutine_function_is_a_function_that_pytest_knows() -> None:
    async def story(bookkeeper_cluster: SimCluster, other: int) -> None:
        """What it says."""

    made = in_virtual_time(story)
    assert (made.__name__, made.__doc__) == ("story", "What it says.")
