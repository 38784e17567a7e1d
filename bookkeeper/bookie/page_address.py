"""Where the pages of health and metrics may be shown. Pure.

They show no entry, no key and no password, and nothing can be done with them. So they have an option of their own for
a network: whoever wants to be scraped need not open the port of the data.
"""

from __future__ import annotations

from bookkeeper.errors import require
from bookkeeper.ids import Address, is_loopback


def require_page_address(name: str, address: Address, *, allowed: bool, option: str) -> None:
    """Check that the pages may be shown at this address.

    Args:
        name: of the setting that holds the address.
        allowed: whether ``option`` was set.
        option: what allows it, as the user sets it.

    Raises:
        ConfigError: others could read them, and nobody has allowed that.
    """
    require(
        allowed or is_loopback(address.host),
        f"{name} {address}: everyone who reaches it could read health and metrics; give a loopback address (127.0.0.1, "
        f"::1, localhost), or {option}, which opens these pages and nothing else",
    )
