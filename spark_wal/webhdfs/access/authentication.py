"""How WebHDFS carries a token, what a principal may do, and what a refused user reads.

=========================  ====================================================================
``Authorization: Bearer``  a token, or an access token from the OAuth2 endpoint
``delegation=``            a token, plain or inside one of Hadoop's (``HADOOP_TOKEN``)
``user.name=``             counts only if neither tokens nor certificates are required (X54)
=========================  ====================================================================

The text of a refusal goes into the status line, because Hadoop's client shows its user nothing else.
"""

from __future__ import annotations

from typing import Final

from bookkeeper.gateways.authentication import RefusalTexts
from bookkeeper.gateways.tokens import Caller
from spark_wal.hadoop_tokens import TokenFormatError, password_of
from spark_wal.webhdfs.errors import AccessDeniedError

NO_TOKEN: Final = (
    "This gateway wants a token and none came - give Spark HADOOP_TOKEN or dfs.webhdfs.oauth2 settings, "
    "driver and executors, see wal.spark_conf() in docs/spark.md"
)
BAD_TOKEN: Final = (
    "The token is not valid, has expired or was revoked - make a new one with bk gateway token, and give it to "
    "driver and executors"
)
NO_CERTIFICATE: Final = (
    "This gateway wants a client certificate and none came - see ssl.client.keystore in docs/spark.md"
)

TEXTS: Final = RefusalTexts(no_token=NO_TOKEN, bad_token=BAD_TOKEN, no_certificate=NO_CERTIFICATE)


def token_of(authorization: str | None, delegation: str | None) -> str | None:
    """The token in a request's header and parameter, if it has one. The header comes first."""
    if authorization is not None:
        kind, _, value = authorization.strip().partition(" ")
        if kind.lower() == "bearer" and value:
            return value.strip()
    if delegation:
        try:
            return password_of(delegation)
        except TokenFormatError:
            return delegation
    return None


def authorize(principal: Caller | None, path: str, operation: str) -> None:
    """Check that this principal may perform the operation on the path (X57).

    Above its roots it may check whether a directory exists, and read the server's defaults, because clients do that.

    Raises:
        AccessDeniedError: the principal may not.
    """
    if principal is None or principal.holds(path):
        return
    if operation in LOOKING and principal.leads_to(path):
        return
    raise AccessDeniedError(f"Permission denied: user={principal.name}, access={operation}, path={path!r}")


LOOKING: Final = frozenset(
    ("GETFILESTATUS", "GETFILELINKSTATUS", "GETSERVERDEFAULTS", "GETHOMEDIRECTORY", "GETTRASHROOT", "CHECKACCESS",
     "GETDELEGATIONTOKEN")
)  # fmt: skip
"""Operations that are allowed above a principal's roots."""
