"""A program that knows nothing of us: LOCK WIDTH SESSION TURNS LOG, one flock a turn."""
import fcntl
import os
import random
import sys
import time

lock, width, session, turns, log_path = sys.argv[1:6]
slots = [lock] + [lock.replace(".lock", f".{i}.lock") for i in range(1, int(width))]
log = os.open(log_path, os.O_WRONLY | os.O_APPEND)


def take():
    for slot in slots:
        fd = os.open(slot, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            os.close(fd)
    return None


done = 0
while done < int(turns):
    fd = take()
    if fd is None:
        time.sleep(random.random() * 0.003)
        continue
    os.write(log, f"+ {session}\n".encode())
    os.write(log, f"- {session}\n".encode())
    os.close(fd)
    done += 1
