"""What autorecovery of a cluster is doing, read from the metadata: for ``bk autorecovery status`` and other people."""

from __future__ import annotations

from dataclasses import dataclass, field

from bookkeeper.autorecovery.report import AutorecoveryReport
from bookkeeper.errors import MetadataFormatError, in_words
from bookkeeper.ids import LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.autorecovery import AutorecoveryNodes, ClusterCheck


@dataclass(slots=True)
class AutorecoveryStatus:
    """Autorecovery of one cluster at one moment."""

    enabled: bool
    auditor: str | None
    """The name of the present auditor; None: there is none."""
    delay_s: int | None
    """How long a bookie may be away; None: no auditor has ever run here."""
    checks: dict[ClusterCheck, int | None]
    """When each check was completed last, in milliseconds since 1970; None: never, or it was asked for."""
    marked: list[LedgerId]
    """The under-replicated ledgers."""
    reports: list[AutorecoveryReport] = field(default_factory=list)
    """What our processes say of themselves; Java's say nothing."""

    @property
    def stuck(self) -> dict[LedgerId, str]:
        """The ledgers that could not be repaired, with the reasons."""
        return {LedgerId(each.ledger): each.reason for report in self.reports for each in report.stuck}


async def status_of(metadata: Metadata) -> AutorecoveryStatus:
    """Read the status. Raises: MetadataError."""
    records = AutorecoveryNodes(metadata.store, metadata.paths)
    status = AutorecoveryStatus(
        enabled=await records.is_enabled(),
        auditor=await records.auditor(),
        delay_s=await records.delay_s(),
        checks={check: await records.last_check(check) for check in ClusterCheck},
        marked=sorted([ledger async for ledger in metadata.under_replication.ledgers()]),
    )
    for name, data in sorted((await records.reports()).items()):
        try:
            status.reports.append(AutorecoveryReport.decode(data))
        except MetadataFormatError as error:
            status.reports.append(AutorecoveryReport(name, auditing=in_words(error)))
    return status
