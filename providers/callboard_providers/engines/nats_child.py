"""Becomes a nats-server that ends with the process that started it, where the kernel can (Linux).

Started by its path, with the id of that process, the server and its arguments.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # from linux/prctl.h


def main() -> None:
    parent_id, *command = sys.argv[1:]
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # stays through exec
    if os.getppid() == int(parent_id):
        os.execv(command[0], command)


if __name__ == "__main__":
    main()
