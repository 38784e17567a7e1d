"""What a web page of somebody else tries with servers of this machine. It runs by itself, in an environment with
Playwright:

python hostile_page.py CHROMIUM '{"port": ..., "asks": [...], "pages": [...], "sockets": [...]}'
"""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

NAME = "evil.example"
FETCH = """async ({url, method, headers, body, mode, shows}) => {
  try {
    const reply = await fetch(url, {method, headers, body, mode, credentials: "include"});
    return `${reply.type} ${reply.status} ${await reply.text()}`;
  } catch (error) {
    return "";
  }
}"""
SOCKET = """url => new Promise(done => {
  const socket = new WebSocket(url);
  socket.onopen = () => done(true);
  socket.onerror = () => done(false);
})"""
SCRIPT = """url => new Promise(done => {
  const script = document.createElement("script");
  script.onload = () => done(true);
  script.onerror = () => done(false);
  script.src = url;
  document.head.append(script);
})"""
FRAME = """({url, method, body}) => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.name = "target";
  document.body.append(frame);
  if (method === "POST") {
    const form = document.createElement("form");
    Object.assign(form, {action: url, method, enctype: "text/plain", target: "target"});
    const field = document.createElement("input");
    Object.assign(field, {type: "hidden", name: body, value: ""});
    form.append(field);
    document.body.append(form);
    frame.onload = () => done(true);
    form.submit();
  } else {
    frame.onload = () => done(true);
    frame.src = url;
  }
})"""


class Attack:
    """A page at one origin."""

    def __init__(self, page: Page, origin: str, told: dict[str, Any]) -> None:
        self.page, self.origin, self.told = page, origin, told
        self.problems: list[str] = []

    def try_all(self) -> None:
        """Everything, one after the other."""
        for ask in self.told["asks"]:
            for mode in ("cors", "no-cors"):
                self.page.goto(self.origin)
                got = self.page.evaluate(FETCH, {"headers": {}, "body": None, **ask, "mode": mode})
                self._look(got, f"{mode} fetch of {ask['method']} {ask['url']}", ask["shows"])
        for each in self.told["pages"]:
            self.page.goto(self.origin)
            if self.page.evaluate(SCRIPT, each["url"]):
                self.problems.append(f"{self.origin}: {each['url']} was taken for a script")
            self._framed({**each, "method": "GET", "body": ""})
        for ask in self.told["asks"]:
            if ask["method"] == "POST":
                self._framed({"body": "", **ask})
        for url in self.told["sockets"]:
            self.page.goto(self.origin)
            if self.page.evaluate(SOCKET, url):
                self.problems.append(f"{self.origin}: a socket was opened to {url}")

    def _framed(self, asked: dict[str, Any]) -> None:
        self.page.goto(self.origin)
        self.page.evaluate(FRAME, {key: asked[key] for key in ("url", "method", "body")})
        for frame in self.page.frames[1:]:
            self._look(frame.content(), f"a frame with {asked['method']} {asked['url']}", asked["shows"])

    def _look(self, got: str, what: str, shows: str) -> None:
        if shows in got:
            self.problems.append(f"{self.origin}: {what} shows {shows!r}: {got[:200]}")


def rebound(page: Page, told: dict[str, Any]) -> list[str]:
    """Pages that are asked for by the name of somebody else's page, which leads to this machine."""
    problems = []
    for each in told["pages"]:
        parts = urlsplit(each["url"])
        url = parts._replace(netloc=f"{NAME}:{parts.port}").geturl()
        reply = page.goto(url)
        if reply is None or reply.ok or each["shows"] in reply.text():
            problems.append(f"{url} was answered, by a name that is not this machine's")
    return problems


def main(browser: str, told: dict[str, Any]) -> int:
    """Try it from another site, and from another port of this machine. Returns 0, or 1: something went through."""
    problems: list[str] = []
    tried = 0
    with sync_playwright() as playwright:
        rules = f"--host-resolver-rules=MAP {NAME} 127.0.0.1"
        running = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", rules])
        for host in (NAME, "127.0.0.1", "localhost"):
            context = running.new_context()
            attack = Attack(context.new_page(), f"http://{host}:{told['port']}/", told)
            attack.try_all()
            problems += attack.problems
            tried += 1
            context.close()
        context = running.new_context()
        problems += rebound(context.new_page(), told)
        running.close()
    print(f"pages of {tried} other origins, and {len(told['pages'])} under another name, got nothing", flush=True)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], json.loads(sys.argv[2])))
