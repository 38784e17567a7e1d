"""The gateway's protocol: its messages, and what they mean in terms of the library. Pure; it knows no gRPC.

segments.proto    the protocol, for clients of every language
segments_pb2      generated from it: make proto
methods           the calls of each service
messages          values of the library as messages, and back
cursor_messages   cursors as messages, and back
entry_messages    records in their entries as messages, and back
segment_messages  segments as messages, and back
publish_messages  batches that are published as messages, and back
report_messages   holds, retention, findings, overviews as messages, and back
request_elements  how many records a request has, before it is parsed
refusals          errors as messages and status codes, and back
credits           how much may still be sent
resume_token      where a reader goes on, at any gateway
"""
