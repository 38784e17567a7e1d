"""Clients' connections to a bookie.

bookie_port           the port: bound at the start, served later, closed at the stop
handshake, connection_security
                      the machine of TLS and authentication, and its shell
server                all connections: limits, shared memory, clients that are too slow
server_connection     one connection: cuts frames, takes adds and reads in runs, sends replies
flow_control          when to stop reading from a connection, and when a client is too slow
admission             how much the whole bookie may have in progress, what has priority, what a request is charged with
add_chunk             cuts received bytes into adds, and adds into runs
connection_access     what a connection's client may do with each ledger, cached
credential_watch      ends connections whose credentials have become invalid
connection_audit      events of connections in the audit log
request_log           log lines about refused, failed and slow requests
server_metrics        counters of connections and requests
"""
