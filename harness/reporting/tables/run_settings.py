"""The settings in which training runs differ, above tables in Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reporting.results.run_differences import RunDifferences
from harness.reporting.table import escaped
from harness.reporting.tables.formats import tex


def to_markdown(differences: Sequence[RunDifferences]) -> str:
    """Return a list for each environment, with its warning; "" without differences."""
    texts = []
    for one in differences:
        listed = "\n".join(f"- {escaped(key)}: {escaped(values)}" for key, values in one.lines)
        warning = f"\nWARNING: {escaped(one.warning)}\n" if one.warning else ""
        texts.append(f"**{escaped(one.title)}**\n\n{listed}\n{warning}")
    return "\n".join(texts)


def to_latex(differences: Sequence[RunDifferences]) -> str:
    """Return paragraphs and lists with the same content; "" without differences."""
    return "\n".join(_latex(one) for one in differences)


def _latex(one: RunDifferences) -> str:
    items = [f"\\item \\texttt{{{tex(key)}}}: {tex(values)}" for key, values in one.lines]
    listed = [f"\\paragraph{{{tex(one.title)}}}", "\\begin{itemize}", *items, "\\end{itemize}"]
    warning = [f"\\textbf{{Warning:}} {tex(one.warning)}."] if one.warning else []
    return "\n".join([*listed, *warning, ""])
