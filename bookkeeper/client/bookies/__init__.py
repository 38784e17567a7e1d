"""The bookies, as one client sees them.

bookie_watcher     who is there, and who is better left out for now
bookie_pool        connections, made when needed and shared
back_pressure      adds that a bookie had no room for: sent again later
"""
