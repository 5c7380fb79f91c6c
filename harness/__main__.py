"""`python -m harness`."""

from harness.cli.main import run

if __name__ == "__main__":
    run()
