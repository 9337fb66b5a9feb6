#include "tasks/analysis/pass.h"

#include <c10/core/InferenceMode.h>
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <exception>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "attention/entropy.h"
#include "attention/entropy_term.h"
#include "attention/inspection.h"
#include "attention/key_runs.h"
#include "base/parallel_tasks.h"
#include "base/status_macros.h"
#include "tasks/analysis/visible_rows.h"

namespace etc {
namespace {

// Largest difference from 1 of a sum of weights.
constexpr double kTolerance = 1e-4;
// Bytes of the weights of a batch, in all layers.
constexpr int64_t kBatchBytes = 256'000'000;
// Bytes of the weights that one thread computes together: with what they are
// computed from they stay in its cache.
constexpr int64_t kTaskBytes = 1'000'000;
// Rows of each stream whose scores are measured in a batch.
constexpr int64_t kScoreRows = 64;
constexpr size_t kLargest = 8;

// Numbers of tokens of both streams.
struct TokenCounts {
  int64_t longs = 0;
  int64_t globals = 0;
};

// Bytes of the weights of a row of each stream, in all heads of a layer.
TokenCounts RowBytes(const EtcConfig& config, const TokenCounts& keys) {
  const int64_t bytes =
      config.num_attention_heads * static_cast<int64_t>(sizeof(float));
  return {.longs = bytes * (2 * config.local_radius + 1 + keys.globals),
          .globals = bytes * (keys.longs + keys.globals)};
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

torch::Tensor OnCpu(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU).contiguous();
}

// Entropy of a block, not renormalised: [R, H] float64.
torch::Tensor EntropyOfRows(const torch::Tensor& p) {
  return OnCpu(EntropyOfWeights(p).to(torch::kFloat64));
}

// Jensen-Shannon divergence of one block, not halved, in nats: [R, H] float64.
torch::Tensor DivergenceOfRows(const torch::Tensor& p, const torch::Tensor& q) {
  const torch::Tensor middle = AboveZero((p + q).mul_(0.5));
  const auto toward = [&](const torch::Tensor& side) {
    return AboveZero(side).div_(middle).log_().mul_(side).sum(-1);
  };
  return (toward(p) + toward(q)).to(torch::kFloat64);
}

// Jensen-Shannon divergence over both blocks, base 2, not clamped: [R, H]
// float64.
torch::Tensor DivergenceOf(const SliceWeights& p, const SliceWeights& q) {
  return (DivergenceOfRows(p.own, q.own) + DivergenceOfRows(p.other, q.other))
      .mul_(0.5 / std::log(2.0));
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

// --- A slice -----------------------------------------------------------------

// Numbers of a slice in one layer.
struct SliceLayer {
  absl::Span<const VisibleRow> rows;
  absl::Span<const DocumentTokens> documents;  // by example of the batch
  SliceWeights weights;                        // float32
  torch::Tensor own_entropy;    // [R, H] float64, not renormalised
  torch::Tensor other_entropy;  // idem
  torch::Tensor divergence;     // [R, H] float64; undefined: lowest layer
  // AddSimilarity of its rows; empty: none is sampled.
  std::vector<double> similarity;
  // Rows of ETC's long tokens: own columns are offsets, not keys.
  bool is_long = false;
};

absl::Span<const float> RowOf(const torch::Tensor& block, int64_t row,
                              int64_t head) {
  const int64_t keys = block.size(2);
  return {block.data_ptr<float>() + (row * block.size(1) + head) * keys,
          static_cast<size_t>(keys)};
}

void AddOffsets(absl::Span<const float> own, const VisibleRow& row,
                bool is_long, std::vector<double>* by_offset) {
  // A window begins at the offset -radius, keys at -query.
  const auto radius = static_cast<int64_t>(by_offset->size() / 2);
  const int64_t begin = is_long ? 0 : radius - row.query;
  for (size_t k = 0; k < own.size(); ++k) {
    const int64_t at = begin + static_cast<int64_t>(k);
    if (own[k] > 0) {
      (*by_offset)[static_cast<size_t>(at)] += own[k];
    }
  }
}

// A row's weights, and the example that it is in.
struct RowWeights {
  const VisibleRow& row;
  const DocumentTokens& document;
  bool is_long = false;
  absl::Span<const float> own;
  absl::Span<const float> other;
};

// RowSums::linked_mass of one row.
double LinkedMass(const RowWeights& weights) {
  const auto query = static_cast<size_t>(weights.row.query);
  if (weights.row.linked_keys == 0) {
    return 0;
  }
  if (weights.is_long) {
    return weights.other[static_cast<size_t>(weights.document.sentence[query])];
  }
  double mass = 0;
  for (const KeyRun& run : weights.document.tokens_of[query]) {
    mass +=
        SumOf(weights.other.subspan(static_cast<size_t>(run.begin),
                                    static_cast<size_t>(run.end - run.begin)));
  }
  return mass;
}

// Adds the mass on keys of each kind; `radius` is that of a long row's window.
void AddKindMass(const RowWeights& weights, int64_t radius,
                 std::vector<double>* kind_mass) {
  const absl::Span<const float> globals =
      weights.is_long ? weights.other : weights.own;
  for (const KindToken& key : weights.document.globals) {
    (*kind_mass)[key.kind] += globals[static_cast<size_t>(key.token)];
  }
  const absl::Span<const float> longs =
      weights.is_long ? weights.own : weights.other;
  const int64_t first = weights.is_long ? weights.row.query - radius : 0;
  const std::vector<KindToken>& tokens = weights.document.longs;
  for (auto next = std::lower_bound(
           tokens.begin(), tokens.end(), first,
           [](const KindToken&a, int64_t b) { return a.token < b; });
       next != tokens.end() &&
       next->token < first + static_cast<int64_t>(longs.size());
       ++next) {
    (*kind_mass)[next->kind] += longs[static_cast<size_t>(next->token - first)];
  }
}

// Adds the entropy of a row to the sums of its classes.
void AddByClass(const VisibleRow& row, double entropy, RowSums* sums) {
  if (row.position_class >= 0 && !sums->entropy_by_position.empty()) {
    sums->entropy_by_position[static_cast<size_t>(row.position_class)] +=
        entropy;
  }
  if (row.sentence_class >= 0) {
    sums->entropy_by_sentence[static_cast<size_t>(row.sentence_class)] +=
        entropy;
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
  statistics->entropy.Add(entropy);
  statistics->normalised.Add(entropy /
                             std::log(static_cast<double>(row.keys())));
  statistics->own_mass.Add(a);
  RowSums* sums = &statistics->sums;
  sums->own_mass += a;
  sums->own_share +=
      static_cast<double>(row.own_keys) / static_cast<double>(row.keys());
  sums->between += EntropyTerm(a) + EntropyTerm(b);
  sums->own_entropy += Renormalised(in_own, a);
  sums->other_entropy += Renormalised(in_other, b);
  const LargestMass largest = LargestOf(own, other);
  sums->top_1 += largest.top_1;
  sums->top_8 += largest.top_8;
  if (!sums->by_offset.empty()) {
    AddOffsets(own, row, layer.is_long, &sums->by_offset);
  }
  const RowWeights weights = {
      .row = row,
      .document = layer.documents[static_cast<size_t>(row.example)],
      .is_long = layer.is_long,
      .own = own,
      .other = other};
  sums->linked_mass += LinkedMass(weights);
  AddKindMass(weights, static_cast<int64_t>(sums->by_offset.size() / 2),
              &sums->kind_mass);
  AddByClass(row, entropy, sums);
  return "";
}

// Adds the rows of a slice in one head; returns a mistake, or nothing.
std::string AddHead(const SliceLayer& layer, int64_t head, bool jsd_distance,
                    HeadStatistics* statistics,
                    StreamingHistogram* divergence) {
  for (size_t r = 0; r < layer.rows.size(); ++r) {
    const std::string mistake = AddRow(layer, r, head, statistics);
    if (!mistake.empty()) {
      return absl::StrCat("token ", layer.rows[r].query, " ", mistake);
    }
    if (layer.divergence.defined()) {
      const double value = std::clamp(
          layer.divergence.data_ptr<double>()[static_cast<int64_t>(r) *
                                                  layer.divergence.size(1) +
                                              head],
          0.0, 1.0);
      divergence->Add(jsd_distance ? std::sqrt(value) : value);
    }
  }
  return "";
}

// Adds the rows of slices in one layer, each head by one thread.
absl::Status AddLayer(const std::vector<SliceLayer>& slices, int64_t index,
                      bool jsd_distance, PopulationStatistics* population) {
  const auto at = static_cast<size_t>(index);
  std::vector<HeadStatistics>& heads = population->heads[at];
  std::vector<std::string> wrong(heads.size());
  ForEachTask(static_cast<int64_t>(heads.size()), 0, [&](int64_t head, float*) {
    const auto h = static_cast<size_t>(head);
    for (size_t s = 0; s < slices.size() && wrong[h].empty(); ++s) {
      wrong[h] =
          AddHead(slices[s], head, jsd_distance, &heads[h],
                  index > 0 ? &population->divergence[at - 1][h] : nullptr);
    }
  });
  for (size_t h = 0; h < wrong.size(); ++h) {
    if (!wrong[h].empty()) {
      return absl::InternalError(absl::StrCat(
          "attention of layer ", index, ", head ", h, ", ",
          population->name == "global" ? "global " : "", wrong[h]));
    }
  }
  for (const SliceLayer& slice : slices) {
    for (size_t i = 0; i < slice.similarity.size(); ++i) {
      population->similarity[at - 1][i] += slice.similarity[i];
    }
  }
  return absl::OkStatus();
}

// Adds the divergence of each head of a layer and each of the layer below, over
// the rows drawn for it: element i * H + j of `*sums`, which is empty if there
// are none, is that of head i here and head j below.
void AddSimilarity(absl::Span<const VisibleRow> rows, const SliceWeights& here,
                   const SliceWeights& below, bool jsd_distance,
                   std::vector<double>* sums) {
  std::vector<int64_t> drawn;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].is_sampled) {
      drawn.push_back(static_cast<int64_t>(r));
    }
  }
  if (drawn.empty()) {
    return;
  }
  const torch::Tensor at = torch::tensor(drawn).to(here.own.device());
  const SliceWeights p = {.own = here.own.index_select(0, at),
                          .other = here.other.index_select(0, at)};
  const SliceWeights q = {.own = below.own.index_select(0, at),
                          .other = below.other.index_select(0, at)};
  const int64_t heads = p.own.size(1);
  sums->assign(static_cast<size_t>(heads * heads), 0.0);
  for (int64_t shift = 0; shift < heads; ++shift) {
    // Head i beside head i + shift.
    torch::Tensor divergence =
        DivergenceOf(
            p, {.own = q.own.roll(-shift, 1), .other = q.other.roll(-shift, 1)})
            .clamp_(0, 1);
    if (jsd_distance) {
      divergence.sqrt_();
    }
    const torch::Tensor total = OnCpu(divergence.sum(0));
    for (int64_t i = 0; i < heads; ++i) {
      (*sums)[static_cast<size_t>(i * heads + (i + shift) % heads)] +=
          total.data_ptr<double>()[i];
    }
  }
}

// Rows of one stream, or a slice of them.
struct SliceRows {
  absl::Span<const VisibleRow> rows;
  absl::Span<const DocumentTokens> documents;
  bool is_long = false;
};

SliceWeights WeightsOf(const SoftmaxView& view) {
  return {.own = view.probabilities.own, .other = view.probabilities.other};
}

// One softmax in two neighbouring layers.
struct NeighbourLayers {
  SparseAttentionInput here;
  std::optional<SparseAttentionInput> below;  // nothing: the first layer
};

// Results of a slice that operations on tensors compute.
SliceLayer ComputeSlice(const SliceRows& slice, const NeighbourLayers& layers,
                        bool jsd_distance) {
  const c10::InferenceMode no_gradients;  // a thread has its own
  const SoftmaxSelection which = {.rows = IndicesOf(slice.rows)};
  const SliceWeights here = WeightsOf(InspectAttention(layers.here, which));
  SliceLayer layer{.rows = slice.rows,
                   .documents = slice.documents,
                   .weights = {.own = OnCpu(here.own.to(torch::kFloat32)),
                               .other = OnCpu(here.other.to(torch::kFloat32))},
                   .own_entropy = EntropyOfRows(here.own),
                   .other_entropy = EntropyOfRows(here.other),
                   .is_long = slice.is_long};
  if (layers.below.has_value()) {
    const SliceWeights below =
        WeightsOf(InspectPastAttention(*layers.below, which));
    layer.divergence = OnCpu(DivergenceOf(here, below));
    AddSimilarity(slice.rows, here, below, jsd_distance, &layer.similarity);
  }
  return layer;
}

// ComputeSlice of all, on the CPU each by one thread: LibTorch would divide
// each operation among all threads, which takes longer than the small ones
// themselves.
std::vector<SliceLayer> ComputeSlices(const std::vector<SliceRows>& slices,
                                      const NeighbourLayers& layers,
                                      bool jsd_distance) {
  std::vector<SliceLayer> computed(slices.size());
  const auto compute = [&](size_t i) {
    computed[i] = ComputeSlice(slices[i], layers, jsd_distance);
  };
  if (!layers.here.operands.query.device().is_cpu()) {
    for (size_t i = 0; i < slices.size(); ++i) {
      compute(i);
    }
    return computed;
  }
  // No exception may leave a task.
  std::vector<std::exception_ptr> thrown(slices.size());
  ForEachTask(static_cast<int64_t>(slices.size()), 0,
              [&](int64_t task, float*) {
                const auto i = static_cast<size_t>(task);
                try {
                  compute(i);
                } catch (...) {
                  thrown[i] = std::current_exception();
                }
              });
  for (const std::exception_ptr& exception : thrown) {
    if (exception != nullptr) {
      std::rethrow_exception(exception);
    }
  }
  return computed;
}

// --- Scores ------------------------------------------------------------------

void AddMoments(const NumberMoments& part, NumberMoments* whole) {
  whole->count += part.count;
  whole->sum += part.sum;
  whole->sum_of_squares += part.sum_of_squares;
}

void AddMoments(const ScorePairMoments& part, ScorePairMoments* whole) {
  AddMoments(part.new_scores, &whole->new_scores);
  AddMoments(part.carried_scores, &whole->carried_scores);
  whole->sum_of_products += part.sum_of_products;
}

// The four blocks of a layer, by their names.
constexpr std::array<std::pair<const char*, BlockStatistics LayerStatistics::*>,
                     4>
    kBlockNames = {{{"l2l", &LayerStatistics::l2l},
                    {"l2g", &LayerStatistics::l2g},
                    {"g2g", &LayerStatistics::g2g},
                    {"g2l", &LayerStatistics::g2l}}};

// b over a of the logits a s + b S in each head of a block of `layer`, to which
// scores are carried (attention/residual_attention.h).
std::vector<double> CarriedFactors(const EtcModel& encoder, size_t layer,
                                   const char* block) {
  const EtcConfig& config = encoder->config();
  const ResidualAttention mode = encoder->residual_attention();
  if (mode == ResidualAttention::kGate) {
    const torch::Tensor gates =
        OnCpu(encoder
                  ->named_parameters()[absl::StrCat(
                      "layers.", layer, ".attention.", block, "_gate")]
                  .detach()
                  .to(torch::kFloat64));
    const auto* first = gates.data_ptr<double>();
    return {first, first + gates.numel()};
  }
  const double beta = config.residual_decay;
  return std::vector<double>(
      static_cast<size_t>(config.num_attention_heads),
      mode == ResidualAttention::kDecay
          ? std::pow(beta, static_cast<double>(layer)) / (1.0 - beta)
          : 1.0);
}

// ScoreDeviations::logit_ratio of a block with the CarriedFactors of its heads.
std::optional<double> LogitRatio(const BlockStatistics& block,
                                 const std::vector<double>& factors) {
  NumberMoments carried;
  for (size_t h = 0; h < block.heads.size(); ++h) {
    NumberMoments head = block.heads[h].carried_scores;
    head.sum *= factors[h];
    head.sum_of_squares *= factors[h] * factors[h];
    AddMoments(head, &carried);
  }
  const double own = block.new_scores.standard_deviation();
  return own > 0.0 ? std::optional(carried.standard_deviation() / own)
                   : std::nullopt;
}

// The deviations of a block that has pairs.
ScoreDeviations DeviationsOf(const EtcModel& encoder, size_t layer,
                             const char* name, const BlockStatistics& block) {
  ScoreDeviations deviations = {
      .block = name,
      .pairs = block.new_scores.count,
      .new_scores = block.new_scores.standard_deviation()};
  if (!block.heads.empty()) {
    deviations.carried_scores = block.carried_scores.standard_deviation();
    deviations.logit_ratio =
        LogitRatio(block, CarriedFactors(encoder, layer, name));
  }
  for (const ScorePairMoments& head : block.heads) {
    deviations.correlations.push_back(head.correlation());
  }
  return deviations;
}

}  // namespace

