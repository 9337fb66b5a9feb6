#!/usr/bin/env bash
# Pre-trains a small ETC four ways, each with three seeds: Post-LN, Pre-LN, and
# Post-LN with residual scores as a sum and as a mean. The data, their order, the
# masks and the schedule are the same for all.
#
#   bash bench/pretraining_study.sh
#   bash bench/pretraining_study.sh VOCABULARY STORE...
#
# Reads what `realetc tokenize` made with that vocab.txt; without arguments three
# books and WikiText-2 from the folder that CONTRIBUTING.md tells of, spelled with a
# vocabulary of their characters and 1,500 most frequent words: half an hour on two
# cores. STUDY_STEPS=300 makes it that many updates instead of 1000. May be
# interrupted: started again it goes on. For other text remove the folder first.
#
# Leaves the runs in runs/pretraining_study/UPDATES, and there curves.svg and
# table.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=runs/pretraining_study
steps=${STUDY_STEPS:-1000}
runs=$out/$steps
realetc=build/release/bin/realetc
mkdir -p "$out"

packages=()
python3 -c 'import matplotlib' 2>/dev/null ||
  /usr/bin/python3 -c 'import matplotlib' 2>/dev/null ||
  packages=(python3-matplotlib)
bash cmake/install_dependencies.sh "${packages[@]}"
cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --parallel "$(nproc)" --target realetc

if [[ $# -ge 2 ]]; then
  vocabulary=$1
  stores=("${@:2}")
elif [[ $# -eq 0 ]]; then
  data=${ETC_SHARED_DIR:-../shared}/data
  vocabulary=$out/vocab.txt
  stores=("$out/books.tokens" "$out/wikitext.tokens")
  python3 bench/pretraining_study.py vocabulary "$vocabulary" \
    "$data"/books/*.txt "$data"/wikitext-2/*.txt
  "$realetc" tokenize "$data/books/*.txt" --format text --documents 3 \
    --vocabulary "$vocabulary" --output "${stores[0]}"
  "$realetc" tokenize "$data/wikitext-2/*.txt" --format text \
    --documents wikitext --vocabulary "$vocabulary" --output "${stores[1]}"
else
  echo "pretraining_study: expected VOCABULARY STORE..., or nothing" >&2
  exit 1
fi

declare -A variants=(
  [post_ln]="residual_attention=off"
  [pre_ln]="residual_attention=off model.use_pre_activation_order=true
    model.final_layer_norm=true model.depth_scaled_initializer=true"
  [sum]="residual_attention=sum"
  [mean]="residual_attention=mean"
)

# Pre-trains variant $1 with seed $2, or goes on; its output is in a log.
run() {
  local folder=$runs/$1/$2 sets=() set
  [[ ! -e $folder/summary.json ]] || return 0
  for set in ${variants[$1]} "train.seeds=[$2]" "train.steps=$steps" \
    "train.evaluate_every=$((steps / 10))" \
    "tokenizer.vocabulary=$vocabulary" \
    "model.vocab_size=$(wc -l <"$vocabulary")" \
    "data.train=[$(printf '"%s",' "${stores[@]}" | sed 's/,$//')]"; do
    sets+=(--set "$set")
  done
  mkdir -p "$runs/$1"
  "$realetc" pretrain bench/pretraining_study.json "${sets[@]}" \
    $([[ ! -d $folder/seed-$2 ]] || echo --resume) \
    --output "$folder" >"$runs/$1/$2.log" 2>&1 ||
    { echo "pretraining_study: $1, seed $2 failed:" >&2
      tail -n 3 "$runs/$1/$2.log" >&2
      return 1; }
}

# As many runs at a time as there are cores, each with one thread.
started=$SECONDS
done_runs=0
waiting=()
for seed in 1 2 3; do
  for variant in post_ln pre_ln sum mean; do
    waiting+=("$variant $seed")
  done
done
finish_one() {
  wait -n || exit 1
  done_runs=$((done_runs + 1))
  local spent=$((SECONDS - started))
  printf '%d of %d runs, %d min so far, about %d min left\n' "$done_runs" \
    "${#waiting[@]}" $((spent / 60)) \
    $((spent * (${#waiting[@]} - done_runs) / done_runs / 60))
}
trap 'jobs -p | xargs -r kill 2>/dev/null; wait' INT TERM EXIT
for entry in "${waiting[@]}"; do
  while [[ $(jobs -rp | wc -l) -ge $(nproc) ]]; do
    finish_one
  done
  read -r variant seed <<<"$entry"
  run "$variant" "$seed" &
done
while [[ $done_runs -lt ${#waiting[@]} ]]; do
  finish_one
done
trap - INT TERM EXIT

python=python3
"$python" -c 'import matplotlib' 2>/dev/null || python=/usr/bin/python3
"$python" bench/pretraining_study.py report "$runs"
