"""``make upgrades``: three bookies go from an earlier version to this one and back, one by one, under load."""