struct AttentionPass::State {
  EtcModel encoder;
  AttentionPassOptions options;
  // Long rows before global ones.
  std::vector<PopulationStatistics> populations;
  std::vector<LayerStatistics> scores;

  // The rows of one stream of a batch.
  std::vector<VisibleRow> Rows(const EtcInput& input, QuerySide side,
                               absl::Span<const DocumentTokens> documents,
                               int64_t first);
  // Adds the rows of a stream in one layer, each of `row_bytes` of weights.
  absl::Status AddRows(const LayerVisit& visit, const SliceRows& rows,
                       int64_t row_bytes);
  void AddScores();
};

AttentionPass::AttentionPass(EtcModel encoder,
                             const AttentionPassOptions& options)
    : state_(std::make_unique<State>(
          State{.encoder = std::move(encoder), .options = options})) {
  const EtcConfig& config = state_->encoder->config();
  std::vector<std::string> kinds;
  for (const KeyKind& kind : options.kinds) {
    kinds.push_back(kind.name);
  }
  const auto add = [&](const char* name, int64_t max_keys, int64_t radius) {
    state_->populations.push_back(
        MakePopulation({.name = name,
                        .layers = config.num_hidden_layers,
                        .heads = config.num_attention_heads,
                        .max_keys = std::max<int64_t>(2, max_keys),
                        .radius = radius,
                        .kinds = kinds}));
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
    const EtcInput& input, QuerySide side,
    absl::Span<const DocumentTokens> documents, int64_t first) {
  return CountRows(
      input.attention.Softmax(
          side, input.global_token_ids.size(0), input.token_ids.size(1),
          input.global_token_ids.size(1), encoder->config().local_radius),
      side, documents,
      {.max_rows = options.max_rows, .seed = options.seed, .first = first},
      side == QuerySide::kLong ? &populations.front() : &populations.back());
}

absl::Status AttentionPass::State::AddRows(const LayerVisit& visit,
                                           const SliceRows& rows,
                                           int64_t row_bytes) {
  if (rows.rows.empty()) {
    return absl::OkStatus();
  }
  const QuerySide side = rows.is_long ? QuerySide::kLong : QuerySide::kGlobal;
  NeighbourLayers layers = {.here = visit.here(side)};
  if (visit.below) {
    layers.below = visit.below(side);
  }
  const auto rows_of = [&](int64_t bytes) {
    return static_cast<size_t>(std::max<int64_t>(1, bytes / row_bytes));
  };
  const size_t at_once = rows_of(options.slice_bytes);
  const size_t of_task = std::min(at_once, rows_of(kTaskBytes));
  PopulationStatistics* const population =
      rows.is_long ? &populations.front() : &populations.back();
  for (size_t begin = 0; begin < rows.rows.size(); begin += at_once) {
    const size_t end = std::min(begin + at_once, rows.rows.size());
    std::vector<SliceRows> slices;
    for (size_t next = begin; next < end; next += of_task) {
      SliceRows slice = rows;
      slice.rows = rows.rows.subspan(next, std::min(of_task, end - next));
      slices.push_back(slice);
    }
    ETC_RETURN_IF_ERROR(
        AddLayer(ComputeSlices(slices, layers, options.jsd_distance),
                 visit.layer, options.jsd_distance, population));
  }
  return absl::OkStatus();
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
      whole->heads.resize(part.heads.size());
      for (size_t h = 0; h < part.heads.size(); ++h) {
        AddMoments(part.heads[h], &whole->heads[h]);
      }
    }
  }
}

