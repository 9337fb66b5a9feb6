#!/usr/bin/env bash
# Fine-tunes a small ETC on a bundled sample in the format of a benchmark, with
# residual attention scores and without, and evaluates both on its held-out
# part. Installs what it needs and builds only the program.
#
#   bash tasks/demo.sh             # WikiHop
#   bash tasks/demo.sh TASK...     # any with tasks/TASK/sample/demo.json and
#                                  # demo.py
#   bash tasks/demo.sh pretrain    # pre-trains a small ETC, and fine-tunes it
#   bash tasks/demo.sh translation # trains a small encoder-decoder on an
#                                  # invented language
#   bash tasks/demo.sh all
#
# Exits with 1 if a model with residual scores does not reach what it should.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/show_help.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

realetc=build/release/bin/realetc

step() { printf '\n== %s\n' "$*"; }

# Field $2 of task $1's sample/demo.json:
#   metrics  the scores that are shown
#   needed   the least of each with residual scores
#   shorter  numbers of long tokens that a run more is limited to
setting() {
  python3 - "tasks/$1/sample/demo.json" "$2" <<'END'
import json, sys
value = json.load(open(sys.argv[1])).get(sys.argv[2], [])
print(*(value if isinstance(value, list) else [value]))
END
}

# The held-out part of task $1.
held_out_part() { ls "tasks/$1"/sample/dev.*; }

# Trains task $1 with residual scores in mode $2 and predicts the held-out
# answers; with as many long tokens as $3 says, where there is one.
train() {
  local output=runs/demo/$1/residual_$2${3:+_$3}
  rm -rf "$output"
  step "Fine-tuning on $1 with residual attention scores: $2${3:+, $3 tokens}"
  "$realetc" train "tasks/$1/configs/demo.json" \
    --set residual_attention="$2" --set train.seeds='[1]' \
    ${3:+--set data.max_long_length="$3"} --output "$output"
  "$realetc" predict "$output/seed-1/checkpoints/best" \
    --data "$(held_out_part "$1")" --output "$output/predictions.json"
}

# Trains task $1 in each of the other ways, a mode or a mode and a number of long
# tokens, at the same time: each run has one thread.
train_each() {
  local task=$1 way run runs=() failed=0
  shift
  for way in "$@"; do
    # shellcheck disable=SC2086 -- a mode and a number
    (train "$task" $way 2>&1 | sed -u "s/^\(.\)/[$way] \1/") &
    runs+=($!)
  done
  for run in "${runs[@]}"; do
    wait "$run" || failed=1
  done
  return "$failed"
}

# Metric $3 of the predictions in residual_$2, officially.
score() {
  "$realetc" score "$1" "$(held_out_part "$1")" \
    "runs/demo/$1/residual_$2/predictions.json" \
    --config "tasks/$1/configs/demo.json" |
    awk -v metric="$3" '$1 == metric { print $2 }'
}

