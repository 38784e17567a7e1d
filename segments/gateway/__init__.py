"""The gRPC gateway of streams: ``bk gateway grpc``.

command          the verb
service          a whole gateway: port, cluster, health, the end in good order
server           the port: gRPC's server with our services, its limits, health and reflection
metadata_watch   whether the metadata store answers
calls/           the services: streams, appends, reads, segments, batches, cursors, transfer, health
guard/           what every call has: who asks, for which streams, errors as statuses, audit, certificates
gateway_metrics  what the gateway counts
ownership/       who appends to a stream: this gateway, another one, or a program with the library
budget/          how many bytes of requests are held, in total and for each address
config           what an operator may set
"""
