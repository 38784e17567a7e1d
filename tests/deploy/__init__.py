"""What ``deploy/`` has for systemd, containers and Kubernetes.

It is read here always, and checked by its own tool where one is at hand.
"""
