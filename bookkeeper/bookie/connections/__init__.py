"""Clients' connections to a bookie.

bookie_port           the port from the start to the stop: taken, held while nobody is served, answered, closed
handshake, connection_security
                      the machine of TLS and authentication, and its shell
server                all connections: how many may be open, what they share, which clients are too slow
server_connection     one connection: cuts frames, takes adds and reads in runs, sends replies
flow_control          when to stop reading from a connection, and when a client is too slow
admission             how much the whole bookie may have in progress, what has priority, what a request is charged with
add_chunk             parts of a chunk of adds
connection_access     what a connection's client may do with which ledgers, as it was answered
credential_watch      ends connections whose clients would be refused today
connection_audit      what connections note in the audit log
request_log           log lines about refused, failed and slow requests
server_metrics        what the connections count
"""
