"""TRL's GRPOTrainer on given prompts, completions and advantages: a process in TRL's own Python.

    python benchmarks/training_peer.py FOLDER

FOLDER holds `model`, a saved policy, and `rows.json`. The trainer's own loop runs: its sampler, its
micro-batches, its loss, its optimizer. Only generation is replaced, by the completions given. It
takes one training step for each line read, and answers with a line of JSON: seconds of the step by
CPU and clock, and its loss.

On a GPU TRL's output layer sees the positions of the completions alone, on a CPU all of them, for
the sake of compilers of other devices. Here it sees the same ones on both: else a figure from a CPU
would be one of that choice.
"""

from __future__ import annotations

import json
import operator
import sys
import time
from pathlib import Path
from typing import Any

import torch
import trl
import trl.trainer.utils
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback


class Given(trl.GRPOTrainer):  # type: ignore[misc]
    """Trains on completions that are given."""

    given: dict[str, torch.Tensor]

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, torch.Tensor]:
        return dict(self.given)

    def _compute_loss(self, model: Any, inputs: Any) -> torch.Tensor:
        loss: torch.Tensor = super()._compute_loss(model, inputs)
        self.losses.append(float(loss.detach()))
        return loss


class OnDemand(TrainerCallback):  # type: ignore[misc]
    """Waits for a line before every step, and reports after it."""

    def __init__(self, losses: list[float]) -> None:
        """Keep the list that the trainer writes its losses to."""
        self._losses = losses

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Wait; end when there is no line."""
        if not sys.stdin.readline():
            sys.exit(0)
        self._losses.clear()
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Report."""
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        cpu_s, wall_s = time.process_time() - self._cpu, time.perf_counter() - self._wall
        report = {"cpu_s": cpu_s, "wall_s": wall_s, "loss": sum(self._losses)}
        print(json.dumps(report), file=REPLIES, flush=True)


def main() -> None:
    folder = Path(sys.argv[1])
    told = json.loads((folder / "rows.json").read_text())
    torch.set_num_threads(1)
    trl.trainer.utils._use_triton = operator.truth  # true of any device
    rows, micro, on_cpu = told["rows"], told["micro_batch"], told["device"] == "cpu"
    tokenizer = AutoTokenizer.from_pretrained(folder / "model", padding_side="left")
    settings = trl.GRPOConfig(
        output_dir=str(folder / "out"),
        use_cpu=on_cpu,
        bf16=told["mixed"],
        gradient_checkpointing=told["checkpointing"],
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=len(rows) // micro,
        num_generations=2,
        max_completion_length=max(len(row["completion"]) for row in rows),
        learning_rate=told["learning_rate"],
        lr_scheduler_type="constant",
        weight_decay=0.0,
        max_grad_norm=1.0,
        loss_type="dapo",
        beta=0.0,
        max_steps=10**6,
        logging_steps=10**6,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Given(
        model=AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32),
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=settings,
        train_dataset=Dataset.from_list([{"prompt": str(i)} for i in range(len(rows))]),
        processing_class=tokenizer,
    )
    given = tensors(rows, tokenizer.pad_token_id)
    trainer.given = {name: tensor.to(trainer.accelerator.device) for name, tensor in given.items()}
    trainer.losses = []
    trainer.add_callback(OnDemand(trainer.losses))
    trainer.train()


def tensors(rows: list[dict[str, Any]], pad_id: int) -> dict[str, torch.Tensor]:
    """Return rows as TRL keeps them: prompts padded on the left, completions on the right."""
    prompt_width = max(len(row["prompt"]) for row in rows)
    width = max(len(row["completion"]) for row in rows)
    left = [[0] * (prompt_width - len(row["prompt"])) for row in rows]
    right = [[0] * (width - len(row["completion"])) for row in rows]

    def padded(name: str, before: list[list[int]], after: list[list[int]], fill: int) -> Any:
        return torch.tensor(
            [
                [fill] * len(b) + row[name] + [fill] * len(a)
                for row, b, a in zip(rows, before, after, strict=True)
            ]
        )

    def mask(name: str, before: list[list[int]], after: list[list[int]]) -> Any:
        return torch.tensor(
            [
                [0] * len(b) + [1] * len(row[name]) + [0] * len(a)
                for row, b, a in zip(rows, before, after, strict=True)
            ]
        )

    none: list[list[int]] = [[] for _ in rows]
    return {
        "prompt_ids": padded("prompt", left, none, pad_id),
        "prompt_mask": mask("prompt", left, none),
        "completion_ids": padded("completion", none, right, pad_id),
        "completion_mask": mask("completion", none, right),
        "old_per_token_logps": padded("old_logprob", none, right, 0),
        "advantages": torch.tensor([row["advantage"] for row in rows]),
        "num_items_in_batch": torch.tensor(sum(len(row["completion"]) for row in rows)),
    }


if __name__ == "__main__":
    REPLIES = sys.stdout
    sys.stdout = sys.stderr  # what libraries print is no answer
    main()
