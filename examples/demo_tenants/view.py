"""The live picture: what each tenant writes, and what was got that is another one's."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import RenderableType
from rich.table import Table

from bookkeeper.amounts import counted
from examples.demo_kit.view import DemoPicture, DemoView
from examples.demo_tenants.tenants import TenantProgram
from examples.demo_tenants.verdict import Loot


@dataclass(slots=True)
class TenantsPicture(DemoPicture):
    """All that is shown."""

    programs: list[TenantProgram] = field(default_factory=list)
    loot: Loot = field(default_factory=Loot)


class TenantsView(DemoView[TenantsPicture]):
    """Shows a :class:`TenantsPicture` until it is left."""

    title = "two tenants"

    def summary(self) -> str:
        """The picture in one line."""
        p = self.picture
        written = ", ".join(f"{each.tenant} wrote {each.acknowledged}" for each in p.programs)
        got = ", ".join(f"{count} {what}" for what, count in p.loot.taken.items() if count)
        return f"{written or 'nothing is written'}; got that is another one's: {got or 'nothing'}"

    def rows(self) -> list[RenderableType]:
        table = Table.grid(padding=(0, 3))
        for each in self.picture.programs:
            table.add_row(
                each.tenant,
                f"{counted(each.acknowledged, 'entry')} in {counted(len(each.written), 'ledger')}",
                each.ended,
            )
        loot = Table.grid(padding=(0, 3))
        for what, count in self.picture.loot.taken.items():
            loot.add_row(what, str(count))
        return [table, loot]
