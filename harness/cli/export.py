"""`harness export`: a trained model as a folder that others load, with a card."""

from __future__ import annotations

from pathlib import Path

import click

from agentgyms.core import imports


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--checkpoint",
    default="newest",
    show_default=True,
    metavar="newest|best|STEP",
    help="Which of the run's.",
)
@click.option(
    "--precision",
    type=click.Choice(["bfloat16", "float32"]),
    help="Of the weights, with adapters merged in; without it files are as they were saved.",
)
@click.option(
    "--push", metavar="OWNER/NAME", help="Upload it to the Hub, as the user of HF_TOKEN, private."
)
@imports.needed("harness")
def export(
    run: Path, folder: Path, checkpoint: str, precision: str | None, push: str | None
) -> None:
    """Write the model of the training run RUN to the new folder FOLDER.

    It holds weights, tokenizer and chat template, README.md (a card with settings, evaluations and
    provenance) and training_run.json, by which `harness eval --model FOLDER` plays it as it was
    trained. The optimizer's state stays in the run.
    """
    from harness.reporting import model_export

    made = model_export.write(run, folder, checkpoint, precision)
    click.echo(f"step {made.step} of {run} in {folder}")
    if push is not None:
        click.echo(f"uploaded to {model_export.push(folder, push)}")
