// `realetc attention`: entropy and divergence of all heads, 12 layers of base
// with random weights.
//
//   Analysis/<bert|etc>/<off|sum>/tokens:T/globals:G/threads:N
//
// BERT has T tokens an example; ETC has T long and G global ones. An iteration
// adds an example.
//
//   examples_per_second
//   peak_bytes     weights included, after all iterations: more iterations
//                  (--benchmark_min_time) show that memory does not grow with
//                  the number of examples
//   process_bytes  the same with what the process had before

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>

#include "bench/machine.h"
#include "bench/run_benchmarks.h"
#include "etc/bert_input.h"
#include "etc/model.h"
#include "tasks/analysis/pass.h"

namespace etc {
namespace {

struct AnalysisShape {
  int64_t tokens = 0;
  int64_t globals = 0;
};

EtcConfig ConfigOf(bool is_bert, const std::string& residual) {
  absl::StatusOr<EtcConfig> config =
      EtcConfigPreset(is_bert ? "bert_base" : "base");
  TORCH_CHECK(config.ok(), std::string(config.status().message()));
  config->residual_attention = residual;
  return *std::move(config);
}

EtcInput InputOf(const EtcConfig& config, const AnalysisShape& shape) {
  const auto ids = [&](int64_t length) {
    return torch::randint(config.vocab_size, {1, length}, torch::kInt64);
  };
  if (!config.has_long_tokens) {
    return BertInput(ids(shape.tokens));
  }
  EtcInput input;
  input.token_ids = ids(shape.tokens);
  input.global_token_ids = ids(shape.globals);
  input.attention = AttentionInputs(std::vector{
      UnrestrictedPattern(shape.tokens, shape.globals, config.local_radius,
                          config.relative_pos_max_distance)});
  return input;
}

void RunAnalysis(benchmark::State& state, bool is_bert,
                 const std::string& residual) {
  const AnalysisShape shape = {.tokens = state.range(0),
                               .globals = state.range(1)};
  at::set_num_threads(static_cast<int>(state.range(2)));
  torch::manual_seed(1);
  const PeakMemory memory;
  const EtcConfig config = ConfigOf(is_bert, residual);
  EtcModel model(config);
  model->eval();
  AttentionPass pass(
      model, {.max_long_length = is_bert ? 0 : shape.tokens,
              .max_global_length = is_bert ? shape.tokens : shape.globals});
  const EtcInput input = InputOf(config, shape);
  int64_t examples = 0;
  for (auto _ : state) {
    const absl::Status added = pass.Add(input, examples);
    TORCH_CHECK(added.ok(), std::string(added.message()));
    ++examples;
  }
  state.counters["examples_per_second"] = benchmark::Counter(
      static_cast<double>(examples), benchmark::Counter::kIsRate);
  state.counters["peak_bytes"] = memory.Bytes();
  state.counters["process_bytes"] = memory.ProcessBytes();
}

void RegisterAll() {
  for (const bool is_bert : {true, false}) {
    for (const std::string residual : {"off", "sum"}) {
      auto* family = AddBenchmark(
          "Analysis/" + std::string(is_bert ? "bert/" : "etc/") + residual,
          [=](benchmark::State& state) {
            RunAnalysis(state, is_bert, residual);
          });
      family->ArgNames({"tokens", "globals", "threads"})
          ->UseRealTime()
          ->Unit(benchmark::kSecond);
      if (is_bert) {
        family->Args({512, 0, 2});
      } else {
        family->Args({4096, 256, 2});
        family->Args({16384, 256, 2});
      }
    }
  }
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  return etc::RunTensorBenchmarks(argc, argv, etc::RegisterAll);
}
