#!/usr/bin/env bash
# Fine-tunes a small ETC on the bundled sample, in the format of WikiHop, with
# residual attention scores and without, and evaluates both on its held-out
# part. Installs what it needs and builds only the program.
#
#   bash tasks/demo.sh
#
# Exits with 1 if the model with residual scores does not reach 0.9.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

config=tasks/wikihop/configs/demo.json
held_out=tasks/wikihop/sample/dev.json
runs=runs/demo
needed=0.9
realetc=build/release/bin/realetc

step() { printf '\n== %s\n' "$*"; }

step "Packages and program"
bash cmake/install_dependencies.sh
cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --target realetc --parallel "$(nproc)"
started=$SECONDS

# Trains with residual scores in mode $1 and predicts the held-out answers.
train() {
  local output=$runs/residual_$1
  rm -rf "$output"
  step "Fine-tuning with residual attention scores: $1"
  "$realetc" finetune "$config" --set residual_attention="$1" \
    --set train.seeds='[1]' --output "$output"
  "$realetc" predict "$output/seed-1/checkpoints/best" --data "$held_out" \
    --output "$output/predictions.json"
}

# The official accuracy of those predictions.
accuracy() {
  "$realetc" score wikihop "$held_out" "$runs/residual_$1/predictions.json" |
    awk '{ print $2 }'
}

train sum
train off
with_scores=$(accuracy sum)
without_scores=$(accuracy off)
chance=$(python3 - "$held_out" <<'PYTHON'
import json, sys
records = json.load(open(sys.argv[1], encoding="utf-8"))
print("%.4f" % (sum(1 / len(r["candidates"]) for r in records) / len(records)))
PYTHON
)

step "Accuracy on questions that training has not seen ($held_out)"
printf '  %-26s %s\n' "residual scores: sum" "$with_scores" \
  "residual scores: off" "$without_scores" "chance" "$chance"
cat <<END

Both runs took $((SECONDS - started)) s together.
  checkpoint   $runs/residual_sum/seed-1/checkpoints/best
  predictions  $runs/residual_sum/predictions.json
  metrics      $runs/residual_sum/seed-1/metrics.jsonl
Try:
  $realetc inspect --config $config --record 0
  $realetc evaluate $runs/residual_sum/seed-1/checkpoints/best --residual off
END

if ! awk -v got="$with_scores" -v needed="$needed" \
  'BEGIN { exit !(got >= needed) }'; then
  echo "demo: accuracy $with_scores is below $needed: something is wrong." >&2
  exit 1
fi
