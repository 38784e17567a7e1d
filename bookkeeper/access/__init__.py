"""Who may do what: principals, rights, resources, and the policy that connects them. Pure.

A *principal* is who is at the other end. A *resource* is what somebody wants something of: a stream, a journal, a path
of the gateway, the ledgers of an owner, or the cluster. A *right* is what may be done with it. The *policy* is one
record in the metadata; it grants rights on resources, denies everything else, and is asked by bookies and gateways.
A *tenant* is principals who share what they own. A *quota* limits how much a tenant or a principal may have and do.

policy, policy_format    who may do what; its bytes
principal, names         who is at the other end, and whom a grant means; the one form of each name
resource, rights         what somebody wants something of, and what may be done with it
operations               which right each request to a bookie needs
ownership                whose a ledger is, by its custom metadata
tenant, usage, usage_count
                         who belongs together; what tenants and owners have, and how it is added up
quota, quota_book        limits, and who has used how much of them
change, observation      who changed the policy; what a server has denied, or would have
"""

from bookkeeper.access.change import PolicyChange
from bookkeeper.access.operations import LedgerOperation, allowed_by
from bookkeeper.access.policy import Decision, Grant, Mode, Policy
from bookkeeper.access.policy_format import decode_policy, encode_policy
from bookkeeper.access.principal import Principal, PrincipalKind, Subject
from bookkeeper.access.quota import PrincipalQuota, Quota, QuotaKind, QuotaRefusal
from bookkeeper.access.quota_book import QuotaBook
from bookkeeper.access.resource import CLUSTER, Resource, ResourceKind
from bookkeeper.access.rights import Right
from bookkeeper.access.tenant import Tenant
from bookkeeper.access.usage import Amount, Usage

__all__ = [
    "CLUSTER",
    "Amount",
    "Decision",
    "Grant",
    "LedgerOperation",
    "Mode",
    "Policy",
    "PolicyChange",
    "Principal",
    "PrincipalKind",
    "PrincipalQuota",
    "Quota",
    "QuotaBook",
    "QuotaKind",
    "QuotaRefusal",
    "Resource",
    "ResourceKind",
    "Right",
    "Subject",
    "Tenant",
    "Usage",
    "allowed_by",
    "decode_policy",
    "encode_policy",
]
