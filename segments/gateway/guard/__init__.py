"""What every call of the gateway of streams has.

call_guard      who asks, which streams, its bytes, errors as statuses, metrics; ends calls whose right was taken
call_audit      lines of the audit log about calls
grpc_call       one call, as gRPC hands it over
port_security   certificates for the port; what gRPC knows of a client
request_parser  what a request costs, counted before it is parsed
request_rights  which rights a request needs, in each of its fields
"""
