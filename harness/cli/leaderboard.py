"""`harness leaderboard`: a static site of evaluations, each of them replayed."""

from __future__ import annotations

from pathlib import Path

import click

from agentgyms.core import imports


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("leaderboard"),
    show_default=True,
    help="The site's folder.",
)
@imports.needed("eval")
def leaderboard(folder: Path, output: Path) -> None:
    """Make a site out of the folders of evaluations in FOLDER, and verify every score.

    Each recorded episode is played again here, in this process; what does not replay is not listed,
    and named with its reason. One table for each environment, data version and protocol; see
    docs/leaderboard.md.
    """
    from harness.reporting.leaderboard import site

    made = site.build(folder, output)
    found = made.listed + len(made.not_listed)
    click.echo(f"{made.listed} of {found} evaluations listed, in {len(made.boards)} tables")
    for board in made.boards:
        click.echo(f"\n{board.title}{''.join(f'; {text}' for text in board.entries[0].departures)}")
        for entry in board.entries:
            click.echo(f"  {100 * entry.success:5.1f} %  {entry.agent.text} ({entry.label})")
    if made.not_listed:
        click.echo("\nnot listed:")
    for one in made.not_listed:
        click.echo(f"  {one.label}: {one.reason}")
    click.echo(f"\nsite: {output / site.INDEX}")
