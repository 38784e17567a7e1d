"""The verbs for a cluster as a whole.

init             ``bk init``
cluster_status   ``bk cluster status``
metadata         ``bk metadata copy|accept-rollback|audit-acls|show``
autorecovery     ``bk autorecovery``

Nothing is imported here: ``bk`` loads the verb that it runs, and no other.
"""
