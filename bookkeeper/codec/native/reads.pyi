from bookkeeper.codec.pure.reads import answer_reads as answer_reads
from bookkeeper.codec.pure.reads import encode_reads as encode_reads
from bookkeeper.codec.pure.reads import split_read_replies as split_read_replies
from bookkeeper.codec.pure.reads import split_reads as split_reads
from bookkeeper.codec.pure.reads import unseal_replies as unseal_replies
