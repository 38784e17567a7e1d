from segments.codec.pure import append_results as append_results
from segments.codec.pure import count_lone as count_lone
from segments.codec.pure import entry_of_values as entry_of_values
from segments.codec.pure import lone_columns as lone_columns
from segments.codec.pure import lone_records as lone_records
from segments.codec.pure import lone_values as lone_values
from segments.codec.pure import repeated as repeated
from segments.codec.pure import rising as rising
