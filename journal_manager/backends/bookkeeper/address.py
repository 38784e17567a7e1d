"""The addresses of journals on ledgers.

=========================================  ==================================================================
``bk:NAME``                                the option ``client=`` or ``metadata=`` says which cluster
``bk+embedded:///DIR?bookies=3``           a cluster in this process
``bk+sqlite:///FILE``                      a cluster of this machine
``bk+zk://HOST:PORT,HOST:PORT/ROOT``       a cluster with ZooKeeper
=========================================  ==================================================================

After ``bk+`` comes the cluster's metadata address. The option ``name=NAME`` names the journal there (``edits`` if it is
not given). The other options are those of ``bk:`` journals.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from journal_manager.errors import JournalConfigError
from journal_manager.journals.journal_uri import JournalURI

DEFAULT_NAME: Final = "edits"
PREFIX: Final = "bk+"
_OF_THE_CLUSTER: Final = frozenset(["bookies"])
"""Options that belong to the metadata address."""


def plain(uri: JournalURI) -> JournalURI:
    """The same address as ``bk:NAME`` with the option ``metadata``.

    Raises:
        JournalConfigError: the cluster is given twice.
    """
    if not uri.scheme.startswith(PREFIX):
        return uri
    if "metadata" in uri.query:
        raise JournalConfigError(f"{uri} names the cluster already, and takes no option metadata")
    scheme = uri.scheme.removeprefix(PREFIX)
    path = quote(uri.path)  # what parses the metadata address decodes it once more
    options = "&".join(f"{key}={quote(text)}" for key, text in uri.query.items() if key in _OF_THE_CLUSTER)
    query = {key: text for key, text in uri.query.items() if key not in _OF_THE_CLUSTER}
    name = query.pop("name", DEFAULT_NAME)
    metadata = f"{scheme}://{uri.authority}{path}" + (f"?{options}" if options else "")
    return JournalURI("bk", "", name, {**query, "metadata": metadata})
