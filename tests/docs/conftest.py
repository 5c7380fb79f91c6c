"""Settings of the tests of the documentation."""

import sys
from pathlib import Path

# Recipes made small are those of the harness's tests.
sys.path.append(str(Path(__file__).parents[1] / "harness"))
