from bookkeeper.codec.pure.adds import encode_adds as encode_adds
from bookkeeper.codec.pure.adds import encode_recovery_adds as encode_recovery_adds
from bookkeeper.codec.pure.adds import gather as gather
from bookkeeper.codec.pure.adds import split_add_replies as split_add_replies
from bookkeeper.codec.pure.adds import split_adds as split_adds
