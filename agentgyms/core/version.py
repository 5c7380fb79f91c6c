"""The version of this distribution."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("agentgyms")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"
