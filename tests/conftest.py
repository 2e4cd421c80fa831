"""What all tests need: processes that can be interrupted, threads that never wait for others, a folder for kernels."""

import getpass
import os
import signal
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("IRRUN_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"irrun-tests-{getpass.getuser()}"))

# a shell starts its background jobs with interruptions ignored, which the processes of tests would inherit
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
