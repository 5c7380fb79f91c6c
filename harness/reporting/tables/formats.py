"""Tables as text: Markdown, LaTeX with booktabs, CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

from harness.reporting.results.agent_names import model_key
from harness.reporting.results.run_differences import RunDifferences
from harness.reporting.results.setting import labels
from harness.reporting.table import Table, escaped
from harness.reporting.tables.rows import Block, Cell, ResultTable, Row

LEGEND: Final = "mean ± standard deviation over seeds; of one seed the mean and its 95 % interval."
GOALS: Final = "Goals are from 0 to 10."
DIMENSIONS: Final = (
    "Relationship and financial benefits are from -5 to 5, secret and social rules from -10 to 0, "
    "other dimensions from 0 to 10."
)
REPORTED: Final = (
    "Rows whose source says reported are the papers' numbers, on the benchmarks' own data; nothing "
    "here is computed from them."
)
NONE: Final = "–"
_CSV: Final = (
    *("environment", "split", "partner", "judge", "model", "type", "method", "source"),
    *("column", "mean", "std", "low", "high", "missing", "data"),
)
_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def tables_to_markdown(tables: Sequence[ResultTable], *, bold: bool = False) -> str:
    """Return tables in Markdown, each with its notes."""
    texts = []
    for table in tables:
        numbers = _numbers(table, "**{}**" if bold else "{}", NONE, str)
        rows = [
            [*map(escaped, _first_cells(table, row)), *cells]
            for row, cells in zip(table.rows, numbers, strict=True)
        ]
        written = Table([*_first_headings(table), *_headings(table)], rows).markdown()
        below = "\n".join(f"- {escaped(note)}" for note in notes(table))
        texts.append(f"**{escaped(table.title)}**\n\n{written}\n\n{below}\n")
    return "\n".join(texts)


def notes(table: ResultTable) -> list[str]:
    """Return the notes below a table: how to read it, then its own notes."""
    scales = {column.scale for block in table.blocks for column in block.columns}
    ranges = [DIMENSIONS if table.detailed else GOALS] if 1 in scales else []
    legend = LEGEND.capitalize() if scales == {1} else f"In percent: {LEGEND}"
    general = [legend, *ranges, *([REPORTED] if table.with_source else [])]
    return [*general, *table.notes]


def to_latex(tables: Sequence[ResultTable], *, bold: bool = False) -> str:
    """Return tables in LaTeX for booktabs; `bold` marks each column's best of a base model."""
    return "\n".join(_latex(table, bold) for table in tables)


def _latex(table: ResultTable, bold: bool) -> str:
    first = _first_headings(table)[1:]
    width = len(first) + len(_headings(table))
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        "\\centering",
        f"\\begin{{tabular}}{{{'l' * len(first)}{'c' * (width - len(first))}}}",
        "\\toprule",
        *_latex_blocks(table.blocks, len(first)),
        f"{' & '.join(tex(h) for h in [*first, *_headings(table, prefixed=False)])} \\\\",
    ]
    model, numbers = None, _numbers(table, "\\textbf{{{}}}" if bold else "{}", "--", tex)
    for row, own in zip(table.rows, numbers, strict=True):
        if model_key(row.agent.model) != model:
            model = model_key(row.agent.model)
            heading = f"\\textit{{{tex(row.agent.model or 'no model')}}}"
            lines += ["\\midrule", f"\\multicolumn{{{width}}}{{l}}{{{heading}}} \\\\"]
        lines.append(f"{' & '.join([*map(tex, _first_cells(table, row)[1:]), *own])} \\\\")
    caption = " ".join([f"{table.title}.", *(f"{note.rstrip('.')}." for note in notes(table))])
    end = ["\\bottomrule", "\\end{tabular}", f"\\caption{{{tex(caption)}}}", "\\end{table}", ""]
    return "\n".join([*lines, *end])


