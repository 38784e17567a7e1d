"""``bk access``: who may do what in a cluster, and how much of it.

access          the group; ``list``, ``grant``, ``revoke``, ``check``
modes           ``observe``, ``enforce``, ``off``
tenants         ``tenant list|set|export|delete|hand-over``, ``quota``
usage           ``usage``
hand_over       ``hand-over``
policy_change   what all of them share: reading the policy, changing it with a note of who did it
limits          quotas as people write them
matches         what a grant matches today

Nothing is imported here: ``bk`` loads the verb that it runs, and no other.
"""
