"""The cells of the matrix as tests: ``make test`` runs them where Apache's programs can be had."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.apache_servers import whats_missing
from tests.interop.cells import CELLS, TOOLS, Cell, Tool
from tests.interop.clusters import Site, site
from tests.interop.document import PAGE, with_matrix

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

if (_missing := whats_missing()) is not None:
    pytest.skip(f"the matrix of both languages is not run: {_missing}", allow_module_level=True)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("interop")) as running:
        yield running


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.reason is None], ids=str)
def test_cell(cell: Cell, clusters: Site) -> None:
    cell.run(clusters)


@pytest.mark.parametrize("tool", TOOLS, ids=str)
def test_tool(tool: Tool, clusters: Site) -> None:
    tool.run(clusters)


def test_the_matrix_goes_into_the_page() -> None:
    colours: dict[Cell | Tool, str] = {cell: "n/a" if cell.reason else "green" for cell in CELLS}
    colours |= dict.fromkeys(TOOLS, "red")
    page = with_matrix(PAGE.read_text(), colours)
    assert with_matrix(page, colours) == page
    assert f"{len(TOOLS)} red" in page
    assert page.count("✘") >= len(TOOLS)
    with pytest.raises(ValueError, match="not every cell"):
        with_matrix(page, dict.fromkeys(CELLS[1:], "green"))


def test_every_cell_that_cannot_exist_says_why() -> None:
    reasons = {str(cell): cell.reason for cell in CELLS if cell.reason is not None}
    assert all(len(reason.split()) > 5 for reason in reasons.values())
    assert len(reasons) < len(CELLS) / 8
