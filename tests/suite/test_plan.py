"""Which process runs which tests."""

from __future__ import annotations

from tests.suite.costs import CORE, CORE_OUTSIDE, DRAWN, DRAWN_OUTSIDE, HEAVY, Cost, Costs
from tests.suite.plan import Plan, Wanted, everything, plans
from tests.suite.selection import EXAMPLES, Selection

LISTS = Selection(
    core={
        "tests/test_mixed.py::test_real": "a process",
        "tests/test_cells.py::test_cell[1]": "one",
        "tests/stores/*": "all",
    },
    drawn={"tests/test_worlds.py": ["test_many"]},
    divided={"tests/test_cells.py": ["on-ours", "on-java"]},
    heavy={"tests/test_b.py": ["test_long"], "tests/test_heavy.py": ["test_long"]},
)
MODULES = ["tests/test_a.py", "tests/test_b.py", "tests/test_mixed.py", "tests/test_cells.py", "tests/test_worlds.py"]


def some_costs() -> Costs:
    costs = Costs()
    for name, seconds in (("a", 3.0), ("b", 2.0), ("mixed", 1.0), ("worlds", 0.5)):
        costs.of[CORE][f"tests/test_{name}.py"] = Cost(1, seconds)
    for name in ("mixed", "cells"):
        costs.of[CORE_OUTSIDE][f"tests/test_{name}.py"] = Cost(1, 5.0)
    costs.of[DRAWN]["tests/test_worlds.py"] = Cost(5, 50.0)
    costs.of[DRAWN][EXAMPLES + "tests/test_a.py"] = Cost(5, 50.0)
    for part in ("on-ours", "on-java"):
        costs.of[DRAWN_OUTSIDE][f"tests/test_cells.py::{part}"] = Cost(5, 50.0)
    return costs


def takers(found: tuple[Plan, ...], test: str, *, outside: bool, property_test: bool = False) -> list[str]:
    return [
        plan.name
        for plan in found
        if test.partition("::")[0] in plan.files
        and plan.takes(LISTS, some_costs().drawn_units, test, outside=outside, property_test=property_test)
    ]


def test_each_test_of_the_core_is_run_once_and_no_other() -> None:
    found = plans(Wanted(), MODULES, some_costs(), LISTS, 2)
    assert takers(found, "tests/test_a.py::test_x", outside=False) == ["inside 1"]
    assert takers(found, "tests/test_b.py::test_x", outside=False) == ["inside 2"]
    assert takers(found, "tests/test_mixed.py::test_real[v2]", outside=True) == ["outside"]
    assert len(takers(found, "tests/test_mixed.py::test_x", outside=False)) == 1
    assert takers(found, "tests/test_cells.py::test_cell[1]", outside=True) == ["outside"]
    assert takers(found, "tests/test_cells.py::test_cell[2-on-ours]", outside=True) == []
    assert takers(found, "tests/test_worlds.py::test_many[7]", outside=False) == []
    assert len(takers(found, "tests/test_worlds.py::test_one", outside=False)) == 1


def test_a_pattern_for_a_directory_brings_its_modules() -> None:
    """The list named a directory, which is no module, and none of its tests was run."""
    costs = some_costs()
    costs.of[CORE_OUTSIDE]["tests/stores/test_one.py"] = Cost(1, 1.0)
    found = plans(Wanted(), [*MODULES, "tests/stores/test_one.py"], costs, LISTS, 2)
    assert takers(found, "tests/stores/test_one.py::test_x", outside=True) == ["outside"]


def test_what_is_drawn_is_run_besides() -> None:
    units = ("tests/test_worlds.py", "tests/test_cells.py::on-java", EXAMPLES + "tests/test_a.py")
    found = plans(Wanted(units=units), MODULES, some_costs(), LISTS, 2)
    assert len(takers(found, "tests/test_worlds.py::test_many[7]", outside=False)) == 1
    assert takers(found, "tests/test_cells.py::test_cell[2-on-java]", outside=True) == ["outside"]
    assert takers(found, "tests/test_cells.py::test_cell[2-on-ours]", outside=True) == []
    assert "more examples" in takers(found, "tests/test_a.py::test_x", outside=False, property_test=True)
    assert "more examples" not in takers(found, "tests/test_a.py::test_x", outside=False)


