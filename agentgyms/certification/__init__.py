"""Certificates: what an environment must be for figures of it to mean something, checked by play.

Takes an environment's id and arguments; returns a `Certificate` with a verdict for each check
(`checks`). `subject` plays; the checks are in `bounds`, `replays`, `leaks`, `forgery`, `learning`.
"""

from __future__ import annotations

from agentgyms.certification.certificate import Certificate
from agentgyms.certification.checks import CHECKS, certify
from agentgyms.certification.verdicts import Verdict

__all__ = ["CHECKS", "Certificate", "Verdict", "certify"]
