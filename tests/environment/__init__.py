"""The environment that ``make`` works in: what is in it, and how it is installed. Needs nothing but Python.

locked     the file ``requirements.lock``: every package with its version and its hashes; ``python -m
           tests.environment.locked`` writes it anew
install    ``python -m tests.environment.install``: what ``make install`` runs
progress   what pip is doing, from its log
"""
