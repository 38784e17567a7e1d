"""``bk access``: who may do what in a cluster, and how much of it.

access          the group; ``list``, ``grant``, ``revoke``, ``check``, ``hand-over``
modes           ``observe``, ``enforce``, ``off``
tenants         ``tenant list|set|export|delete|hand-over``, ``quota``; quotas as people write them
usage           ``usage``
policy_change   what all of them share: reading the policy, changing it with a note of who did it
matches         what a grant matches today

Nothing is imported here: ``bk`` loads the verb that it runs, and no other.
"""
