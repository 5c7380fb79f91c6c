"""Tables as text: Markdown, LaTeX with booktabs, CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from harness.reporting.results.agent_names import model_key
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
    return "\n".join(_markdown(table, bold) for table in tables)


def _markdown(table: ResultTable, bold: bool) -> str:
    best = table.best() if bold else set()
    rows = []
    for index, row in enumerate(table.rows):
        numbers = [
            _bold(text, (index, place, heading) in best, "**{}**")
            for place, heading, text in _texts(table, row, cell_text)
        ]
        rows.append([*map(escaped, _first_cells(table, row)), *numbers])
    written = Table([*_first_headings(table), *_headings(table)], rows).markdown()
    below = "\n".join(f"- {escaped(note)}" for note in notes(table))
    return f"**{escaped(table.title)}**\n\n{written}\n\n{below}\n"


def notes(table: ResultTable) -> list[str]:
    """Return the notes below a table: how to read it, then its own notes."""
    scales = {column.scale for block in table.blocks for column in block.columns}
    ranges = [DIMENSIONS if table.detailed else GOALS] if 1 in scales else []
    legend = LEGEND.capitalize() if scales == {1} else f"In percent: {LEGEND}"
    general = [legend, *ranges, *([REPORTED] if table.with_source else [])]
    return [*general, *table.notes]


def to_latex(tables: Sequence[ResultTable], *, bold: bool = False) -> str:
    """Return tables in LaTeX for the package booktabs, with base models as headings.

    With `bold`, the best number of each column among the rows of one base model is bold.
    """
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
    best, model = table.best() if bold else set(), None
    for index, row in enumerate(table.rows):
        if model_key(row.agent.model) != model:
            model = model_key(row.agent.model)
            heading = f"\\textit{{{tex(row.agent.model or 'no model')}}}"
            lines += ["\\midrule", f"\\multicolumn{{{width}}}{{l}}{{{heading}}} \\\\"]
        numbers = [
            _bold(text, (index, place, heading) in best, "\\textbf{{{}}}")
            for place, heading, text in _texts(table, row, lambda cell: tex(cell_text(cell)))
        ]
        cells = [*(tex(text) for text in _first_cells(table, row)[1:]), *numbers]
        lines.append(f"{' & '.join(cells)} \\\\")
    caption = " ".join([f"{table.title}.", *(f"{note.rstrip('.')}." for note in notes(table))])
    end = ["\\bottomrule", "\\end{tabular}", f"\\caption{{{tex(caption)}}}", "\\end{table}", ""]
    return "\n".join([*lines, *end])


def _latex_blocks(blocks: Sequence[Block], skipped: int) -> Iterator[str]:
    """Yield the headings of the blocks, with rules under them."""
    titles = [f"\\multicolumn{{{len(b.columns)}}}{{c}}{{{tex(b.title)}}}" for b in blocks]
    yield f"{'& ' * skipped}{' & '.join(titles)} \\\\"
    start = skipped + 1
    rules = []
    for block in blocks:
        rules.append(f"\\cmidrule(lr){{{start}-{start + len(block.columns) - 1}}}")
        start += len(block.columns)
    yield " ".join(rules)


def tex(text: str) -> str:
    """Return text as LaTeX shows it, in one line."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


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
                row.missing.get(place, ""),
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


def _texts(
    table: ResultTable, row: Row, written: Callable[[Cell], str]
) -> Iterator[tuple[int, str, str]]:
    """Yield place of the block, heading and text of all cells of a row."""
    for place, block in enumerate(table.blocks):
        for column in block.columns:
            cell = row.cells.get((place, column.heading))
            empty = NONE if written is cell_text else "--"
            yield place, column.heading, written(cell) if cell else empty


def cell_text(cell: Cell) -> str:
    """Return a number with its deviation or its interval."""
    mean = f"{cell.mean:.{cell.decimals}f}"
    if cell.std is not None:
        return f"{mean} ± {cell.std:.{cell.decimals}f}"
    if cell.interval is None:
        return mean
    low, high = cell.interval
    return f"{mean} ({low:.{cell.decimals}f} to {high:.{cell.decimals}f})"


def _bold(text: str, best: bool, form: str) -> str:
    return form.format(text) if best else text
