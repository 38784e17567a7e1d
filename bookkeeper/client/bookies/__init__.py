"""The bookies, as one client sees them.

bookie_watcher     who is there, and who is better left out for now
bookie_pool        connections, made when needed and shared
bookie_request     one question to one bookie, and what its reply says
back_pressure      adds that a bookie had no room for: sent again later
incarnation_watch  a bookie that failed and answers again: is it the same incarnation?
"""
