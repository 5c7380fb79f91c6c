"""Prints docs/settings.md, the page of all settings."""

from __future__ import annotations

import sys

from harness.config.reference import as_markdown

sys.stdout.write(as_markdown())
