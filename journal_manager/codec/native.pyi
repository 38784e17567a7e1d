from journal_manager.codec.pure import body_decoder as body_decoder
from journal_manager.codec.pure import read_frames as read_frames
