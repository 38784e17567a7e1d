"""The bookies, as one client sees them.

bookie_watcher     which bookies are there, and which are in quarantine
bookie_pool        connections, made when needed and shared
bookie_locations   where each of them stands, and where that may be read
back_pressure      sends adds again for which a bookie had no room
"""
