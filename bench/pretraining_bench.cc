// Cost of the heads of pre-training: updates of pre-training beside updates of
// fine-tuning of the same size, taken in turns.
//
//   Pretraining/<base|bert_base>/<mlm|mlm_cpc|mlm_nsp>/residual:<off|sum>/
//     layers:N/length:L/micro_batch:B/threads:T
//
// Sizes are those of the presets but for the number of layers; random weights
// and tokens. An update has eight micro-batches of B full inputs. Fine-tuning
// has the same inputs and a head without layers that reads all outputs, as
// HotpotQA's does; tasks that read one stream or one token leave out some of
// the last layer.
//
//   of_fine_tuning     tokens/s of pre-training over those of fine-tuning: of
//                      each pair of updates, the median
//   more_bytes         what pre-training takes more at the peak: of an update,
//                      and with what its own parameters keep (themselves, their
//                      gradients and moments)
//   tokens_per_second  of pre-training
//   estimated_of_measured  the time of an update of pre-training that `realetc
//                      estimate` prints over what one takes

#include <benchmark/benchmark.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/pattern.h"
#include "bench/machine.h"
#include "bench/paired_times.h"
#include "bench/run_benchmarks.h"
#include "bench/training.h"
#include "tasks/pretrain/examples/draws.h"
#include "tasks/pretrain/examples/packed_example.h"
#include "tasks/pretrain/heads/pretrain_head.h"
#include "tasks/pretrain/pretrain_example.h"
#include "tasks/pretrain/pretrain_options.h"
#include "tasks/train/estimate.h"

