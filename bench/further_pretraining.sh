#!/usr/bin/env bash
# Makes an ETC of a BERT and pre-trains it further, with residual scores off, as
# a sum and as a mean: how well it tells masked words of held-out text before
# and after.
#
#   bash bench/further_pretraining.sh BERT [VOCABULARY STORE...]
#
# BERT is a folder in HuggingFace's form, as those of bert-base-uncased or
# sentence-transformers/all-MiniLM-L6-v2; a STORE is what `realetc tokenize`
# made with its VOCABULARY: without one, of three books from the folder that
# CONTRIBUTING.md tells of. STUDY_STEPS=300 makes it that many updates instead of
# 2000, STUDY_PRECISION=bf16 takes half the time where the CPU has that. May be
# interrupted: started again it goes on. For another BERT or other text remove the
# folder first.
#
# Leaves the runs in runs/further_pretraining/PRECISION and prints a table.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/show_help.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ $# -lt 1 || $# -eq 2 ]]; then
  echo "further_pretraining: expected BERT, or BERT VOCABULARY STORE..." >&2
  exit 1
fi
out=runs/further_pretraining
steps=${STUDY_STEPS:-2000}
precision=${STUDY_PRECISION:-fp32}
runs=$out/$precision
realetc=build/release/bin/realetc
mkdir -p "$runs"
bash cmake/install_dependencies.sh
cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --parallel "$(nproc)" --target realetc

stores=("${@:3}")
if [[ $# -eq 1 ]]; then
  stores=("$out/books.tokens")
  "$realetc" tokenize "${ETC_SHARED_DIR:-../shared}/data/books/*.txt" \
    --format text --documents 3 --vocabulary "$1/vocab.txt" \
    --output "${stores[0]}"
fi
vocabulary=${2:-$1/vocab.txt}
[[ -e $out/lifted/model.safetensors ]] ||
  "$realetc" import "$1" "$out/lifted" --lift --vocabulary "$vocabulary"

# pretrain MODE FOLDER STEPS WARMUP: a run, or what is left of it; its output is in
# a log.
pretrain() {
  [[ ! -e $2/summary.json ]] || return 0
  "$realetc" train bench/further_pretraining.json --output "$2" \
    --set "init=$out/lifted" --set "residual_attention=$1" \
    --set "train.steps=$3" --set "schedule.warmup_proportion=$4" \
    --set "train.precision=$precision" \
    --set "data.train=[$(printf '"%s",' "${stores[@]}" | sed 's/,$//')]" \
    --resume-or-begin >"$2.log" 2>&1 ||
    { tail -n 3 "$2.log" >&2; return 1; }
}

# As many runs at a time as there are cores, each with one thread. The first
# update of a warm-up has a learning rate of 0, so that a run of one update that
# is all warm-up says what the model does before.
trap 'jobs -p | xargs -r kill 2>/dev/null; wait' INT TERM EXIT
for mode in off sum mean; do
  echo "residual scores: $mode"
  pretrain "$mode" "$runs/$mode-1" 1 1
done
echo "$steps updates of each ($runs/*-$steps.log says how far they are)"
for mode in off sum mean; do
  while [[ $(jobs -rp | wc -l) -ge $(nproc) ]]; do
    wait -n
  done
  pretrain "$mode" "$runs/$mode-$steps" "$steps" 0.1 &
done
while [[ $(jobs -rp | wc -l) -gt 0 ]]; do
  wait -n
done
trap - INT TERM EXIT

python3 - "$runs" "$steps" <<'END'
import json
import sys

print("| masked words told, % | before | after | loss before | after |"
      " hidden sentences told after, % (chance) |")
print("| --- | --- | --- | --- | --- | --- |")
for mode in ("off", "sum", "mean"):
    last = []
    for steps in ("1", sys.argv[2]):
        path = "%s/%s-%s/summary.json" % (sys.argv[1], mode, steps)
        with open(path, encoding="utf-8") as file:
            last.append(json.load(file)["runs"][0]["last"])
    print("| %s | %s | %s | %.1f (%.1f) |" % (
        mode,
        " | ".join("%.2f" % (100 * m["masked_lm_accuracy"]) for m in last),
        " | ".join("%.3f" % m["masked_lm_loss"] for m in last),
        100 * last[1]["cpc_accuracy"], 100 * last[1]["cpc_chance"]))
END
