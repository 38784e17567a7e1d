"""How WebHDFS carries a token, whether a caller may do something, and what a refused user reads.

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
from bookkeeper.gateways.caller import Caller, path_resource
from bookkeeper.gateways.permissions import ANY_RIGHT, CallerRights, Denial, Needs
from spark_wal.hadoop_tokens import TokenFormatError, password_of
from spark_wal.webhdfs.access.operation_rights import LOOK
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

BAD_CERTIFICATE: Final = "The client certificate is not accepted - see ssl.client.keystore in docs/spark.md"

TEXTS: Final = RefusalTexts(
    no_token=NO_TOKEN, bad_token=BAD_TOKEN, no_certificate=NO_CERTIFICATE, bad_certificate=BAD_CERTIFICATE
)


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


def denial_of(permissions: CallerRights, caller: Caller | None, path: str, needs: Needs) -> Denial | None:
    """Why a caller may not do what needs these rights on a path (X57); None: he may.

    What needs nothing (:data:`~spark_wal.webhdfs.access.operation_rights.LOOK`) may be done with every path on which he
    has any right, and with those above one.
    """
    on = path_resource(path)
    if needs == LOOK:
        if permissions.sees(caller, on) or permissions.leads_to(caller, on):
            return None
        needs = ANY_RIGHT
    return permissions.denial(caller, needs, on)


def denied(denial: Denial, path: str, operation: str) -> AccessDeniedError:
    """What the client is told of it, in HDFS's words, and why."""
    return AccessDeniedError(
        f"Permission denied: user={denial.who}, access={operation}, path={path!r}: {denial.reason}"
    )
