"""Every kind of file of a bookie is damaged, and the real bookie started on it: what is damaged is noticed or does not
matter, and never is anything wrong answered (detection 100 %, wrong bytes 0, wrong negatives 0).

directory   a bookie's life, whose files are damaged, and which of their bytes something depends on
damage      what can become of a file
campaign    one trial after the other, and the table
__main__    ``make corruption N=…``: the table goes into docs/faultlog.md
"""
