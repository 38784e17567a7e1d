"""The picture in one line."""

from __future__ import annotations

import io

from rich.console import Console

from examples.demo_tenants.view import TenantsPicture, TenantsView


def test_the_summary_says_what_was_got() -> None:
    picture = TenantsPicture()
    view = TenantsView(picture, Console(file=io.StringIO()))
    assert view.summary() == "nothing is written; got that is another one's: nothing"
    picture.loot.read = 3
    assert view.summary().endswith("another one's: 3 entries read")
    assert len(view.rows()) == 2
