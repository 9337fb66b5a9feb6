#include "tasks/analysis/pass.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "attention/key_runs.h"
#include "attention/softmax_pattern.h"
#include "base/random.h"
#include "base/status_macros.h"

namespace etc {
namespace {

// Largest difference from 1 of a sum of weights, and of an entropy from its
// parts.
constexpr double kTolerance = 1e-4;
// One row of so many is computed by the definition as well.
constexpr size_t kCheckedRows = 64;
// Rows of each stream whose scores are measured in a batch.
constexpr int64_t kScoreRows = 64;
constexpr size_t kLargest = 8;

// --- Rows --------------------------------------------------------------------

// A row of a softmax and the keys that it sees.
struct VisibleRow {
  int64_t row = 0;  // b * length + query
  int64_t query = 0;
  int64_t own_keys = 0;
  int64_t other_keys = 0;
  int64_t keys() const { return own_keys + other_keys; }
};

int64_t CountKeys(const RunSetTable& table, int64_t query, int64_t begin,
                  int64_t end) {
  const RunSets sets = table.View();
  int64_t count = 0;
  if (sets.first != nullptr) {
    for (int32_t at = sets.first[query]; at < sets.last[query]; ++at) {
      count += std::max<int64_t>(
          0, std::min<int64_t>(sets.runs[at].end, end) -
                 std::max<int64_t>(sets.runs[at].begin, begin));
    }
  }
  return count;
}

// Keeps `most` of the rows, drawn by the key, in their order.
void DrawRows(uint64_t key, int64_t most, std::vector<VisibleRow>* rows) {
  if (most <= 0 || static_cast<int64_t>(rows->size()) <= most) {
    return;
  }
  const auto number = [&](const VisibleRow& row) {
    return CombineSeeds({key, static_cast<uint64_t>(row.query)});
  };
  std::sort(rows->begin(), rows->end(),
            [&](const VisibleRow& a, const VisibleRow& b) {
              return number(a) < number(b);
            });
  rows->resize(static_cast<size_t>(most));
  std::sort(rows->begin(), rows->end(),
            [](const VisibleRow& a, const VisibleRow& b) {
              return a.query < b.query;
            });
}

// The rows of a batch that count; adds those of a single key to `*single`.
std::vector<VisibleRow> CountedRows(const SoftmaxPattern& pattern,
                                    const AttentionPassOptions& options,
                                    uint64_t stream, int64_t first,
                                    int64_t* single) {
  TORCH_CHECK(pattern.runs != nullptr &&
                  static_cast<int64_t>(pattern.runs->size()) == pattern.batch,
              "the keys that tokens see should be known as runs");
  std::vector<VisibleRow> all;
  for (int64_t b = 0; b < pattern.batch; ++b) {
    const SoftmaxRuns& runs = (*pattern.runs)[static_cast<size_t>(b)];
    std::vector<VisibleRow> rows;
    for (int64_t i = 0; i < pattern.queries; ++i) {
      const KeyWindow& window = pattern.window;
      const bool restricted = window.is_restricted();
      const int64_t begin =
          restricted ? std::max<int64_t>(0, i - window.before) : 0;
      const int64_t end = restricted
                              ? std::min(pattern.own_keys, i + window.after + 1)
                              : pattern.own_keys;
      rows.push_back({.row = b * pattern.queries + i,
                      .query = i,
                      .own_keys = CountKeys(runs.own.visible, i, begin, end),
                      .other_keys = CountKeys(runs.other.visible, i, 0,
                                              pattern.other_keys)});
    }
    std::erase_if(rows, [](const VisibleRow& row) { return row.keys() == 0; });
    DrawRows(
        CombineSeeds({options.seed, stream, static_cast<uint64_t>(first + b)}),
        options.max_rows, &rows);
    *single += static_cast<int64_t>(std::erase_if(
        rows, [](const VisibleRow& row) { return row.keys() == 1; }));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

// Numbers of tokens of both streams.
struct TokenCounts {
  int64_t longs = 0;
  int64_t globals = 0;
};

// Bytes of the weights of these rows over these keys, in all layers and heads.
int64_t WeightBytes(const EtcConfig& config, const TokenCounts& rows,
                    const TokenCounts& keys) {
  const int64_t pairs =
      rows.longs * (2 * config.local_radius + 1 + keys.globals) +
      rows.globals * (keys.longs + keys.globals);
  return pairs * config.num_hidden_layers * config.num_attention_heads *
         static_cast<int64_t>(sizeof(float));
}

torch::Tensor IndicesOf(absl::Span<const VisibleRow> rows) {
  torch::Tensor indices =
      torch::empty({static_cast<int64_t>(rows.size())}, torch::kInt64);
  auto* next = indices.data_ptr<int64_t>();
  for (const VisibleRow& row : rows) {
    *next++ = row.row;
  }
  return indices;
}

// --- Entropy and divergence of many rows -------------------------------------

// Both blocks of a slice of rows: [R, H, keys], float32 or float64.
struct SliceWeights {
  torch::Tensor own;
  torch::Tensor other;
};

// Weights at least the smallest normal number, so that 0 ln 0 is 0.
torch::Tensor AboveZero(const torch::Tensor& p) {
  return p.clamp_min(std::numeric_limits<float>::min());
}

// -sum(p ln p) over the keys of a block, as Entropy has it: [R, H] float64.
torch::Tensor EntropyOfRows(const torch::Tensor& p) {
  return AboveZero(p).log_().mul_(p).sum(-1).neg_().to(torch::kFloat64);
}

// JensenShannon of one block, not halved, in nats: [R, H] float64.
torch::Tensor DivergenceOfRows(const torch::Tensor& p, const torch::Tensor& q) {
  const torch::Tensor middle = AboveZero((p + q).mul_(0.5));
  const auto toward = [&](const torch::Tensor& side) {
    return AboveZero(side).div_(middle).log_().mul_(side).sum(-1);
  };
  return (toward(p) + toward(q)).to(torch::kFloat64);
}

// --- One row -----------------------------------------------------------------

// The sums of the 1 and the 8 largest weights of both blocks.
struct LargestMass {
  double top_1 = 0;
  double top_8 = 0;
};

LargestMass LargestOf(absl::Span<const float> own,
                      absl::Span<const float> other) {
  std::array<float, kLargest> largest = {};  // descending
  for (const absl::Span<const float> block : {own, other}) {
    for (const float p : block) {
      if (p > largest.back()) {
        size_t at = kLargest - 1;
        for (; at > 0 && largest[at - 1] < p; --at) {
          largest[at] = largest[at - 1];
        }
        largest[at] = p;
      }
    }
  }
  return {.top_1 = largest.front(),
          .top_8 = std::accumulate(largest.begin(), largest.end(), 0.0)};
}

double SumOf(absl::Span<const float> block) {
  return std::accumulate(block.begin(), block.end(), 0.0);
}

// Entropy of a block renormalised, from its -sum(p ln p) and mass.
double Renormalised(double entropy, double mass) {
  return mass > 0 ? std::max(0.0, entropy / mass + std::log(mass)) : 0;
}

double Term(double p) { return p > 0 ? -p * std::log(p) : 0; }

// The mistake in an entropy, by the definition; empty: none.
std::string CheckByDefinition(absl::Span<const float> own,
                              absl::Span<const float> other, double entropy) {
  const std::vector<double> first(own.begin(), own.end());
  const std::vector<double> second(other.begin(), other.end());
  const double whole = Entropy(first) + Entropy(second);
  const double joint = SplitEntropy(first, second).joint();
  if (std::abs(whole - joint) <= kTolerance &&
      std::abs(whole - entropy) <= kTolerance) {
    return "";
  }
  return absl::StrCat("should have an entropy of ", whole,
                      " nats, but its blocks make it ", joint, " and the pass ",
                      entropy);
}

// --- A slice -----------------------------------------------------------------

// Numbers of a slice in one layer.
struct SliceLayer {
  absl::Span<const VisibleRow> rows;
  SliceWeights weights;         // float32
  torch::Tensor own_entropy;    // [R, H] float64, not renormalised
  torch::Tensor other_entropy;  // idem
  torch::Tensor divergence;     // [R, H] float64; undefined: lowest layer
  bool window = false;          // own columns are offsets, not keys
};

absl::Span<const float> RowOf(const torch::Tensor& block, int64_t row,
                              int64_t head) {
  const int64_t keys = block.size(2);
  return {block.data_ptr<float>() + (row * block.size(1) + head) * keys,
          static_cast<size_t>(keys)};
}

void AddOffsets(absl::Span<const float> own, const VisibleRow& row, bool window,
                std::vector<double>* by_offset) {
  // A window begins at the offset -radius, keys at -query.
  const auto radius = static_cast<int64_t>(by_offset->size() / 2);
  const int64_t begin = window ? 0 : radius - row.query;
  for (size_t k = 0; k < own.size(); ++k) {
    const int64_t at = begin + static_cast<int64_t>(k);
    if (own[k] > 0) {
      (*by_offset)[static_cast<size_t>(at)] += own[k];
    }
  }
}

// Adds one row of one head; returns a mistake in its weights, or nothing.
std::string AddRow(const SliceLayer& layer, size_t index, int64_t head,
                   HeadStatistics* statistics) {
  const VisibleRow& row = layer.rows[index];
  const auto r = static_cast<int64_t>(index);
  const absl::Span<const float> own = RowOf(layer.weights.own, r, head);
  const absl::Span<const float> other = RowOf(layer.weights.other, r, head);
  const double a = SumOf(own);
  const double b = SumOf(other);
  if (!(std::abs(a + b - 1.0) <= kTolerance)) {
    return absl::StrCat("should have weights that sum to 1, but to ", a + b);
  }
  const double in_own =
      layer.own_entropy
          .data_ptr<double>()[r * layer.own_entropy.size(1) + head];
  const double in_other =
      layer.other_entropy
          .data_ptr<double>()[r * layer.other_entropy.size(1) + head];
  const double entropy = std::max(0.0, in_own + in_other);
  if (index % kCheckedRows == 0) {
    if (std::string wrong = CheckByDefinition(own, other, entropy);
        !wrong.empty()) {
      return wrong;
    }
  }
  statistics->entropy.Add(entropy);
  statistics->normalised.Add(NormalisedEntropy(entropy, row.keys()));
  statistics->own_mass.Add(a);
  RowSums* sums = &statistics->sums;
  sums->own_mass += a;
  sums->own_share +=
      static_cast<double>(row.own_keys) / static_cast<double>(row.keys());
  sums->between += Term(a) + Term(b);
  sums->own_entropy += Renormalised(in_own, a);
  sums->other_entropy += Renormalised(in_other, b);
  const LargestMass largest = LargestOf(own, other);
  sums->top_1 += largest.top_1;
  sums->top_8 += largest.top_8;
  if (!sums->by_offset.empty()) {
    AddOffsets(own, row, layer.window, &sums->by_offset);
  }
  return "";
}

// Adds the rows of a slice in one layer, each head by one thread.
absl::Status AddLayer(const SliceLayer& layer, int64_t index, bool jsd_distance,
                      PopulationStatistics* population) {
  const auto at = static_cast<size_t>(index);
  std::vector<HeadStatistics>& heads = population->heads[at];
  std::vector<std::string> wrong(heads.size());
  at::parallel_for(
      0, static_cast<int64_t>(heads.size()), 1,
      [&](int64_t begin, int64_t end) {
        for (int64_t head = begin; head < end; ++head) {
          const auto h = static_cast<size_t>(head);
          for (size_t r = 0; r < layer.rows.size(); ++r) {
            const std::string mistake = AddRow(layer, r, head, &heads[h]);
            if (!mistake.empty()) {
              wrong[h] = absl::StrCat(
                  "attention of layer ", index, ", head ", head, ", ",
                  population->name == "global" ? "global" : "",
                  population->name == "global" ? " " : "", "token ",
                  layer.rows[r].query, " ", mistake);
              return;
            }
            if (layer.divergence.defined()) {
              const double value = std::clamp(
                  layer.divergence
                      .data_ptr<double>()[static_cast<int64_t>(r) *
                                              layer.divergence.size(1) +
                                          head],
                  0.0, 1.0);
              population->divergence[at - 1][h].Add(
                  jsd_distance ? std::sqrt(value) : value);
            }
          }
        }
      });
  for (const std::string& mistake : wrong) {
    if (!mistake.empty()) {
      return absl::InternalError(mistake);
    }
  }
  return absl::OkStatus();
}

torch::Tensor OnCpu(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU).contiguous();
}

// Adds all layers of a slice; `weights` has one entry for each.
absl::Status AddSlice(absl::Span<const VisibleRow> rows,
                      const std::vector<SliceWeights>& weights,
                      bool jsd_distance, PopulationStatistics* population) {
  for (size_t l = 0; l < weights.size() && !rows.empty(); ++l) {
    const SliceWeights& here = weights[l];
    SliceLayer layer{
        .rows = rows,
        .weights = {.own = OnCpu(here.own.to(torch::kFloat32)),
                    .other = OnCpu(here.other.to(torch::kFloat32))},
        .own_entropy = OnCpu(EntropyOfRows(here.own)),
        .other_entropy = OnCpu(EntropyOfRows(here.other)),
        .window = population->name == "long"};
    if (l > 0) {
      const SliceWeights& below = weights[l - 1];
      layer.divergence = OnCpu((DivergenceOfRows(here.own, below.own) +
                                DivergenceOfRows(here.other, below.other))
                                   .mul_(0.5 / std::log(2.0)));
    }
    ETC_RETURN_IF_ERROR(
        AddLayer(layer, static_cast<int64_t>(l), jsd_distance, population));
  }
  return absl::OkStatus();
}

// --- Scores ------------------------------------------------------------------

void AddMoments(const NumberMoments& part, NumberMoments* whole) {
  whole->count += part.count;
  whole->sum += part.sum;
  whole->sum_of_squares += part.sum_of_squares;
}

// The four blocks of a layer, by their names.
constexpr std::array<std::pair<const char*, BlockStatistics LayerStatistics::*>,
                     4>
    kBlockNames = {{{"l2l", &LayerStatistics::l2l},
                    {"l2g", &LayerStatistics::l2g},
                    {"g2g", &LayerStatistics::g2g},
                    {"g2l", &LayerStatistics::g2l}}};

}  // namespace

struct AttentionPass::State {
  EtcModel encoder;
  AttentionPassOptions options;
  // Long rows before global ones.
  std::vector<PopulationStatistics> populations;
  std::vector<LayerStatistics> scores;

