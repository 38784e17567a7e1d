from __future__ import annotations

from importlib.metadata import metadata

from bookkeeper.admin.extras import EXTRAS
from bookkeeper.install import how_to_install

WORD = "bookkeeper-py"


def test_advice_names_extras_that_there_are_and_no_registry() -> None:
    """Cause: `pip install 'bookkeeper-py[spark]'` was told, and no registry has a package of this name."""
    there = metadata(WORD).get_all("Provides-Extra") or []
    for extra in {*EXTRAS.values(), "streams"}:
        assert extra in there
        assert (
            how_to_install(extra)
            == f"pip install '.[{extra}]' in a checkout, or pip install 'PATH_OF_THE_WHEEL[{extra}]'"
        )
        assert WORD not in how_to_install(extra)
