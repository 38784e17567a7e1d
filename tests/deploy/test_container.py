"""The recipe of the container: what it copies and starts is there, it is nobody's root, and a linter takes it."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from bookkeeper.testing.cluster import SimCluster
from tests.architecture.test_documented_commands import wrong
from tests.boards.deployed import ROOT
from tests.deploy.tools import tool

RECIPE = ROOT / "deploy/container/Containerfile"


def instructions() -> list[tuple[str, str]]:
    """(instruction, its words), in their order, with continued lines joined and comments left out."""
    text = re.sub(r"^#.*\n", "", RECIPE.read_text(), flags=re.MULTILINE)
    joined = re.sub(r"\\\n\s*", " ", text)
    found = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [(word, rest) for word, rest in found]


def last(name: str) -> str:
    """The words of the last instruction of a name: what the image has."""
    return [rest for word, rest in instructions() if word == name][-1]


def test_what_is_copied_is_there_and_is_sent() -> None:
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY" and not rest.startswith("--from")]
    names = [name for words in copied for name in words]
    assert {"bookkeeper", "segments", "spark_wal", "pyproject.toml"} <= set(names)
    assert all((ROOT / name).exists() for name in names)
    sent = RECIPE.with_name(RECIPE.name + ".dockerignore").read_text().splitlines()
    assert [line[1:] for line in sent if line.startswith("!")] == names and "*" in sent


@pytest.mark.rule("X44")
def test_it_runs_as_a_user_of_its_own_and_stops_in_good_order() -> None:
    user = last("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), "a number, so that Kubernetes can tell that it is not root"
    created = [rest for word, rest in instructions() if word == "RUN" and "useradd" in rest]
    assert created and all(f"--uid {user.split(':')[0]}" in rest for rest in created)
    assert last("STOPSIGNAL") == "SIGTERM"
    assert [word for word, _ in instructions()].index("USER") > len(created)


def test_what_it_starts_is_a_command_of_ours_that_keeps_its_data_in_the_volume() -> None:
    words = [*json.loads(last("ENTRYPOINT")), *json.loads(last("CMD"))]
    assert wrong(" ".join(words)) is None
    assert last("VOLUME") == words[words.index("--dir") + 1]


@pytest.mark.parametrize("status", [200, 503])
def test_the_check_of_health_asks_the_page_of_what_it_starts(status: int) -> None:
    """The check's own program, at a server that says so."""
    check = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    address = json.loads(last("CMD"))[-1]
    assert check[:2] == ["python", "-c"] and f"http://{address}/livez" in check[2]
    asked: list[str] = []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            program = check[2].replace(address, f"127.0.0.1:{server.server_port}").replace("timeout=4", "timeout=60")
            if status == 200:
                exec(program, {})
            else:
                with pytest.raises(urllib.error.HTTPError):
                    exec(program, {})
        finally:
            server.shutdown()
            thread.join()
    assert asked == ["/livez"]


def test_a_bookie_has_that_page() -> None:
    async def story(cluster: SimCluster) -> None:
        assert cluster.servers["b1"].health()["status"] == "ok"

    SimCluster(1, 1).run(story)


def test_the_linter_takes_it() -> None:
    done = subprocess.run([tool("hadolint"), str(RECIPE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
