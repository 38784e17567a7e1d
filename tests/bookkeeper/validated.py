"""Machines that look after every step whether what must hold still holds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, Protocol, TypeVar


class Validating(Protocol):
    """A machine that can re-derive what must hold."""

    def validate_state(self) -> None:
        """Raises: AssertionError."""


Machine = TypeVar("Machine", bound=Validating)


def validated(machine: type[Machine]) -> type[Machine]:
    """``machine``, with ``validate_state()`` after each public step, but not after steps inside another step."""
    under_way: set[int] = set()

    def then_validate(step: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(step)
        def call(self: Validating, *args: Any, **named: Any) -> Any:
            if id(self) in under_way:
                return step(self, *args, **named)
            under_way.add(id(self))
            try:
                result = step(self, *args, **named)
            finally:
                under_way.remove(id(self))
            self.validate_state()
            return result

        return call

    steps = {
        name: then_validate(step)
        for owner in reversed(machine.__mro__)
        for name, step in vars(owner).items()
        if isinstance(step, FunctionType) and not name.startswith("_") and name != "validate_state"
    }
    return type(machine.__name__, (machine,), {"__slots__": (), **steps})
