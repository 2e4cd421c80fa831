"""What all tests need: processes that do not wait for each other's threads, and a folder of their own for kernels."""

import getpass
import os
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("IRRUN_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"irrun-tests-{getpass.getuser()}"))
