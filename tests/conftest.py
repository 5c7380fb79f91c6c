"""Settings of all tests."""

import os

os.environ["TQDM_DISABLE"] = "1"
