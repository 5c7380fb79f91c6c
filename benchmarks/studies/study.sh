#!/usr/bin/env bash
# Runs the study of docs/study.md: `bash benchmarks/studies/study.sh [FOLDER [SECTION.KEY=VALUE ...]]`.
# SEEDS and METHODS choose a part of it, RECIPE another recipe, SCORER what compares SCPO's texts. Every
# seed is warmed up once; all its methods start from there. AUDIT=1 measures the worth of the start's turns
# first, which foretold.py reads. What is finished is skipped, and what was interrupted goes on.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/resumable.sh"

out=${1:-runs/study}
changes=("${@:2}")
mkdir -p "$out"
cd "$out"

# What a method needs beside its name, on one scale: returns are centred, not divided, over turns.
settings() {
  local own='statistics="turn",invalid_penalty=0.02'
  case $1 in
    grpo | salt | gigpo | hgpo | g2po) own+=',norm="mean"' ;;
    scpo) own+=",norm=\"mean\",scorer=\"${SCORER:-exact}\",alpha=0.1" ;;
    graft) own='invalid_penalty=0.01,norm="mean"' ;; # its graph is of successes, which count 1, not 2
    graphgpo) own='statistics="turn",invalid_penalty=0.0' ;; # centred, its graph would add next to nothing
    ecpo) own='statistics="turn",invalid_penalty=0.0,norm="mean"' ;;
    oprl)
      own+=',alpha=0.2'
      echo 'method.annotators={process_reward={learning_rate=1e-4,mini_batches=2}}'
      ;;
    oracle)
      own='invalid_penalty=0.02,scale="none"'
      echo 'method.annotators={continuations={count=4}}'
      ;;
    tree_grpo)
      own+=',norm="mean"'
      echo 'rollout.group_size=4' # and one sibling of each: as many leaves as GRPO has episodes
      echo 'rollout.branch={at="uniform",points=4,siblings=1}'
      ;;
    vineppo)
      own='invalid_penalty=0.02'
      echo 'rollout.group_size=2' # continuations compare, not members of the group
      echo 'method.annotators={continuations={count=3}}'
      echo 'optimizer.epochs=1'
      ;;
  esac
  echo "method.credit={$own}"
}

for seed in ${SEEDS:-1 2 3 4 5 6 7 8}; do
  mkdir -p "seed-$seed"
  pushd "seed-$seed" >/dev/null
  recipe=${RECIPE:-alfworld-tiny-study}
  same=(${changes[@]+"${changes[@]}"} "run.seed=$seed")
  train "$recipe" start "${same[@]}" run.steps=0
  same+=(policy.model=start/checkpoints/step-000000 warmstart.episodes=0)
  if [[ -n ${AUDIT:-} && ! -e truth.npz ]]; then
    # OPRL's credit is its reward model's: it learns from the start's episodes, the policy stands still.
    mapfile -t own < <(settings oprl)
    train "$recipe" reward "${same[@]}" method.name=oprl "${own[@]}" run.steps=6 \
      optimizer.learning_rate=1e-12 'eval.final_splits=[]' eval.tasks=1
    "${harness[@]}" credit audit --model start --tasks 16 --continuations 16 --process-reward reward \
      --save truth.npz
  fi
  for method in ${METHODS:-grpo gigpo ecpo salt gvpo oprl scpo graphgpo g2po graft}; do
    mapfile -t own < <(settings "$method")
    train "$recipe" "$method" "${same[@]}" "method.name=$method" "${own[@]}"
  done
  popd >/dev/null
done
