from bookkeeper.codec.pure.records import ascending as ascending
from bookkeeper.codec.pure.records import chain_crcs as chain_crcs
from bookkeeper.codec.pure.records import crc32c as crc32c
from bookkeeper.codec.pure.records import find_record as find_record
from bookkeeper.codec.pure.records import ledger_runs as ledger_runs
from bookkeeper.codec.pure.records import pack_entries as pack_entries
from bookkeeper.codec.pure.records import read_record as read_record
from bookkeeper.codec.pure.records import record as record
from bookkeeper.codec.pure.records import record_places as record_places
from bookkeeper.codec.pure.records import scan_records as scan_records
from bookkeeper.codec.pure.records import scatter as scatter
from bookkeeper.codec.pure.records import split_entries as split_entries
from bookkeeper.codec.pure.records import unbroken as unbroken
from bookkeeper.seams import Buffer

def crc32c_portable(data: Buffer, seed: int = 0) -> int: ...
