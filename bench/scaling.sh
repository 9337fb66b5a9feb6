#!/usr/bin/env bash
# What several processes gain: updates of one process on all cores beside those
# of as many processes as there are cores, taken in turns, and by a model what
# nodes like this one would do together.
#
#   bash bench/scaling.sh
#
# Updates are of 32 examples of WikiHop's sample, 4 at a time, by 4 layers of the
# base model's width. Prints tokens a second and their ratio; what two processes of
# this machine take to sum as many gradients up (bench/sum_bench.cc), and how long
# those of the training waited for each other and for sums, most of which go on
# behind the backward pass. The model is of the shipped configurations etc_base and
# etc_large of pre-training: an update takes what `realetc estimate` says, divided
# by the nodes, and behind it the part of the sums, a ring's 2 (N - 1) / N times the
# bytes of all gradients at the rate of the network, that the last micro-batch's
# backward pass does not hide. The same for two machines of eight GPUs, which nobody
# has measured: for devices of several speeds, and the sums of a machine before those
# over the network.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/show_help.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset OPENBLAS_CORETYPE

out=runs/scaling
realetc=build/release/bin/realetc
cores=$(nproc)
bash cmake/install_dependencies.sh
cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --parallel "$cores" --target realetc sum_bench
rm -rf "$out"
mkdir -p "$out"
grep -m1 'model name' /proc/cpuinfo
uptime

model=(--set model.hidden_size=768 --set model.num_attention_heads=12
  --set model.intermediate_size=3072 --set model.num_hidden_layers=4)

# run NAME THREADS PREFIX...: ten updates into a folder.
run() {
  "$realetc" "${@:3}" train tasks/wikihop/configs/demo.json \
    --output "$out/$1" --set train.threads="$2" --set train.steps=10 \
    --set train.evaluate_every=0 --set data.dev='[]' \
    --set train.batch_size=32 --set train.micro_batch_size=4 \
    "${model[@]}" \
    --set train.learning_rate=1e-5 >"$out/$1.log" 2>&1 ||
    { tail -n 3 "$out/$1.log" >&2; exit 1; }
}
for turn in 1 2 3; do
  run "one-$turn" "$cores"
  run "all-$turn" 1 launch --processes "$cores"
done
build/release/bin/sum_bench --benchmark_min_time=2 \
  --benchmark_out="$out/sums.json" --benchmark_out_format=json \
  >"$out/sums.log" 2>&1
"$realetc" estimate tasks/wikihop/configs/demo.json "${model[@]}" \
  2>/dev/null >"$out/estimate-here"
for size in base large; do
  "$realetc" estimate "tasks/pretrain/configs/etc_$size.json" \
    --set tokenizer.vocabulary= 2>/dev/null >"$out/estimate-$size"
done

python3 - "$out" "$cores" <<'END'
import json
import statistics
import sys

folder, cores = sys.argv[1], int(sys.argv[2])


def lines(name):
    with open(f"{folder}/{name}/seed-1/metrics.jsonl", encoding="utf-8") as file:
        read = [json.loads(line) for line in file]
    return [line for line in read if "loss" in line][2:]


def speeds(kind):
    return [line["tokens_per_second"] for turn in "123"
            for line in lines(f"{kind}-{turn}")]


one, several = statistics.median(speeds("one")), statistics.median(speeds("all"))
waiting = statistics.median(
    line["seconds_communicating"] for turn in "123"
    for line in lines(f"all-{turn}"))
update = statistics.median(
    line["tokens"] / line["tokens_per_second"] for turn in "123"
    for line in lines(f"all-{turn}"))
with open(f"{folder}/sums.json", encoding="utf-8") as file:
    sums = {b["name"].split("/")[1]: b for b in json.load(file)["benchmarks"]}


def parameters_of(name):
    with open(f"{folder}/estimate-{name}", encoding="utf-8") as file:
        return next(int(line[28:].replace(" ", "")) for line in file
                    if line.startswith("  total "))


print(f"1 process x {cores} threads       {one:8.0f} tokens/s")
print(f"{cores} processes x 1 thread       {several:8.0f} tokens/s")
print(f"ratio                         {several / one:8.2f}")
for size, line in sums.items():
    print(f"sum of {line['bytes'] / 1e9:.2f} GB ({size})"
          f"{line['real_time'] / 1e3:14.2f} s, {line['bytes_sent'] / 1e9:.2f} GB "
          "sent by each")
gigabytes = 4 * parameters_of("here") / 1e9
alone = gigabytes * 1e9 / sums["base"]["bytes"] * sums["base"]["real_time"] / 1e3
print(f"an update                     {update:8.2f} s")
print(f"sums of its {gigabytes:.2f} GB, alone    {alone:8.2f} s")
print(f"waited for them and others    {waiting:8.2f} s, so at least "
      f"{max(0, 1 - waiting / alone):.0%} of the sums were hidden")


def seconds(text):
    number, unit = text.split()
    return float(number) * {"ms": 1e-3, "s": 1, "min": 60, "h": 3600,
                            "days": 86400}[unit]


def settings_of(size):
    """Seconds of an update here, its micro-batches, bytes of gradients."""
    with open(f"{folder}/estimate-{size}", encoding="utf-8") as file:
        update = next(seconds(line[28:].strip()) for line in file
                      if line.startswith("  one update "))
    with open(f"tasks/pretrain/configs/etc_{size}.json", encoding="utf-8") as file:
        train = json.load(file)["train"]
    return (update, train["batch_size"] // train["micro_batch_size"],
            4 * parameters_of(size))


def efficiency(size, processes, per_process, networks):
    """Of processes that are each so many times as fast as this machine; networks
    are (ends of the ring, bytes a second) whose sums follow each other."""
    update, micro_batches, gradients = settings_of(size)
    update /= per_process
    sums = sum(2 * (ends - 1) / ends * gradients / rate for ends, rate in networks)
    here = update * -(-micro_batches // processes) / micro_batches
    # Two thirds of a micro-batch are its backward pass.
    hidden = 2 / 3 * update / micro_batches
    return update / processes / (here + max(0, sums - hidden))


def table(title, head, rows):
    print(f"\n{title}")
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


GBIT = 1e9 / 8
nodes = [1, 2, 4, 8, 16, 32, 64]
table("efficiency by the model, of N nodes like this one",
      ["model, network", "GB of gradients"] + [f"N = {n}" for n in nodes],
      [[f"{size}, {gigabits} Gbit/s", f"{settings_of(size)[2] / 1e9:.2f}"] +
       [f"{efficiency(size, n, 1, [(n, gigabits * GBIT)]):.3f}" for n in nodes]
       for size in ("base", "large") for gigabits in (10, 100)])

# NCCL sums within a machine first, then over the network.
table("on paper: 2 machines of 8 GPUs, each N times as fast as this machine; 200 "
      "GB/s within a machine",
      ["model, network", "an update here", "GB sent by a machine"] +
      [f"N = {n}" for n in (10, 30, 100, 300)],
      [[f"{size}, {gigabits} Gbit/s", f"{settings_of(size)[0] / 60:.0f} min",
        f"{settings_of(size)[2] / 1e9:.2f}"] +
       [f"{efficiency(size, 16, n, [(8, 200e9), (2, gigabits * GBIT)]):.3f}"
        for n in (10, 30, 100, 300)]
       for size in ("base", "large") for gigabits in (10, 100)])
END