def _latex_blocks(blocks: Sequence[Block], skipped: int) -> Iterator[str]:
    """Yield the headings of the blocks, with rules under them."""
    titles = [f"\\multicolumn{{{len(b.columns)}}}{{c}}{{{tex(b.title)}}}" for b in blocks]
    yield f"{'& ' * skipped}{' & '.join(titles)} \\\\"
    ends = list(accumulate((len(block.columns) for block in blocks), initial=skipped))
    yield " ".join(f"\\cmidrule(lr){{{a + 1}-{b}}}" for a, b in pairwise(ends))


def tex(text: str) -> str:
    """Return text as LaTeX shows it, in one line."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def settings_to_markdown(differences: Sequence[RunDifferences]) -> str:
    """Return the settings in which runs differ, a list for each environment, with its warning."""
    texts = []
    for one in differences:
        listed = "\n".join(f"- {escaped(key)}: {escaped(values)}" for key, values in one.lines)
        warning = f"\nWARNING: {escaped(one.warning)}\n" if one.warning else ""
        texts.append(f"**{escaped(one.title)}**\n\n{listed}\n{warning}")
    return "\n".join(texts)


def settings_to_latex(differences: Sequence[RunDifferences]) -> str:
    """Return paragraphs and lists with the same content; "" without differences."""
    lines = []
    for one in differences:
        items = [f"\\item \\texttt{{{tex(key)}}}: {tex(values)}" for key, values in one.lines]
        lines += [f"\\paragraph{{{tex(one.title)}}}", "\\begin{itemize}", *items, "\\end{itemize}"]
        lines += [f"\\textbf{{Warning:}} {tex(one.warning)}."] if one.warning else []
        lines.append("")
    return "\n".join(lines)


def to_csv(tables: Sequence[ResultTable]) -> str:
    """Return tables as CSV: one line per row and column of a table, one field per number."""
    return Table(_CSV, (line for table in tables for line in _csv_lines(table))).csv()


def _csv_lines(table: ResultTable) -> Iterator[list[Any]]:
    for row in table.rows:
        for (place, heading), cell in row.cells.items():
            where, agent = table.blocks[place].setting, row.agent
            played = [where.world, where.split, where.partner, where.judge]
            texts = [*played, agent.model, agent.type, agent.method, row.source, heading]
            numbers = [cell.mean, cell.std, *(cell.interval or (None, None))]
            yield [
                *map(_cell_text, texts),
                *("" if n is None else f"{n:.{cell.decimals + 3}f}" for n in numbers),
                row.groups[place].episodes("missing") if place in row.groups else "",
                _cell_text("".join(labels(where.data)) or where.data),
            ]


def _cell_text(text: str) -> str:
    """Return text that a spreadsheet does not read as a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _first_headings(table: ResultTable) -> list[str]:
    return ["Model", "Type", "Method", *(["Source"] if table.with_source else [])]


def _first_cells(table: ResultTable, row: Row) -> list[str]:
    agent = row.agent
    names = [agent.model, agent.type, agent.method]
    return [text or NONE for text in names] + ([row.source] if table.with_source else [])


def _headings(table: ResultTable, *, prefixed: bool = True) -> list[str]:
    several = prefixed and len(table.blocks) > 1
    return [
        f"{block.title}: {column.heading}" if several else column.heading
        for block in table.blocks
        for column in block.columns
    ]


def _numbers(
    table: ResultTable, form: str, empty: str, written: Callable[[str], str]
) -> Iterator[list[str]]:
    """Yield the texts of each row's cells, the best of them in a form such as `**{}**`."""
    best = table.best() if form != "{}" else set()
    for index, row in enumerate(table.rows):
        cells = [
            ((place, column.heading), row.cells.get((place, column.heading)))
            for place, block in enumerate(table.blocks)
            for column in block.columns
        ]
        texts = {at: written(cell_text(cell)) if cell else empty for at, cell in cells}
        yield [form.format(t) if (index, *at) in best else t for at, t in texts.items()]


def cell_text(cell: Cell) -> str:
    """Return a number with its deviation or its interval."""
    mean = f"{cell.mean:.{cell.decimals}f}"
    if cell.std is not None:
        return f"{mean} ± {cell.std:.{cell.decimals}f}"
    if cell.interval is None:
        return mean
    low, high = cell.interval
    return f"{mean} ({low:.{cell.decimals}f} to {high:.{cell.decimals}f})"
