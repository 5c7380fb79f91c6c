# Sourced by the studies. Defines `train RECIPE FOLDER SETTING...`: what is finished is skipped, and
# what was interrupted goes on. HARNESS is the command, `harness` where it is not set.
harness=(${HARNESS:-harness})
export OMP_NUM_THREADS=1

train() {
  local recipe=$1 folder=$2 given=()
  shift 2
  if [[ -e $folder/done ]]; then return; fi
  if compgen -G "$folder/checkpoints/step-*/checkpoint.json" >/dev/null; then
    "${harness[@]}" train --resume "$folder"
  else
    rm -rf "$folder"
    for one in "$@"; do given+=(--set "$one"); done
    "${harness[@]}" train "$recipe" --set run.output=. --set "run.name=$folder" "${given[@]}"
  fi
  touch "$folder/done"
}
