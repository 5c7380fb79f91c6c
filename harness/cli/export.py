"""`harness export`: a trained policy as a model that transformers and engines load."""

from __future__ import annotations

from pathlib import Path

import click

from agentgyms.core import extras
from harness.types.errors import ConfigError


@click.command()
@click.argument("model")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--checkpoint", default="newest", show_default=True, help="newest, best or a step of a run."
)
@click.option(
    "--precision",
    type=click.Choice(["bfloat16", "float32"]),
    default="bfloat16",
    show_default=True,
    help="Of the weights; training keeps float32.",
)
@extras.needed("harness")
def export(model: str, folder: Path, checkpoint: str, precision: str) -> None:
    """Write the policy of MODEL into the new FOLDER, with adapters merged in.

    MODEL is a training run, a checkpoint, the folder of a model, or a name at the hub.
    """
    from harness.evaluation import model_source
    from harness.model.policy import Policy

    if folder.exists():
        raise ConfigError(f"the folder {f'{folder}'!r:.120} exists already: give a new one")
    source = model_source.find(model, checkpoint)
    Policy.load(source.path, "cpu", precision=precision).save(folder, merged=True)
    click.echo(f"{source.path} in {precision}: {folder}")
