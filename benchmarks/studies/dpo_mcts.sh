#!/usr/bin/env bash
# DPO on step preferences of a search, against its own start: `bash benchmarks/studies/dpo_mcts.sh [FOLDER]`.
# For each seed of SEEDS: a warm start, MCTS with the solver's values on the training tasks, `dpo` on its
# pairs, and both policies on the held-out tasks, an episode for each of DRAWS. Minutes on one core.
set -euo pipefail

out=${1:-runs/dpo-mcts}
mkdir -p "$out"
cd "$out"
harness=(${HARNESS:-harness})
export OMP_NUM_THREADS=1

for seed in ${SEEDS:-1 2 3}; do
  "${harness[@]}" train corridor-tiny-demo --set run.output=. --set "run.name=start-$seed" --set "run.seed=$seed" \
    --set run.steps=0 --set 'log.outputs=["tensorboard"]'
  "${harness[@]}" eval --model "start-$seed" --split train --agent mcts --temperature 1 --seeds "$seed" \
    --set search.value=solver --set search.preferences=true --set search.simulations=16 \
    --set run.output=. --name "mcts-$seed"
  "${harness[@]}" train corridor-tiny-demo --set run.output=. --set "run.name=dpo-$seed" --set "run.seed=$seed" \
    --set "policy.model=start-$seed/checkpoints/step-000000" --set warmstart.episodes=0 \
    --set method.name=dpo --set method.credit={} --set method.loss={} --set optimizer.mini_batches=1 \
    --set "run.steps=${STEPS:-30}" \
    --set "rollout.recorded=['mcts-$seed/preferences.jsonl']" --set rollout.tasks_per_step=32 \
    --set eval.every=0 --set 'log.outputs=["tensorboard"]'
  for model in start dpo; do
    "${harness[@]}" eval --model "$model-$seed" --checkpoint newest --split valid_seen --temperature 1 --seeds "${DRAWS:-0,1,2,3,4,5,6,7,8,9}" \
      --set run.output=. --name "$model-$seed-held-out"
  done
done
"${harness[@]}" report ./*-held-out
