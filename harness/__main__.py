"""`python -m harness`."""

from harness.cli import run

if __name__ == "__main__":
    run()
