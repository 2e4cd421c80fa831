"""What all tests need: processes of the suite that compute side by side must not wait for each other's threads."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