int64_t AttentionPass::batch_size() const {
  const EtcConfig& config = state_->encoder->config();
  const TokenCounts longest = {.longs = state_->options.max_long_length,
                               .globals = state_->options.max_global_length};
  const TokenCounts bytes = RowBytes(config, longest);
  return std::max<int64_t>(
      1, kBatchBytes /
             (config.num_hidden_layers *
              (longest.longs * bytes.longs + longest.globals * bytes.globals)));
}

namespace {

// Makes passes of an encoder take statistics while it lives, even if one is
// stopped.
class StatisticsRows {
 public:
  explicit StatisticsRows(EtcModel encoder) : encoder_(std::move(encoder)) {
    encoder_->set_statistics_rows(kScoreRows);
  }
  ~StatisticsRows() { encoder_->set_statistics_rows(0); }
  StatisticsRows(const StatisticsRows&) = delete;
  StatisticsRows& operator=(const StatisticsRows&) = delete;

 private:
  EtcModel encoder_;
};

}  // namespace

absl::Status AttentionPass::Add(EtcInput input, int64_t first) {
  const c10::InferenceMode no_gradients;
  const EtcConfig& config = state_->encoder->config();
  TORCH_CHECK(
      input.token_ids.size(1) <= state_->options.max_long_length &&
          input.global_token_ids.size(1) <= state_->options.max_global_length,
      "examples should not be longer than the pass was made for");
  const std::vector<DocumentTokens> documents =
      DocumentsOf(input, state_->options.kinds);
  std::vector<VisibleRow> longs;
  if (config.has_long_tokens) {
    longs = state_->Rows(input, QuerySide::kLong, documents, first);
  }
  const std::vector<VisibleRow> globals =
      state_->Rows(input, QuerySide::kGlobal, documents, first);
  const TokenCounts bytes =
      RowBytes(config, {.longs = input.token_ids.size(1),
                        .globals = input.global_token_ids.size(1)});
  absl::Status status;
  input.inspect.visit = [&](const LayerVisit& visit) {
    if (status.ok()) {
      status = state_->AddRows(
          visit, {.rows = longs, .documents = documents, .is_long = true},
          bytes.longs);
    }
    if (status.ok()) {
      status = state_->AddRows(visit, {.rows = globals, .documents = documents},
                               bytes.globals);
    }
  };
  // Nobody reads what the last layer would compute.
  const torch::Tensor none =
      torch::zeros({0}, input.global_token_ids.options().dtype(torch::kInt64));
  input.outputs = {.longs = none, .globals = none};
  {
    const StatisticsRows rows(state_->encoder);
    state_->encoder(input);
  }
  ETC_RETURN_IF_ERROR(status);
  state_->AddScores();
  return absl::OkStatus();
}

const std::vector<PopulationStatistics>& AttentionPass::populations() const {
  return state_->populations;
}

std::vector<std::vector<ScoreDeviations>> AttentionPass::Scores() const {
  std::vector<std::vector<ScoreDeviations>> all;
  for (size_t l = 0; l < state_->scores.size(); ++l) {
    std::vector<ScoreDeviations>& blocks = all.emplace_back();
    for (const auto& [name, block] : kBlockNames) {
      const BlockStatistics& moments = state_->scores[l].*block;
      if (moments.new_scores.count > 0) {
        blocks.push_back(DeviationsOf(state_->encoder, l, name, moments));
      }
    }
  }
  return all;
}

}  // namespace etc
