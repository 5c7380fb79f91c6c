#!/usr/bin/env bash
# Trains the runs of docs/papers_small.md: `bash benchmarks/studies/papers_small.sh [FOLDER [SECTION.KEY=VALUE ...]]`.
# SEEDS chooses a part of it. What is finished is skipped, and what was interrupted goes on.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/resumable.sh"

out=${1:-runs/papers_small}
changes=("${@:2}")
mkdir -p "$out"
cd "$out"

for seed in ${SEEDS:-0 1 2}; do
  mkdir -p "seed-$seed"
  pushd "seed-$seed" >/dev/null
  same=("run.seed=$seed" run.threads=1)
  train alfworld-tiny gigpo "${same[@]}" run.keep_rollouts=6 ${changes[@]+"${changes[@]}"}
  train sotopia-oprl-tiny oprl "${same[@]}" ${changes[@]+"${changes[@]}"}
  for method in gvpo grpo dr_grpo; do
    train appworld-gvpo-tiny "$method" "${same[@]}" "method.name=$method" ${changes[@]+"${changes[@]}"}
  done
  popd >/dev/null
done
