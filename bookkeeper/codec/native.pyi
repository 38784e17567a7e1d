from bookkeeper.codec.pure import answer_reads as answer_reads
from bookkeeper.codec.pure import chain_crcs as chain_crcs
from bookkeeper.codec.pure import crc32c as crc32c
from bookkeeper.codec.pure import encode_adds as encode_adds
from bookkeeper.codec.pure import encode_reads as encode_reads
from bookkeeper.codec.pure import find_record as find_record
from bookkeeper.codec.pure import gather as gather
from bookkeeper.codec.pure import pack_entries as pack_entries
from bookkeeper.codec.pure import read_record as read_record
from bookkeeper.codec.pure import record as record
from bookkeeper.codec.pure import record_places as record_places
from bookkeeper.codec.pure import scan_records as scan_records
from bookkeeper.codec.pure import scatter as scatter
from bookkeeper.codec.pure import split_add_replies as split_add_replies
from bookkeeper.codec.pure import split_adds as split_adds
from bookkeeper.codec.pure import split_entries as split_entries
from bookkeeper.codec.pure import split_read_replies as split_read_replies
from bookkeeper.codec.pure import split_reads as split_reads
from bookkeeper.codec.pure import unseal_replies as unseal_replies
from bookkeeper.seams import Buffer

def crc32c_portable(data: Buffer, seed: int = 0) -> int: ...
