"""For all tests: processes that can be interrupted, threads that never wait for others, compiled code that is kept."""

import gc
import getpass
import os
import signal
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("IRRUN_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"irrun-tests-{getpass.getuser()}"))

# where no bytecode is to be written, each of hundreds of processes compiles all that it imports: half of its time
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    sys.dont_write_bytecode = False

# a shell starts its background jobs with interruptions ignored, which the processes of tests would inherit
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Tens of thousands of tests stay as they are: the collector would walk them again and again."""
    gc.collect()
    gc.freeze()
