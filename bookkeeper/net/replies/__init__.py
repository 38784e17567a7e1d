"""Which reply belongs to which request: one pure machine per dialect.

A connection tells its machine what it sends and what arrives, and performs the deliveries that the machine returns. The
machines hold no socket, no clock and no event loop.

deliveries      data: requests that wait for a reply, and what a machine tells the connection to do
stream_table    the open streams of adds, and the replies that belong to them
by_transaction  protocol v3: a reply carries the transaction id of its request
by_order        protocol v2: replies to one operation on one entry come in the order of the requests
"""
