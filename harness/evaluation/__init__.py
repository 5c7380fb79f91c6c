"""Evaluation of models on environments: every task once per seed, recorded, resumable, repeatable.

    harness eval --env agentgyms/ALFWorld-v0 --agent react --model NAME --url http://127.0.0.1:8000/v1

A folder holds one evaluation:

    config.json       the resolved configuration
    started.json      the model, tasks, prompts and versions it began with; they may not change
    recordings.jsonl  every finished episode (`agentgyms replay` verifies them)
    result.json       every figure, counted from the recordings, and all that repeats them
    provenance.json   when and where, how long, what was retried: all that two equal runs differ in
    table.md page.html
"""
