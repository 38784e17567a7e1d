"""What a browser does with the console, and what is looked at. It runs by itself, in an environment with Playwright:

python walk.py CHROMIUM '{"url": ..., "token": ..., "ledgers": {...}}' DIRECTORY
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

SIZES = {"narrow": (400, 800), "wide": (1600, 900)}
PANELS = {
    "streams": ("shop/orders", "shop/import"),
    "journals": ("names/main", "nn-1", "<b>late"),
    "checkpoints": ("/checkpoints/orders", "gateway-1:9870", "<b>late"),
}
"""What the page of each panel shows."""
DETAILS = {
    "streams": ("shop/orders", ("billing", "report", "till-1", "audit", "150")),
    "journals": ("names/main", ("nn-1", "60")),
    "checkpoints": ("/checkpoints/orders", ("5297b900", "The last 9 batches", "Temporary files")),
}
"""Panel -> what is clicked there, and what the page of one shows."""


class Walk:
    """One way through all pages, in one colour scheme and one width."""

    def __init__(self, page: Page, told: dict[str, Any], pictures: Path, name: str) -> None:
        self.page, self.told, self.pictures, self.name = page, told, pictures, name
        self.problems: list[str] = []
        page.on("console", lambda message: self._said(message.type, message.text))
        page.on("pageerror", lambda error: self.problems.append(f"{name}: {error}"))
        page.on("request", lambda request: self._asked(request.url))
        page.on("dialog", lambda dialog: self.problems.append(f"{name}: a script of a name ran: {dialog.message}"))

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "status of 40" not in text:  # a refusal that is asked for
            self.problems.append(f"{self.name}, {self.page.url}: {text}")

    def _asked(self, url: str) -> None:
        if not url.startswith(self.told["url"]):
            self.problems.append(f"{self.name}: a request elsewhere: {url}")

    def look(self, name: str, *texts: str) -> None:
        """Wait for these texts, see that the page fits, and take a picture."""
        for text in texts:
            expect(self.page.locator("main")).to_contain_text(text)
        fits = self.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        if not fits:
            self.problems.append(f"{self.name}: {self.page.url} is wider than the window")
        self.page.screenshot(path=self.pictures / f"{self.name}-{name}.png")

    def click(self, selector: str) -> None:
        """Click on the first that there is."""
        self.page.locator(selector).first.click()
        self.page.wait_for_load_state("load")

    def all_pages(self) -> None:
        """From the first page to all others."""
        ledgers = self.told["ledgers"]
        self.page.goto(self.told["url"])
        self.look("cluster", "1 bookie absent", "Racks", "Bookies", "closed")
        self.click("main a[href^='/bookies?of=']")
        self.look("bookie", "disk in use", "named by")
        self.click("nav a[href='/ledgers']")
        self.look("ledgers", "1–100 of")
        self.click("a:text('next')")
        self.look("ledgers-2", "101–200 of")
        self.click(".choices a[href*='state=open']")
        self.look("ledgers-open", "ledger")
        self.click(".choices a[href*='health=short']")
        self.page.fill("input[name=ledger]", str(ledgers["changed"]))
        self.page.press("input[name=ledger]", "Enter")
        self.look("ledger", f"Ledger {ledgers['changed']}", "What failures would lose", "<img src=x")
        expect(self.page.locator("svg.drawing g.copy.gone").first).to_be_visible()
        self.click("nav a[href='/deleted']")
        self.click(f"main a[href='/deleted?of={ledgers['deleted']}']")
        self.look("deleted", "can be brought back")
        self.click("nav a[href='/repair']")
        self.look("repair", "marked")
        panels = [link.get_attribute("href") for link in self.page.locator("nav a[href^='/panels/']").all()]
        for path in panels:
            self.click(f"nav a[href='{path}']")
            expect(self.page.locator(".age")).to_be_visible()
            name = str(path).rpartition("/")[2]
            self.look(f"panel-{name}", *PANELS.get(name, ()))
            if name in DETAILS:
                key, texts = DETAILS[name]
                self.click(f"main a:text-is('{key}')")
                self.look(f"panel-{name}-one", *texts)

    def for_the_docs(self) -> None:
        """The pictures of docs/console.md, small ones."""
        for name, path, height in (
            ("cluster", "", 740),
            ("ledger", f"ledgers/{self.told['ledgers']['changed']}", 400),
            ("stream", "panels/streams?of=shop%2Forders", 740),
        ):
            self.page.set_viewport_size({"width": 960, "height": height})
            self.page.goto(self.told["url"] + path)
            self.page.screenshot(path=self.pictures / f"console-{name}-{self.name.partition('-')[0]}.png")

    def change_something(self) -> None:
        """A bookie is made read-only: the question, a wrong answer, the right one, and the page that shows it."""
        self.page.goto(f"{self.told['url']}bookies?of=b5")
        self.click("button[data-action=read-only]")
        dialog = self.page.locator("dialog")
        expect(dialog).to_be_visible()
        dialog.locator("input[name=confirm]").fill("b4")
        dialog.locator("input[name=token]").fill(self.told["token"])
        dialog.locator("button[value=do]").click()
        expect(dialog.locator(".answer")).to_contain_text("Nothing was done")
        expect(dialog.locator("input[name=token]")).to_have_value("")
        dialog.locator("input[name=confirm]").fill("b5")
        dialog.locator("input[name=token]").fill("wrong")
        dialog.locator("button[value=do]").click()
        expect(dialog.locator(".answer")).to_contain_text("token is not valid")
        dialog.locator("input[name=token]").fill(self.told["token"])
        self.page.screenshot(path=self.pictures / f"{self.name}-question.png")
        dialog.locator("button[value=do]").click()
        expect(dialog.locator(".answer")).to_contain_text("ordered to take no new entries")
        dialog.locator("button[value=cancel]").click()
        expect(dialog).to_be_hidden()
        expect(self.page.locator("main")).to_contain_text("read-only", timeout=30_000)
        expect(self.page.locator("button:text('Take the order back')")).to_be_visible(timeout=30_000)


def main(browser: str, told: dict[str, Any], pictures: Path) -> int:
    """Walk in each colour scheme and width. Returns 0, or 1: something was not as it should be."""
    problems: list[str] = []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            for size, (width, height) in SIZES.items():
                context = running.new_context(
                    color_scheme=scheme,
                    viewport={"width": width, "height": height},
                    http_credentials={"username": "me", "password": told["token"]},
                )
                walk = Walk(context.new_page(), told, pictures, f"{scheme}-{size}")
                walk.all_pages()
                problems += walk.problems
                print(f"{walk.name}: {len(list(pictures.glob(f'{walk.name}-*')))} pages", flush=True)
                if size == "wide":
                    walk.for_the_docs()
                if (scheme, size) == ("dark", "wide"):
                    walk.change_something()
                context.close()
        running.close()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3])))