namespace etc {
namespace {

constexpr int64_t kMicroBatches = 8;
constexpr int64_t kTokensOfSentence = 18;
// BERT's special pieces and all before them.
constexpr int32_t kMaskId = 103;
constexpr int32_t kFirstWord = 999;

struct Variant {
  std::string preset;
  std::string objective;
  std::string residual;
};

RunConfig ConfigOf(const Variant& variant, int64_t layers) {
  RunConfig config;
  absl::StatusOr<EtcConfig> model = EtcConfigPreset(variant.preset);
  TORCH_CHECK(model.ok(), std::string(model.status().message()));
  config.model = *std::move(model);
  config.model.num_hidden_layers = layers;
  config.model.use_hard_g2l_mask = config.model.has_long_tokens;
  config.model.residual_attention = variant.residual;
  return config;
}

// ETC's: one part of a document, of full length.
std::shared_ptr<PretrainExample> PackedInput(const RunConfig& config,
                                             const Variant& variant,
                                             int64_t length, Draws& draws) {
  const EtcConfig& model = config.model;
  PackedExampleOptions options;
  options.mlm.mask_id = kMaskId;
  options.mlm.vocab_size = static_cast<int32_t>(model.vocab_size);
  options.mlm.whole_words = true;
  options.cpc_rate = variant.objective == "mlm_cpc" ? 0.1 : 0;
  options.pattern = {
      .local_radius = model.local_radius,
      .relative_pos_max_distance = model.relative_pos_max_distance,
      .hard_g2l = model.use_hard_g2l_mask};
  DocumentPart part;
  while (part.pieces.size() < length) {
    part.pieces.Add(
        static_cast<int32_t>(draws.Integer(kFirstWord, model.vocab_size - 1)),
        /*continues=*/draws.Below(4) == 0);
    if (part.pieces.size() % kTokensOfSentence == 0 ||
        part.pieces.size() == length) {
      part.sentence_ends.push_back(part.pieces.size());
    }
  }
  PackedExampleWriter writer(&options);
  writer.Add(part, draws, draws);
  return writer.Finish();
}

// BERT's: a pair of full length.
std::shared_ptr<PretrainExample> PairInput(const RunConfig& config,
                                           int64_t length, Draws& draws) {
  auto example = std::make_shared<PretrainExample>();
  for (int64_t i = 0; i < length; ++i) {
    auto id = static_cast<int32_t>(
        draws.Integer(kFirstWord, config.model.vocab_size - 1));
    if (i % 7 == 1) {  // a seventh of the tokens
      example->masked_positions.push_back(static_cast<int32_t>(i));
      example->masked_labels.push_back(std::exchange(id, kMaskId));
    }
    example->global_token_ids.push_back(id);
    example->global_type_ids.push_back(i < length / 2 ? 0 : 1);
  }
  example->next_sentence = static_cast<int32_t>(draws.Below(2));
  example->pattern =
      UnrestrictedPattern(0, length, config.model.local_radius,
                          config.model.relative_pos_max_distance);
  return example;
}

// The same inputs with the targets of pre-training, and without.
struct Batches {
  TrainingBatch pretraining;
  TrainingBatch fine_tuning;
  int64_t tokens = 0;
  int64_t global_tokens = 0;  // of one input
};

Batches MakeBatches(const RunConfig& config, const Variant& variant,
                    int64_t length, int64_t micro_batch) {
  Batches batches;
  KeyedDraws draws({1});
  for (int64_t i = 0; i < kMicroBatches; ++i) {
    Examples pretraining;
    Examples fine_tuning;
    for (int64_t b = 0; b < micro_batch; ++b) {
      const std::shared_ptr<PretrainExample> example =
          config.model.has_long_tokens
              ? PackedInput(config, variant, length, draws)
              : PairInput(config, length, draws);
      pretraining.push_back(example);
      fine_tuning.push_back(std::make_shared<Example>(*example));
      batches.tokens += example->long_length() + example->global_length();
      batches.global_tokens = example->global_length();
    }
    batches.pretraining.micro_batches.push_back(std::move(pretraining));
    batches.fine_tuning.micro_batches.push_back(std::move(fine_tuning));
  }
  return batches;
}

double UpdateSeconds(Training* training) {
  const auto begin = std::chrono::steady_clock::now();
  training->Update();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

double UpdateBytes(Training* training) {
  const PeakMemory memory;
  training->Update();
  return memory.Bytes();
}

void RunPretraining(benchmark::State& state, const Variant& variant) {
  const RunConfig config = ConfigOf(variant, state.range(0));
  Batches batches =
      MakeBatches(config, variant, state.range(1), state.range(2));
  at::set_num_threads(static_cast<int>(state.range(3)));
  torch::manual_seed(1);
  PretrainOptions options;
  options.objective = variant.objective;
  Training fine_tuning(config, std::make_shared<MeanHead>(),
                       std::move(batches.fine_tuning));
  Training pretraining(config,
                       std::make_shared<PretrainHead>(config.model, options),
                       std::move(batches.pretraining));
  // The first updates make the optimizer's state.
  fine_tuning.Update();
  pretraining.Update();
  // A parameter, its gradient and two moments.
  constexpr double kBytesOfParameter = 16;
  state.counters["more_bytes"] =
      -UpdateBytes(&fine_tuning) + UpdateBytes(&pretraining) +
      kBytesOfParameter * static_cast<double>(pretraining.parameters() -
                                              fine_tuning.parameters());
  RunConfig full = config;
  full.train.micro_batch_size = state.range(2);
  full.train.batch_size = kMicroBatches * state.range(2);
  full.data.max_long_length = config.model.has_long_tokens ? state.range(1) : 0;
  full.data.max_global_length = batches.global_tokens;
  const HeadCost cost =
      PretrainHead(config.model, options).CostOf(LargestUpdate(full));
  const double estimated =
      EstimateStepTime(full, pretraining.parameters(), cost, MeasureRates(full))
          .total();
  std::vector<double> ratios;
  std::vector<double> times;
  for (auto _ : state) {
    const double without = UpdateSeconds(&fine_tuning);
    const double with = UpdateSeconds(&pretraining);
    ratios.push_back(without / with);
    times.push_back(with);
    state.SetIterationTime(with);
  }
  state.counters["of_fine_tuning"] = Median(std::move(ratios));
  state.counters["estimated_of_measured"] =
      estimated / Median(std::move(times));
  state.counters["tokens_per_second"] =
      benchmark::Counter(static_cast<double>(batches.tokens),
                         benchmark::Counter::kIsIterationInvariantRate);
}

void RegisterAll() {
  for (const char* preset : {"base", "bert_base"}) {
    const bool bert = std::string(preset) == "bert_base";
    for (const char* objective : {"mlm", bert ? "mlm_nsp" : "mlm_cpc"}) {
      for (const char* residual : {"off", "sum"}) {
        const Variant variant = {
            .preset = preset, .objective = objective, .residual = residual};
        auto* family = AddBenchmark(
            std::string("Pretraining/") + preset + "/" + objective +
                "/residual:" + residual,
            [=](benchmark::State& state) { RunPretraining(state, variant); });
        family->ArgNames({"layers", "length", "micro_batch", "threads"})
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
        for (const int64_t layers : {4, 12}) {
          family->Args({layers, bert ? 512 : 4096, bert ? 8 : 1, 2});
        }
      }
    }
  }
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  return etc::RunTensorBenchmarks(argc, argv, etc::RegisterAll);
}
