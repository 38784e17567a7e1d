"""Publishing batches: rows that many tasks have written into ledgers of their own become part of a stream in one step.

publisher       the owner of a stream that publishes: one compare-and-set for each batch
claiming        how it becomes the owner
staged_writer   what a task does: rows into a ledger of its own, or into its message if they are few
staged_check    whether a ledger holds what a task's message says of it
app_record      which batch of an application was published last
prepared_ledger    the ledger of the next small batch, made while nobody waits
batch_key       whether a batch is new (a machine)
"""

from segments.publish.batch_key import BatchKey
from segments.publish.publisher import PublishedBatch, PublisherFront, StreamPublisher
from segments.publish.staged_writer import StagedLedger, StagedRows, StagedWriter, StagedWriterFront

__all__ = [
    "BatchKey",
    "PublishedBatch",
    "PublisherFront",
    "StagedLedger",
    "StagedRows",
    "StagedWriter",
    "StagedWriterFront",
    "StreamPublisher",
]