  // The rows of one stream of a batch.
  std::vector<VisibleRow> Rows(const EtcInput& input, QuerySide side,
                               int64_t first, PopulationStatistics* population);
  absl::Status AddRows(const EtcInput& input,
                       absl::Span<const VisibleRow> longs,
                       absl::Span<const VisibleRow> globals);
  void AddScores();
};

AttentionPass::AttentionPass(EtcModel encoder,
                             const AttentionPassOptions& options)
    : state_(std::make_unique<State>(
          State{.encoder = std::move(encoder), .options = options})) {
  const EtcConfig& config = state_->encoder->config();
  const auto add = [&](const char* name, int64_t max_keys, int64_t radius) {
    state_->populations.push_back(MakePopulation(
        name, config.num_hidden_layers, config.num_attention_heads,
        std::max<int64_t>(2, max_keys), radius));
  };
  const int64_t globals = options.max_global_length;
  if (config.has_long_tokens) {
    add("long",
        std::min(options.max_long_length, 2 * config.local_radius + 1) +
            globals,
        config.local_radius);
    add("global", options.max_long_length + globals, 0);
  } else {
    add("all", globals, std::max<int64_t>(1, globals - 1));
  }
}

AttentionPass::~AttentionPass() = default;

std::vector<VisibleRow> AttentionPass::State::Rows(
    const EtcInput& input, QuerySide side, int64_t first,
    PopulationStatistics* population) {
  const std::vector<VisibleRow> rows = CountedRows(
      input.attention.Softmax(
          side, input.global_token_ids.size(0), input.token_ids.size(1),
          input.global_token_ids.size(1), encoder->config().local_radius),
      options, side == QuerySide::kLong ? 0 : 1, first,
      &population->rows_single_key);
  population->rows += static_cast<int64_t>(rows.size());
  return rows;
}

absl::Status AttentionPass::State::AddRows(
    const EtcInput& input, absl::Span<const VisibleRow> longs,
    absl::Span<const VisibleRow> globals) {
  const Inspected inspected = encoder(input).inspected;
  std::vector<SliceWeights> of_longs;
  std::vector<SliceWeights> of_globals;
  for (const auto& [index, layer] : inspected.layers) {
    const FourBlocks& p = layer.probabilities;
    of_longs.push_back({.own = p.l2l, .other = p.l2g});
    of_globals.push_back({.own = p.g2g, .other = p.g2l});
  }
  if (populations.size() > 1) {
    ETC_RETURN_IF_ERROR(
        AddSlice(longs, of_longs, options.jsd_distance, &populations.front()));
  }
  return AddSlice(globals, of_globals, options.jsd_distance,
                  &populations.back());
}

void AttentionPass::State::AddScores() {
  const std::vector<LayerStatistics> measured = encoder->TakeStatistics();
  scores.resize(std::max(scores.size(), measured.size()));
  for (size_t l = 0; l < measured.size(); ++l) {
    for (const auto& [name, block] : kBlockNames) {
      const BlockStatistics& part = measured[l].*block;
      BlockStatistics* whole = &(scores[l].*block);
      AddMoments(part.new_scores, &whole->new_scores);
      AddMoments(part.carried_scores, &whole->carried_scores);
    }
  }
}

int64_t AttentionPass::batch_size() const {
  const TokenCounts longest = {.longs = state_->options.max_long_length,
                               .globals = state_->options.max_global_length};
  const int64_t bytes =
      WeightBytes(state_->encoder->config(), longest, longest);
  return std::max<int64_t>(1, state_->options.slice_bytes / bytes);
}

absl::Status AttentionPass::Add(EtcInput input, int64_t first) {
  const c10::InferenceMode no_gradients;
  const EtcConfig& config = state_->encoder->config();
  TORCH_CHECK(
      input.token_ids.size(1) <= state_->options.max_long_length &&
          input.global_token_ids.size(1) <= state_->options.max_global_length,
      "examples should not be longer than the pass was made for");
  std::vector<VisibleRow> longs;
  if (config.has_long_tokens) {
    longs = state_->Rows(input, QuerySide::kLong, first,
                         &state_->populations.front());
  }
  const std::vector<VisibleRow> globals = state_->Rows(
      input, QuerySide::kGlobal, first, &state_->populations.back());
  const int64_t bytes =
      WeightBytes(config,
                  {.longs = static_cast<int64_t>(longs.size()),
                   .globals = static_cast<int64_t>(globals.size())},
                  {.longs = input.token_ids.size(1),
                   .globals = input.global_token_ids.size(1)});
  const int64_t slices = 1 + bytes / state_->options.slice_bytes;
  std::vector<int64_t> layers(static_cast<size_t>(config.num_hidden_layers));
  std::iota(layers.begin(), layers.end(), 0);
  input.inspect = {.probabilities_of = layers};
  const auto part = [&](const std::vector<VisibleRow>& rows, int64_t slice) {
    const auto count = static_cast<int64_t>(rows.size());
    const auto begin = static_cast<size_t>(count * slice / slices);
    const auto end = static_cast<size_t>(count * (slice + 1) / slices);
    return absl::MakeConstSpan(rows).subspan(begin, end - begin);
  };
  for (int64_t slice = 0; slice < slices; ++slice) {
    input.inspect.rows = {.longs = IndicesOf(part(longs, slice)),
                          .globals = IndicesOf(part(globals, slice))};
    state_->encoder->set_statistics_rows(slice == 0 ? kScoreRows : 0);
    ETC_RETURN_IF_ERROR(
        state_->AddRows(input, part(longs, slice), part(globals, slice)));
    state_->AddScores();
  }
  state_->encoder->set_statistics_rows(0);
  return absl::OkStatus();
}

const std::vector<PopulationStatistics>& AttentionPass::populations() const {
  return state_->populations;
}

std::vector<std::vector<ScoreDeviations>> AttentionPass::Scores() const {
  std::vector<std::vector<ScoreDeviations>> all;
  for (const LayerStatistics& layer : state_->scores) {
    std::vector<ScoreDeviations>& blocks = all.emplace_back();
    for (const auto& [name, block] : kBlockNames) {
      const BlockStatistics& moments = layer.*block;
      if (moments.new_scores.count > 0) {
        blocks.push_back(
            {.block = name,
             .pairs = moments.new_scores.count,
             .new_scores = moments.new_scores.standard_deviation(),
             .carried_scores = moments.carried_scores.standard_deviation()});
      }
    }
  }
  return all;
}

}  // namespace etc