def test_a_module_that_nobody_has_measured_is_run() -> None:
    """Whoever adds a module need not know the table of costs: its tests of either kind belong to the run."""
    found = plans(Wanted(), [*MODULES, "tests/test_new.py"], some_costs(), LISTS, 2)
    assert len(takers(found, "tests/test_new.py::test_x", outside=False)) == 1
    assert takers(found, "tests/test_new.py::test_x", outside=True) == ["outside"]


def test_what_a_module_has_got_since_it_was_measured_is_run() -> None:
    """A quick test beside others that only the draw took, or that start processes, was in no plan."""
    costs = some_costs()
    del costs.of[CORE]["tests/test_worlds.py"]
    for heavy in (True, False):
        found = plans(Wanted(heavy=heavy), MODULES, costs, LISTS, 2)
        for test in ("tests/test_worlds.py::test_one", "tests/test_cells.py::test_new"):
            assert len(takers(found, test, outside=False)) == 1


def test_a_room_is_its_own_tests_without_those_that_start_processes() -> None:
    found = plans(Wanted(outside=False, below={"tests/test_mixed.py"}), MODULES, some_costs(), LISTS, 2)
    assert [(plan.files, plan.outside) for plan in found] == [(("tests/test_mixed.py",), False)]


def test_without_what_takes_long_a_module_of_nothing_else_is_not_even_read() -> None:
    costs, modules = some_costs(), [*MODULES, "tests/test_heavy.py"]
    for name in ("b", "heavy"):
        costs.of[HEAVY][f"tests/test_{name}.py"] = Cost(1, 20.0)
    quick = plans(Wanted(outside=False, heavy=False), modules, costs, LISTS, 2)
    assert takers(quick, "tests/test_b.py::test_long[1]", outside=False) == []
    assert len(takers(quick, "tests/test_b.py::test_x", outside=False)) == 1
    assert all("tests/test_heavy.py" not in plan.files for plan in quick)
    for whole in (plans(Wanted(), modules, costs, LISTS, 2), everything(modules, costs, 2)):
        assert len(takers(whole, "tests/test_b.py::test_long[1]", outside=False)) == 1
        assert len(takers(whole, "tests/test_heavy.py::test_long", outside=False)) == 1


def test_a_room_that_is_no_large_part_of_the_whole_stays_in_one_process() -> None:
    """Its modules import the same libraries, and read the same tree."""
    costs = Costs()
    small = [f"tests/p/small/{part}test_{number}.py" for part in ("", "below/") for number in range(3)]
    large = [f"tests/p/large/test_{number}.py" for number in range(6)]
    for seconds, modules in ((1.0, small), (50.0, large)):
        costs.of[CORE] |= {module: Cost(1, seconds) for module in modules}
    shares = [set(plan.files) for plan in plans(Wanted(outside=False), [*small, *large], costs, LISTS, 2)]
    assert sorted(len(share & set(small)) for share in shares) == [0, 6]
    assert sorted(len(share & set(large)) for share in shares) == [3, 3]


def test_everything_is_every_test_once() -> None:
    found = everything(MODULES, some_costs(), 3)
    for test in ("tests/test_a.py::test_x", "tests/test_worlds.py::test_many[7]", "tests/test_cells.py::test_x"):
        assert len(takers(found, test, outside=False)) == 1
    assert takers(found, "tests/test_cells.py::test_cell[2-on-ours]", outside=True) == ["outside"]


def test_a_plan_survives_being_written_and_what_was_run_is_not_run_again() -> None:
    (plan,) = plans(Wanted(outside=False, below={"tests/test_a.py"}), MODULES, some_costs(), LISTS, 2)
    rest = Plan.read(plan.without(["tests/test_a.py::test_x"]).written())
    assert rest.files == plan.files
    assert takers((rest,), "tests/test_a.py::test_x", outside=False) == []
    assert takers((rest,), "tests/test_a.py::test_y", outside=False) == ["inside 1"]