demo() {
  local task=$1 started=$SECONDS
  local held_out metrics needed shorter length
  held_out=$(held_out_part "$task")
  metrics=$(setting "$task" metrics)
  needed=$(setting "$task" needed)
  shorter=$(setting "$task" shorter)
  local chance
  chance=$(python3 "tasks/$task/sample/demo.py" chance "$held_out")
  local run=runs/demo/$task/residual_sum
  local ways=(sum off)
  for length in $shorter; do
    ways+=("sum $length")
  done
  train_each "$task" "${ways[@]}"
  local way compared=()
  for way in "${ways[@]}"; do
    compared+=("runs/demo/$task/residual_${way// /_}")
  done

  step "Three of the held-out records"
  python3 "tasks/$task/sample/demo.py" show "$held_out" "$run/predictions.json"
  local metric with_scores too_low=()
  for metric in $metrics; do
    with_scores=$(score "$task" sum "$metric")
    step "$metric on records that training has not seen ($held_out)"
    printf '  %-26s %s\n' "residual scores: sum" "$with_scores" \
      "residual scores: off" "$(score "$task" off "$metric")" "chance" "$chance"
    for length in $shorter; do
      printf '  %-26s %s\n' "sum, $length tokens only" \
        "$(score "$task" "sum_$length" "$metric")"
    done
    if ! awk -v got="$with_scores" -v needed="$needed" \
      'BEGIN { exit !(got >= needed) }'; then
      too_low+=("$metric $with_scores")
    fi
  done
  step "A report on these runs"
  local report=runs/demo/$task/report.html
  "$realetc" report "${compared[@]}" --output "$report" --overwrite
  cat <<END

The runs took $((SECONDS - started)) s together.
  report       $report
  checkpoint   $run/seed-1/checkpoints/best
  predictions  $run/predictions.json
  metrics      $run/seed-1/metrics.jsonl
Try:
  $realetc inspect --config tasks/$task/configs/demo.json --record 0
  $realetc evaluate $run
  $realetc evaluate $run --residual off
The last one switches off the residual scores that this model was trained with,
and mostly scores much lower: it has learnt to build on them. What a model
reaches that was trained without them is above.
END
  if ((${#too_low[@]} > 0)); then
    echo "demo: ${too_low[*]} of $task is below $needed:" \
      "something is wrong." >&2
    exit 1
  fi
}

# The number behind $2 in the output $1 of a command.
number() { awk -v name="$2" '$1 == name { print $2 }' "$1"; }

# Fine-tunes the WikiHop demo from $1 and keeps its accuracy after each 100
# updates.
tune() {
  local output=runs/demo/pretrain/$2
  rm -rf "$output"
  "$realetc" train tasks/wikihop/configs/demo.json --set init="$1" \
    --output "$output"
  python3 - "$output/seed-1/metrics.jsonl" >"$output/accuracies" <<'END'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
print("  ".join(f"{line['evaluation']['accuracy']:.2f}" for line in lines
                if "evaluation" in line))
END
}

demo_pretrain() {
  local started=$SECONDS folder=runs/demo/pretrain
  local run=$folder/residual_sum
  mkdir -p "$folder"
  step "Text to tokens"
  "$realetc" tokenize tasks/pretrain/sample/corpus.txt.gz --format bert \
    --vocabulary tasks/wikihop/sample/vocab.txt --output "$folder/corpus.tokens"
  step "Pre-training: masked words and hidden sentences, residual scores: sum"
  rm -rf "$run"
  "$realetc" train tasks/pretrain/configs/demo.json --output "$run" \
    > >(tee "$folder/scores") 2> >(tee "$folder/messages" >&2)
  step "Fine-tuning on WikiHop, from that"
  tune "$run/seed-1/checkpoints/last" from_pretrained
  step "Fine-tuning on WikiHop, from nothing"
  tune "" from_nothing
  local accuracy baseline
  accuracy=$(number "$folder/scores" masked_lm_accuracy)
  baseline=$(sed -n 's/^always answering .* masked_lm_accuracy //p' \
    "$folder/messages")
  step "Masked words of documents that training has not seen"
  printf '  %-26s %s\n' "told" "$accuracy" \
    "the most frequent one" "$baseline"
  step "WikiHop's accuracy after 100, 200, 300 and 400 updates of fine-tuning"
  printf '  %-26s %s\n' "from pre-training" \
    "$(<"$folder/from_pretrained/accuracies")" \
    "from nothing" "$(<"$folder/from_nothing/accuracies")"
  step "Reports on these runs"
  "$realetc" report "$run" --output "$folder/report.html" --overwrite
  "$realetc" report "$folder/from_pretrained" "$folder/from_nothing" \
    --output "$folder/wikihop.html" --overwrite
  cat <<END

What WikiHop asks takes two steps from sentence to sentence; this corpus does not
teach them to so small a model, so pre-training on it may well slow it down.
All took $((SECONDS - started)) s.
  reports      $folder/report.html, $folder/wikihop.html
  checkpoint   $run/seed-1/checkpoints/best
Try:
  $realetc inspect --config tasks/pretrain/configs/demo.json
  $realetc evaluate $run --residual off
END
  if ! awk -v got="$accuracy" -v base="$baseline" \
    'BEGIN { exit !(got >= 3 * base) }'; then
    echo "demo: $accuracy of the masked words are told, and $baseline without" \
      "reading: something is wrong." >&2
    exit 1
  fi
}

# Trains with residual scores in mode $1 and translates the test part.
translate() {
  local output=runs/demo/translation/residual_$1
  rm -rf "$output"
  "$realetc" train tasks/translation/configs/demo.json \
    --set residual_attention="$1" --output "$output"
  "$realetc" translate "$output" --input runs/demo/translation/data/test.source \
    --output "$output/translations"
}

# BLEU of a file of translations.
bleu() {
  "$realetc" score translation "$1" runs/demo/translation/data/test.target \
    --json |
    python3 -c 'import json, sys; print("%.1f" % json.load(sys.stdin)["bleu"])'
}

demo_translation() {
  local started=$SECONDS folder=runs/demo/translation mode run runs=() failed=0
  mkdir -p "$folder/data"
  step "An invented language and its translation"
  python3 tasks/translation/sample/language.py make "$folder/data"
  paste -d '\n' <(head -2 "$folder/data/test.source") <(head -2 "$folder/data/test.target")
  step "Training with residual scores on all three paths, and without"
  # Each run has one thread.
  for mode in mean off; do
    (translate "$mode" 2>&1 | sed -u "s/^\(.\)/[$mode] \1/") &
    runs+=($!)
  done
  for run in "${runs[@]}"; do
    wait "$run" || failed=1
  done
  ((failed == 0))
  python3 tasks/translation/sample/language.py chance \
    "$folder/data/test.target" >"$folder/chance"
  local with_scores
  with_scores=$(bleu "$folder/residual_mean/translations")
  step "BLEU on 300 sentences that training has not seen"
  printf '  %-38s %s\n' "residual scores: mean" "$with_scores" \
    "residual scores: off" "$(bleu "$folder/residual_off/translations")" \
    "chance: another sentence's translation" "$(bleu "$folder/chance")"
  cat <<END

The runs took $((SECONDS - started)) s together.
  checkpoint    $folder/residual_mean/seed-1/checkpoints/best
  translations  $folder/residual_mean/translations
  metrics       $folder/residual_mean/seed-1/metrics.jsonl
Try:
  head -3 $folder/data/test.source | $realetc translate $folder/residual_mean --n-best 3
  $realetc evaluate $folder/residual_mean
END
  if ! awk -v got="$with_scores" 'BEGIN { exit !(got >= 80) }'; then
    echo "demo: BLEU $with_scores of translation is below 80:" \
      "something is wrong." >&2
    exit 1
  fi
}

known=(tasks/*/sample/demo.json)
known=("${known[@]#tasks/}")
known=("${known[@]%/sample/demo.json}" pretrain translation)
tasks=("${@:-wikihop}")
if [[ ${tasks[*]} == all ]]; then
  tasks=("${known[@]}")
fi
for task in "${tasks[@]}"; do
  if [[ " ${known[*]} " != *" $task "* ]]; then
    echo "demo: there is no task \"$task\"; there are: ${known[*]}, all" >&2
    exit 2
  fi
done

step "Packages and program"
bash cmake/install_dependencies.sh
cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --target realetc --parallel "$(nproc)"
for task in "${tasks[@]}"; do
  if [[ $task == pretrain ]]; then
    demo_pretrain
  elif [[ $task == translation ]]; then
    demo_translation
  else
    demo "$task"
  fi
done
