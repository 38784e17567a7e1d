"""``bk bookie cookie``: what is on the disk and in the metadata is compared; nothing is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from bookkeeper.ids import BookieId
from bookkeeper.meta.records import cookies as cookie_format
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies


def test_the_cookies_of_a_bookie_agree(cluster: Bookies) -> None:
    said = bk("bookie", "cookie", "show", "-m", cluster.uri, "--dir", cluster.home / "b1", "--json")
    rows = said.document
    assert len(rows) == 3 and {row["bookie"] for row in rows} == {"b1"} and not any(row["problem"] for row in rows)
    assert "cookies of b1" in bk("bookie", "cookie", "show", "-m", cluster.uri, "--dir", cluster.home / "b1").out


@pytest.mark.rule("B11")
def test_a_cookie_that_is_missing_damaged_or_another_ones_is_told(cluster: Bookies, tmp_path: Path) -> None:
    for name in ("journal", "ledgers"):
        (tmp_path / name).mkdir()
    words = ("bookie", "cookie", "show", "-m", cluster.uri, "--dir", tmp_path)
    bk(*words).refused("does not say which bookie it belongs to")
    (tmp_path / "journal" / "VERSION").write_bytes((cluster.home / "b2" / "journal" / "VERSION").read_bytes())
    (tmp_path / "ledgers" / "VERSION").write_text("99\n")
    said = bk(*words)
    assert said.status == 1 and "damaged" in said.out
    (tmp_path / "ledgers" / "VERSION").write_bytes((cluster.home / "b1" / "journal" / "VERSION").read_bytes())
    assert "differs from the first" in " ".join(bk(*words, "--json").out.split())


def test_a_cookie_is_made_put_into_the_metadata_and_removed(cluster: Bookies, tmp_path: Path) -> None:
    for name in ("journal", "ledgers"):
        (tmp_path / name).mkdir()
    words = ("-m", cluster.uri, "--dir", tmp_path)
    assert bk("bookie", "cookie", "generate", *words).status == 2
    text = bk("bookie", "cookie", "generate", *words, "--bookie-id", "b9").out
    made = cookie_format.decode(text.encode())
    assert (made.bookie_id, made.ledger_dirs) == (BookieId("b9"), (f"{tmp_path}/ledgers",))
    file = tmp_path / "cookie"
    assert bk("bookie", "cookie", "generate", *words, "--bookie-id", "b9", "--output", file).status == 0
    assert file.read_text() == text
    bk("bookie", "cookie", "generate", *words, "--bookie-id", "b9", "--output", file).refused("is not replaced")

    create = ("bookie", "cookie", "create", "-m", cluster.uri, file)
    assert "would have" in bk(*create, "--dry-run").out
    delete = ("bookie", "cookie", "delete", "-m", cluster.uri, "b9")
    bk(*delete, "--yes").refused("hold no cookie of b9")
    assert bk(*create).status == 0 and bk(*create).status == 0, "the same cookie again changes nothing"
    file.write_text(text.replace("/ledgers", "/elsewhere"))
    bk(*create).refused("hold another cookie of b9")
    file.write_text(text.replace(str(made.instance_id), "0" * 36))
    bk(*create).refused("the cookie is of cluster 0000")
    assert "would be removed" in bk(*delete, "--dry-run").out
    assert bk(*delete).status == 130, "nobody says yes"
    assert bk(*delete, "--yes").status == 0
    bk(*delete, "--yes").refused("hold no cookie of b9")


def test_the_cookie_of_a_bookie_that_runs_stays(cluster: Bookies) -> None:
    bk("bookie", "cookie", "delete", "-m", cluster.uri, "b1", "--yes").refused("b1 runs", "nothing was changed")
