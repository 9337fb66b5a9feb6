#!/usr/bin/env bash
# Measures what bench/README.md says about speed and memory, and writes a report with
# plots.
#
#   bash bench/run.sh          what the table and the plots need
#   bash bench/run.sh more     the same again, beside what there is
#   bash bench/run.sh all      all that {attention,dense_attention,encoder,layer,data,
#                              restricted_attention,tokenizer,estimate,pretraining}_bench
#                              have: hours, and 60 GB of files
#   bash bench/run.sh report   the report again, from the files of the last run
#
# Leaves *.json (Google Benchmark) and report.html in runs/bench; those of earlier
# runs go to runs/bench/before-DATE-TIME, but for "more" and "report". The machine
# should have nothing else to do: two threads beside a busy process can be many
# times slower than one.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/show_help.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ! ${1:-table} =~ ^(table|more|all|report)$ ]]; then
  echo "bench: expected nothing, \"more\", \"all\" or \"report\", not \"$1\"" >&2
  exit 1
fi

out=runs/bench
bin=build/release/bin
mkdir -p "$out"

# Debian's matplotlib is its own Python's, which need not be the first.
has_matplotlib() {
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import matplotlib' 2>/dev/null && return
  done
  return 1
}
packages=()
has_matplotlib || packages=(python3-matplotlib)
if [[ ${1:-} != report || ${#packages[@]} -gt 0 ]]; then
  bash cmake/install_dependencies.sh "${packages[@]}"
fi
if ! has_matplotlib; then
  echo "bench: the report needs matplotlib, which neither python3 nor" \
    "/usr/bin/python3 can import" >&2
  exit 1
fi

# measure NAME PROGRAM TIMES FILTER
#
# All that the filter chooses one after the other, and that again and again, so
# that both sides of a ratio are measured seconds apart: what else a machine does
# changes from minute to minute.
part=0
measure() {
  part=$((part + 1))
  for ((turn = 1; turn <= $3; ++turn)); do
    local number=1
    while [[ -e $out/$1.$number.json ]]; do
      number=$((number + 1))
    done
    local json=$out/$1.$number.json
    printf '\n== %s, %d of %d (part %d of %d; %d min so far)\n' \
      "$1" "$turn" "$3" "$part" "$parts" "$((SECONDS / 60))"
    "$bin/$2" --benchmark_filter="$4" --benchmark_min_time=0.2 \
      --benchmark_out="$json.partial" --benchmark_out_format=json 2>&1 |
      tee "$out/output" | grep --line-buffered '^[A-Z][A-Za-z]*/' || {
      tail "$out/output" >&2
      # Runs that fail are in a whole file, and the report names them.
      if ! "$python" -m json.tool "$json.partial" >/dev/null; then
        echo "bench: warning: $2 died, this turn of $1 is lost" >&2
        continue
      fi
      echo "bench: warning: runs of $1 failed" >&2
    }
    mv "$json.partial" "$json" # what was interrupted is no result
  done
}

if [[ ${1:-} != report ]]; then
  # Before the build, which is no part of what is measured.
  busy=$(awk '{ print ($1 > 0.5 * '"$(nproc)"') }' /proc/loadavg)
  if [[ $busy == 1 ]]; then
    echo "bench: warning: the machine is busy (load $(cut -d' ' -f1 /proc/loadavg));" \
      "what follows may mean nothing" >&2
  fi
  cmake --preset release -DETC_BUILD_BENCHMARKS=ON --log-level=WARNING >/dev/null
  cmake --build --preset release --parallel "$(nproc)" --target \
    attention_bench dense_attention_bench restricted_attention_bench \
    encoder_bench layer_bench data_bench tokenizer_bench estimate_bench pretraining_bench
  # Warns of a BLAS without AVX, with which all shares of sgemm mean nothing.
  "$bin/attention_bench" --benchmark_list_tests >/dev/null
  if [[ ${1:-} != more ]] && compgen -G "$out/*.json" >/dev/null; then
    before=$out/before-$(date +%Y-%m-%d-%H%M%S)
    mkdir "$before"
    mv "$out"/*.json "$before"
    if [[ -e $out/report.html ]]; then
      mv "$out/report.html" "$before"
    fi
    echo "bench: earlier results are in $before"
  fi
fi

case ${1:-table} in
  table | more)
    parts=11
    base='long:4096/global:256/radius:84/threads:2/'
    measure attention_base attention_bench 11 \
      "Attention/(kernel/.*/residual:(off|sum)|blocked/.*/residual:sum)/fp32/$base"
    ETC_GIVE_MEMORY_BACK=1 measure attention_given_back attention_bench 5 \
      "Attention/(kernel|blocked)/training/residual:sum/fp32/given_back/$base"
    measure encoder encoder_bench 5 \
      'Encoder/base/training/residual:((off/reverse|sum/(reverse|store))/fp32(/blocked)?|sum/reverse/bf16)/layers:12/long:4096/global:256/threads:2/'
    measure attention_long attention_bench 3 \
      'Attention/kernel/training/.*/fp32/long:(2048|8192|16384|32768|65536)/.*threads:2/'
    measure attention_dense attention_bench 3 \
      'Attention/(kernel|dense)/training/residual:off/fp32/long:(2048|4096|8192|16384)/global:256/radius:84/threads:2/'
    measure attention_short attention_bench 3 \
      'Attention/(kernel|dense)/training/.*/fp32/long:(256|512|1024)/.*threads:2/'
    measure dense dense_attention_bench 3 \
      'Dense/.*/residual:off/dropout:0/batch:(1|8)/tokens:512/examples:(1|8)/threads:2'
    measure pretraining pretraining_bench 1 \
      'Pretraining/(base/mlm_cpc|bert_base/mlm_nsp)/residual:sum/layers:4'
    measure layer layer_bench 1 '.*'
    measure tokenizer tokenizer_bench 3 '.*'
    measure data data_bench 3 '.*'
    ;;
  all)
    parts=9
    for name in attention dense_attention restricted_attention encoder layer \
      data tokenizer estimate pretraining; do
      measure "$name" "${name}_bench" 3 '.*'
    done
    ;;
  report) ;;
esac

compgen -G "$out/*.json" >/dev/null || {
  echo "bench: nothing was measured" >&2
  exit 1
}
"$python" bench/report.py "$out"
