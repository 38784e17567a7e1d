"""A bookie's process on a real file system whose power is cut: the next start finds everything that was acknowledged.

The file system lies on a loop device. It is told to shut down without writing its journal (the ioctl that ext4 and XFS
share), the process is killed, the volume unmounted, so that its page cache is gone, and mounted again.

volume      a file system on a file, mounted, cut off and mounted again
machine     the bookie's process on a volume
promises    what was acknowledged, and what of it does not hold
load        adds, forces, fences, explicit LACs, deletions, compactions
sabotage    the same process with a bug, which has to be noticed
campaign    one cut after the other, and the table
__main__    ``make power-cuts N=…``: the table goes into docs/faultlog.md

What it cannot show: the caches of a device, and what is reordered or torn below the file system, since the file behind
the loop device stays in the machine's memory. (tests/crash_images make up such images.)
"""
