"""The board for Grafana and the alarms for Prometheus in ``deploy/``: what they ask is there, and Prometheus has it.

``make boards`` replays every query on a cluster under load; the tests here need no Prometheus, but those that have one
check with it, too.
"""
