// The encoder-decoder at the size "small" of doc/translation.md 10: 3 + 3
// layers, hidden size 256, 4 heads, a vocabulary of 8000.
//
//   Translation/update/<off|mean>/<fp32|bf16>/tokens:N/threads:T
//   Translation/decode/<off|mean>/sentences:B/beam:K/threads:T
//
// An update is forward and backward of N target tokens in sentences of 16, with
// the dropout of that configuration; tokens_per_second counts target tokens.
// Decoding is beam search over sources of 16 tokens by a model with random
// weights, 16 tokens long.
//
//   translation_bench --write DIRECTORY
//
// writes the model of decoding without residual scores as fairseq's model.pt,
// and its sources and all hypotheses of each as translations.json, for
// bench/translation_peers.py.

#include <benchmark/benchmark.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/linear.h"
#include "base/status_macros.h"
#include "bench/machine.h"
#include "bench/run_benchmarks.h"
#include "etc/encoder_decoder/fairseq_checkpoint.h"
#include "etc/encoder_decoder/model.h"
#include "etc/encoder_decoder/translate.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

constexpr int64_t kLength = 16;
constexpr int64_t kVocabulary = 8000;

EncoderDecoder SmallModel(const std::string& residual_attention) {
  torch::manual_seed(1);
  EncoderDecoderConfig config;
  config.vocab_size = kVocabulary;
  config.hidden_size = 256;
  config.intermediate_size = 1024;
  config.num_attention_heads = 4;
  config.num_encoder_layers = 3;
  config.num_decoder_layers = 3;
  config.hidden_dropout_prob = 0.3;
  config.attention_probs_dropout_prob = 0.1;
  config.activation_dropout_prob = 0.1;
  config.encoder_residual_attention = residual_attention;
  config.decoder_residual_attention = residual_attention;
  config.cross_residual_attention = residual_attention;
  return EncoderDecoder(config);
}

torch::Tensor RandomSentences(int64_t count) {
  return torch::randint(4, kVocabulary, {count, kLength}, torch::kInt64);
}

void UpdateBench(benchmark::State& state, const std::string& mode,
                 LinearPrecision precision) {
  at::set_num_threads(static_cast<int>(state.range(1)));
  EncoderDecoder model = SmallModel(mode);
  model->set_linear_precision(precision);
  const int64_t sentences = state.range(0) / kLength;
  const torch::Tensor source = RandomSentences(sentences);
  const torch::Tensor targets = RandomSentences(sentences);
  std::vector<torch::Tensor> parameters = model->parameters();
  for (auto _ : state) {
    for (torch::Tensor& parameter : parameters) {
      parameter.mutable_grad().reset();  // as training does
    }
    model->Loss(source, targets, targets, /*smoothing=*/0.1).loss.backward();
  }
  state.counters["tokens_per_second"] =
      benchmark::Counter(static_cast<double>(sentences * kLength),
                         benchmark::Counter::kIsIterationInvariantRate);
}

// The search of DecodeBench.
TranslateOptions DecodeOptions(int64_t beam_size) {
  return {.beam = {.beam_size = beam_size,
                   .min_length = kLength - 1,
                   .max_length = kLength - 1}};
}

void DecodeBench(benchmark::State& state, const std::string& mode) {
  at::set_num_threads(static_cast<int>(state.range(2)));
  EncoderDecoder model = SmallModel(mode);
  model->eval();
  const torch::Tensor source = RandomSentences(state.range(0));
  const TranslateOptions options = DecodeOptions(state.range(1));
  for (auto _ : state) {
    benchmark::DoNotOptimize(Translate(model, source, options));
  }
  state.counters["sentences_per_second"] =
      benchmark::Counter(static_cast<double>(state.range(0)),
                         benchmark::Counter::kIsIterationInvariantRate);
}

absl::Status WriteForPeers(const std::string& directory) {
  constexpr int64_t kSentences = 128;
  constexpr int64_t kBeam = 5;
  EncoderDecoder model = SmallModel("off");
  model->eval();
  const torch::Tensor source = RandomSentences(kSentences);
  nlohmann::json sources = nlohmann::json::array();
  for (int64_t i = 0; i < kSentences; ++i) {
    const torch::Tensor row = source[i].contiguous();
    sources.push_back(std::vector<int64_t>(row.data_ptr<int64_t>(),
                                           row.data_ptr<int64_t>() + kLength));
  }
  TranslateOptions options = DecodeOptions(kBeam);
  options.beam.num_best = kBeam;
  nlohmann::json translations = nlohmann::json::array();
  for (const auto& hypotheses : Translate(model, source, options)) {
    nlohmann::json of_source = nlohmann::json::array();
    for (const BeamHypothesis& hypothesis : hypotheses) {
      of_source.push_back(hypothesis.tokens);
    }
    translations.push_back(std::move(of_source));
  }
  ETC_RETURN_IF_ERROR(WriteFileAtomically(
      directory + "/translations.json",
      JsonText(nlohmann::json{{"sources", sources},
                              {"translations", translations}})));
  return WriteFairseqCheckpoint(directory + "/model.pt", model);
}

void RegisterTranslation() {
  for (const std::string mode : {"off", "mean"}) {
    for (const auto& [name, precision] :
         {std::pair("fp32", LinearPrecision::kFloat32),
          std::pair("bf16", LinearPrecision::kBfloat16)}) {
      AddBenchmark("Translation/update/" + mode + "/" + name,
                   [mode, precision = precision](benchmark::State& state) {
                     UpdateBench(state, mode, precision);
                   })
          ->ArgNames({"tokens", "threads"})
          ->Args({2048, 1})
          ->Args({2048, 2})
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
    AddBenchmark("Translation/decode/" + mode,
                 [mode](benchmark::State& state) { DecodeBench(state, mode); })
        ->ArgNames({"sentences", "beam", "threads"})
        ->Args({128, 5, 1})
        ->Args({128, 5, 2})
        ->Args({1, 5, 2})
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--write") {
    const absl::Status written = etc::WriteForPeers(argv[2]);
    if (!written.ok()) {
      std::cerr << written.message() << "\n";
    }
    return written.ok() ? 0 : 1;
  }
  return etc::RunTensorBenchmarks(argc, argv, etc::RegisterTranslation);
}
