"""After every step of a machine, derive again what must hold between its fields.

Each machine has ``validate_state()``, which production never calls. Here every public method of the machines calls it
when it returns, so each unit test, random walk and property test looks at the state after each of its steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Final

import pytest

from bookkeeper.ledger.ensemble.slow_bookies import SlowBookies
from bookkeeper.ledger.ensemble.writer_ensemble import WriterEnsemble
from bookkeeper.ledger.recovery import LedgerRecovery
from bookkeeper.ledger.write import AdvancedOrder, LedgerWriter

MACHINES: Final[tuple[type[Any], ...]] = (AdvancedOrder, LedgerRecovery, LedgerWriter, SlowBookies, WriterEnsemble)
"""The parts that they are made of are validated with them."""


def steps_of(machine: type[Any]) -> dict[str, FunctionType]:
    """The public methods of a machine."""
    return {
        name: method
        for name, method in vars(machine).items()
        if isinstance(method, FunctionType) and not name.startswith("_") and name != "validate_state"
    }


def _validated(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def step(self: Any, *args: Any, **named: Any) -> Any:
        result = method(self, *args, **named)
        self.validate_state()
        return result

    return step


def validate_after_every_step() -> Iterator[None]:
    """The body of a fixture: from here to its end every step is followed by ``validate_state()``."""
    with pytest.MonkeyPatch.context() as patch:
        for machine in MACHINES:
            for name, method in steps_of(machine).items():
                patch.setattr(machine, name, _validated(method))
        yield
