"""Two tenants share a cluster, and each tries to get what is the other's: ``make demo-tenants``.

story     the cluster, the tenants, and what is tried
tenants   a tenant's program: it writes and reads what is its own
attacks   what somebody tries who has a good certificate, and another one's password
verdict   who got what, and whether anything of their own was lost
view      the live picture
"""
