#include "attention/global_local_attention.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention_problem.h"
#include "attention/head_slices.h"
#include "attention/pattern.h"
#include "attention/some_heads.h"
#include "base/check_shape.h"
#include "base/check_tensor.h"
#include "base/clone_module.h"
#include "base/initializers.h"
#include "base/to_device.h"

namespace etc {
namespace {

// doc/model.md 3.2 and 4.3: not the initializer range of the other tables.
constexpr double kRelativeEmbeddingDeviation = 0.5;

void CheckOptions(const GlobalLocalAttentionOptions& options) {
  TORCH_CHECK(options.long_hidden_size >= 1 && options.global_hidden_size >= 1,
              "hidden sizes should be at least 1, but are ",
              options.long_hidden_size, " and ", options.global_hidden_size);
  TORCH_CHECK(options.num_heads >= 1, "num_heads should be at least 1, but is ",
              options.num_heads);
  TORCH_CHECK(options.head_size >= 1, "head_size should be at least 1, but is ",
              options.head_size);
  CheckLocalRadius(options.local_radius);
  TORCH_CHECK(options.relative_vocab_size >= 0,
              "relative_vocab_size should be at least 0, but is ",
              options.relative_vocab_size);
  TORCH_CHECK(options.dropout >= 0.0 && options.dropout < 1.0,
              "dropout should be in [0, 1), but is ", options.dropout);
  const bool shares = options.share_qkv_projections ||
                      options.share_kv_projections ||
                      options.share_output_projection;
  TORCH_CHECK(
      !shares || options.long_hidden_size == options.global_hidden_size,
      "shared projections need equal hidden sizes, but long_hidden_size is ",
      options.long_hidden_size, " and global_hidden_size ",
      options.global_hidden_size);
  TORCH_CHECK(options.has_long_tokens || (options.share_qkv_projections &&
                                          options.share_output_projection),
              "without long tokens all projections should be shared");
  TORCH_CHECK(!options.causal || options.has_long_tokens,
              "causal needs long tokens, but has_long_tokens is false");
  TORCH_CHECK(options.output_initializer_factor > 0.0,
              "output_initializer_factor should be above 0, but is ",
              options.output_initializer_factor);
}

// The streams as the weights of a layer take them, but for their sizes.
void CheckStreams(const torch::Tensor& long_input,
                  const torch::Tensor& global_input,
                  const torch::Tensor& weight) {
  TORCH_CHECK(long_input.dim() == 3 && global_input.dim() == 3,
              "inputs should be [batch, length, hidden], but are ",
              long_input.sizes(), " and ", global_input.sizes());
  for (const torch::Tensor* stream : {&long_input, &global_input}) {
    CheckSameDevice(*stream, "an input", weight, "the layer");
    TORCH_CHECK(stream->scalar_type() == weight.scalar_type(),
                "an input should be ", weight.scalar_type(),
                ", as the layer's weights, but is ", stream->scalar_type());
  }
}

// [B, N, 0, d]. The product of nothing would give the weights a gradient of
// zeros, as large as they are.
torch::Tensor NoHeads(const torch::Tensor& stream, const HeadRange& heads,
                      int64_t head_size) {
  return stream.new_empty({stream.size(0), heads.count, 0, head_size});
}

// Gates of both blocks, of some heads. Those of a block without keys need not
// exist.
ResidualGates GatesOf(ResidualGates gates, const HeadRange& heads) {
  if (gates.own.defined() && !gates.other.defined()) {
    gates.other = torch::zeros_like(gates.own);
  }
  return SomeHeadsOfEach(gates, 0, heads);
}

RelativeTable TableOf(const RelativePositions& relative,
                      const HeadRange& heads) {
  if (relative.is_empty()) {
    return {};
  }
  const RelativeTable all = relative->table();
  return {.embedding = SomeHeads(all.embedding, 1, heads),
          .bias = SomeHeads(all.bias, 1, heads)};
}

// Outputs [begin, begin + count) of a layer, as a weight [count, n].
LinearInput SomeOutputs(const LinearInput& weight, int64_t begin,
                        int64_t count) {
  LinearInput some = weight;
  some.value = weight.value.narrow(0, begin, count);
  if (weight.operand.defined()) {
    some.operand = weight.operand.narrow(0, begin, count);
  }
  return some;
}

// [B, N, length, d] -> [B, length, N d], or the rows of that, [R, N d].
torch::Tensor ByTokens(const torch::Tensor& context,
                       const torch::Tensor& rows) {
  const int64_t features = context.size(1) * context.size(3);
  if (AsksForNone(rows)) {
    return context.new_empty({0, features});
  }
  return RowsOf(context.transpose(1, 2).reshape(
                    {context.size(0), context.size(2), features}),
                rows);
}

// The output for a side without queries.
SparseAttentionOutput WithoutQueries(const SparseAttentionInput& input) {
  const torch::Tensor& query = input.operands.query;
  SparseAttentionOutput output = {.context = query};
  if (input.residual.mode != ResidualAttention::kOff) {
    const int64_t batch = query.size(0);
    const int64_t heads = query.size(1);
    const int64_t window = input.pattern.own_columns();
    const torch::ScalarType type = ScoreType(query);
    output.scores = {.own = query.new_empty({batch, heads, 0, window}, type),
                     .other = query.new_empty(
                         {batch, heads, 0, input.pattern.other_keys}, type)};
  }
  return output;
}

}  // namespace

RelativePositionsImpl::RelativePositionsImpl(int64_t ids, int64_t heads,
                                             int64_t head_size) {
  torch::Tensor embedding = torch::empty({ids, heads, head_size});
  TruncatedNormal_(embedding, kRelativeEmbeddingDeviation);
  embedding_ = register_parameter("embedding", embedding);
  bias_ = register_parameter("bias", torch::zeros({ids, heads}));
}

std::shared_ptr<torch::nn::Module> RelativePositionsImpl::clone(
    const c10::optional<torch::Device>& device) const {
  return CloneModule(*this, device, [this] {
    return std::make_shared<RelativePositionsImpl>(
        embedding_.size(0), embedding_.size(1), embedding_.size(2));
  });
}

void RelativePositionsImpl::clone_(torch::nn::Module& other,
                                   const c10::optional<torch::Device>& device) {
  BecomeCloneOf(other, device, this);
}

void RelativePositionsImpl::pretty_print(std::ostream& stream) const {
  stream << "etc::RelativePositions(ids=" << embedding_.size(0)
         << ", heads=" << embedding_.size(1)
         << ", head_size=" << embedding_.size(2) << ")";
}

GlobalLocalAttentionImpl::GlobalLocalAttentionImpl(
    const GlobalLocalAttentionOptions& options)
    : options_(options) {
  CheckOptions(options_);
  RegisterProjections();
  if (options_.relative_vocab_size > 0) {
    for (const auto& [name, side] : {std::pair("long_relative", &long_),
                                     std::pair("global_relative", &global_)}) {
      if (side == &long_ && !options_.has_long_tokens) {
        continue;
      }
      side->relative = register_module(
          name, RelativePositions(options_.relative_vocab_size,
                                  options_.num_heads, options_.head_size));
    }
  }
  if (options_.residual_gate_init.has_value()) {
    RegisterGates();
  }
  if (!options_.has_long_tokens) {
    // Inspect and Measure look at a side without queries, too.
    long_.relative = global_.relative;
    long_.gates = global_.gates;
  }
}

void GlobalLocalAttentionImpl::RegisterGates() {
  const auto add = [&](const char* name) {
    return register_parameter(
        name, torch::full({options_.num_heads}, *options_.residual_gate_init,
                          torch::kFloat32));
  };
  global_.gates.own = add("g2g_gate");
  if (options_.has_long_tokens) {
    global_.gates.other = add("g2l_gate");
    long_.gates = {.own = add("l2l_gate"), .other = add("l2g_gate")};
  }
}

// The table of doc/model.md 3.5: which projections there are, and which of them
// are shared.
void GlobalLocalAttentionImpl::RegisterProjections() {
  const int64_t features = options_.num_heads * options_.head_size;
  const double deviation = options_.initializer_range;
  const auto add = [&](const char* name, int64_t inputs) {
    return register_module(name, MakeLinear(inputs, features, deviation));
  };
  const int64_t long_size = options_.long_hidden_size;
  const int64_t global_size = options_.global_hidden_size;
  const bool share_all = options_.share_qkv_projections;
  const bool share_kv = share_all || options_.share_kv_projections;

  long_.query = add("long_query", long_size);
  long_.own_key = add("l2l_key", long_size);
  long_.own_value = add("l2l_value", long_size);
  long_.other_key = share_kv ? long_.own_key : add("l2g_key", global_size);
  long_.other_value =
      share_kv ? long_.own_value : add("l2g_value", global_size);
  global_.query = share_all ? long_.query : add("global_query", global_size);
  global_.own_key = share_all ? long_.own_key : add("g2g_key", global_size);
  global_.own_value =
      share_all ? long_.own_value : add("g2g_value", global_size);
  global_.other_key = share_kv ? global_.own_key : add("g2l_key", long_size);
  global_.other_value =
      share_kv ? global_.own_value : add("g2l_value", long_size);

  const double output = deviation * options_.output_initializer_factor;
  long_.output =
      register_module("long_output", MakeLinear(features, long_size, output));
  global_.output =
      options_.share_output_projection
          ? long_.output
          : register_module("global_output",
                            MakeLinear(features, global_size, output));
}

std::shared_ptr<torch::nn::Module> GlobalLocalAttentionImpl::clone(
    const c10::optional<torch::Device>& device) const {
  return CloneModule(*this, device, [this] {
    auto copy = std::make_shared<GlobalLocalAttentionImpl>(options_);
    copy->set_linear_precision(products_.precision());
    return copy;
  });
}

void GlobalLocalAttentionImpl::clone_(
    torch::nn::Module& other, const c10::optional<torch::Device>& device) {
  BecomeCloneOf(other, device, this);
}

void GlobalLocalAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "etc::GlobalLocalAttention(long_hidden_size="
         << options_.long_hidden_size
         << ", global_hidden_size=" << options_.global_hidden_size
         << ", num_heads=" << options_.num_heads
         << ", head_size=" << options_.head_size
         << ", local_radius=" << options_.local_radius
         << ", relative_vocab_size=" << options_.relative_vocab_size
         << ", causal=" << options_.causal << ", dropout=" << options_.dropout
         << std::noboolalpha << ")";
}

torch::Tensor GlobalLocalAttentionImpl::Heads(
    const torch::nn::Linear& projection, const LinearInput& input,
    const HeadRange& heads, const torch::Tensor& rows) const {
  const int64_t batch = input.value.size(0);
  const int64_t length = input.value.size(1);
  const int64_t size = options_.head_size;
  if (length == 0) {
    return NoHeads(input.value, heads, size);
  }
  LinearInput weight = products_.Weight(projection->weight);
  torch::Tensor bias = projection->bias;
  if (heads.count < options_.num_heads) {
    weight = SomeOutputs(weight, heads.begin * size, heads.count * size);
    bias = bias.narrow(0, heads.begin * size, heads.count * size);
  }
  torch::Tensor projected;
  if (rows.defined()) {
    const torch::Tensor some = LinearProducts::Apply(
        products_.Input(RowsOf(input.value, rows)), weight, bias);
    projected = some.new_zeros({batch * length, some.size(1)})
                    .index_copy(0, rows, some);
  } else {
    projected = LinearProducts::Apply(input, weight, bias);
  }
  return AsHeads(projected, input);
}

torch::Tensor GlobalLocalAttentionImpl::AsHeads(
    const torch::Tensor& projected, const LinearInput& input) const {
  const int64_t size = options_.head_size;
  // The products of attention are rounded where those of projections are.
  return (input.is_rounded ? projected.to(torch::kBFloat16) : projected)
      .reshape({input.value.size(0), input.value.size(1),
                projected.size(-1) / size, size})
      .transpose(1, 2);
}

GlobalLocalAttentionImpl::SeenTokens GlobalLocalAttentionImpl::Project(
    QuerySide side, const HeadSource& source) const {
  const bool is_long = side == QuerySide::kLong;
  const QuerySide other = is_long ? QuerySide::kGlobal : QuerySide::kLong;
  const Side& layers = SideOf(side);
  return {.own = {.key = source(layers.own_key, side, {}),
                  .value = source(layers.own_value, side, {})},
          .other = {.key = source(layers.other_key, other, {}),
                    .value = source(layers.other_value, other, {})}};
}

SparseAttentionOutput GlobalLocalAttentionImpl::Attend(
    QuerySide side, const LayerCall& call, const SeenTokens& seen,
    const HeadSource& source) const {
  const bool is_long = side == QuerySide::kLong;
  const torch::Tensor& stream =
      (is_long ? call.streams.longs : call.streams.globals).value;
  const torch::Tensor& rows = is_long ? call.rows.longs : call.rows.globals;
  SparseAttentionInput input = SideInput(side, call);
  input.dropout = is_training() ? options_.dropout : 0.0;
  const int64_t tokens = stream.size(0) * stream.size(1);
  const bool has_queries = stream.size(1) > 0 && !AsksForNone(rows);
  const torch::Tensor queries = DistinctRows(rows, tokens);
  if (has_queries && queries.defined()) {
    input.pattern = OnlyQueries(input.pattern, queries);
  }
  const Side& layers = SideOf(side);
  input.operands = {
      .query = has_queries ? source(layers.query, side, queries)
                           : NoHeads(stream, call.heads, options_.head_size),
      .own_key = seen.own.key,
      .own_value = seen.own.value,
      .other_key = seen.other.key,
      .other_value = seen.other.value,
      .relative = TableOf(layers.relative, call.heads)};
  return has_queries ? SparseAttention(input, options_.implementation)
                     : WithoutQueries(input);
}

torch::Tensor GlobalLocalAttentionImpl::Output(
    QuerySide side, const LinearInput& contexts) const {
  // The output of no tokens keeps its graph too, as torch::nn::Linear's does.
  return products_.Apply(contexts, SideOf(side).output);
}

AttentionStreams GlobalLocalAttentionImpl::Streams(
    const torch::Tensor& long_input, const torch::Tensor& global_input) const {
  CheckStreams(long_input, global_input, long_.query->weight);
  const int64_t batch = long_input.size(0);
  const int64_t longs = long_input.size(1);
  const int64_t globals = global_input.size(1);
  ETC_CHECK_SHAPE(long_input, {batch, longs, options_.long_hidden_size});
  ETC_CHECK_SHAPE(global_input, {batch, globals, options_.global_hidden_size});
  TORCH_CHECK(options_.has_long_tokens || longs == 0, "there are ", longs,
              " long tokens, but has_long_tokens is false");
  return {.longs = products_.Input(long_input),
          .globals = products_.Input(global_input)};
}

SparseAttentionInput GlobalLocalAttentionImpl::SideInput(
    QuerySide side, const LayerCall& call) const {
  const AttentionInputs& attention = call.attention;
  TORCH_CHECK(SideOf(side).relative.is_empty() ||
                  attention.patterns() != nullptr ||
                  attention.max_distance().has_value(),
              "the layer has relative tables, but the max_distance of its "
              "inputs is left open: give it to Padded or Packed, or call "
              "WithDistance");
  const AttentionInputs visible =
      options_.causal ? attention.Causal() : attention;
  const torch::Tensor& longs = call.streams.longs.value;
  const ResidualOptions& residual = call.carried.residual;
  const ResidualScores& previous = call.carried.previous;
  const bool is_long = side == QuerySide::kLong;
  return {.pattern = visible.Softmax(side, longs.size(0), longs.size(1),
                                     call.streams.globals.value.size(1),
                                     options_.local_radius),
          .residual = residual,
          .previous = {.own = is_long ? previous.l2l : previous.g2g,
                       .other = is_long ? previous.l2g : previous.g2l,
                       .layers = previous.layers},
          .gates = residual.mode == ResidualAttention::kGate
                       ? GatesOf(SideOf(side).gates, call.heads)
                       : ResidualGates(),
          .precision = products_.precision(),
          .first_head = call.heads.begin};
}

SparseAttentionInput GlobalLocalAttentionImpl::InspectedSide(
    QuerySide side, const LayerCall& call) const {
  const bool is_long = side == QuerySide::kLong;
  const LinearInput& own = is_long ? call.streams.longs : call.streams.globals;
  const LinearInput& other =
      is_long ? call.streams.globals : call.streams.longs;
  const torch::Tensor& rows = is_long ? call.rows.longs : call.rows.globals;
  const int64_t batch = own.value.size(0);
  const int64_t tokens = batch * own.value.size(1);
  const bool has_queries = tokens > 0 && !AsksForNone(rows);
  const torch::Tensor queries =
      DistinctRows(rows.defined() ? rows.cpu() : torch::Tensor(), tokens);
  // Without queries, shapes without memory.
  const auto heads = [&](const torch::nn::Linear& projection,
                         const LinearInput& source,
                         const torch::Tensor& of_rows = {}) {
    return has_queries ? Heads(projection, source, AllHeads(), of_rows)
                       : source.value.new_zeros({1}).expand(
                             {batch, options_.num_heads, source.value.size(1),
                              options_.head_size});
  };
  const Side& layers = SideOf(side);
  SparseAttentionInput input = SideInput(side, call);
  const torch::Tensor own_key = heads(layers.own_key, own);
  const torch::Tensor other_key = heads(layers.other_key, other);
  input.operands = {
      .query = heads(layers.query, own, ToDevice(queries, own.value.device())),
      .own_key = own_key,
      .own_value = own_key,  // not read
      .other_key = other_key,
      .other_value = other_key,
      .relative = TableOf(layers.relative, AllHeads())};
  return input;
}

SparseAttentionInput GlobalLocalAttentionImpl::Softmax(
    QuerySide side, const torch::Tensor& long_input,
    const torch::Tensor& global_input, const AttentionInputs& attention,
    const CarriedScores& carried) const {
  const torch::NoGradGuard no_grad;
  const AttentionStreams streams = Streams(long_input, global_input);
  const OutputRows all_rows;
  return InspectedSide(side, {.streams = streams,
                              .attention = attention,
                              .carried = carried,
                              .rows = all_rows,
                              .heads = AllHeads()});
}

AttentionView GlobalLocalAttentionImpl::Inspect(
    const torch::Tensor& long_input, const torch::Tensor& global_input,
    const AttentionInputs& attention, const CarriedScores& carried,
    const AttentionSelection& which) const {
  const torch::NoGradGuard no_grad;
  const AttentionStreams streams = Streams(long_input, global_input);
  const auto inspect = [&](QuerySide side, const torch::Tensor& rows) {
    return InspectAttention(InspectedSide(side, {.streams = streams,
                                                 .attention = attention,
                                                 .carried = carried,
                                                 .rows = which.rows,
                                                 .heads = AllHeads()}),
                            {.heads = which.heads,
                             .rows = rows,
                             .probabilities = which.probabilities,
                             .scores = which.scores});
  };
  const SoftmaxView longs = inspect(QuerySide::kLong, which.rows.longs);
  const SoftmaxView globals = inspect(QuerySide::kGlobal, which.rows.globals);
  const auto blocks = [&](ScorePair SoftmaxView::*part) {
    return FourBlocks{.g2g = (globals.*part).own,
                      .g2l = (globals.*part).other,
                      .l2g = (longs.*part).other,
                      .l2l = (longs.*part).own};
  };
  return {.probabilities = blocks(&SoftmaxView::probabilities),
          .new_scores = blocks(&SoftmaxView::new_scores),
          .carried_scores = blocks(&SoftmaxView::carried_scores)};
}

LayerStatistics GlobalLocalAttentionImpl::Measure(
    const torch::Tensor& long_input, const torch::Tensor& global_input,
    const AttentionInputs& attention, const CarriedScores& carried,
    const OutputRows& rows) const {
  const torch::NoGradGuard no_grad;
  const AttentionStreams streams = Streams(long_input, global_input);
  const LayerCall call = {.streams = streams,
                          .attention = attention,
                          .carried = carried,
                          .rows = rows,
                          .heads = AllHeads()};
  const SoftmaxStatistics longs =
      MeasureAttention(InspectedSide(QuerySide::kLong, call), rows.longs);
  const SoftmaxStatistics globals =
      MeasureAttention(InspectedSide(QuerySide::kGlobal, call), rows.globals);
  return {.g2g = globals.own,
          .g2l = globals.other,
          .l2g = longs.other,
          .l2l = longs.own,
          .long_entropy = longs.entropy,
          .global_entropy = globals.entropy};
}

GlobalLocalAttentionImpl::HeadSource GlobalLocalAttentionImpl::ProductsOf(
    const LayerCall& call) const {
  return [streams = call.streams, heads = call.heads, this](
             const torch::nn::Linear& projection, QuerySide stream,
             const torch::Tensor& rows) {
    return Heads(projection,
                 stream == QuerySide::kLong ? streams.longs : streams.globals,
                 heads, rows);
  };
}

std::vector<torch::nn::Linear> GlobalLocalAttentionImpl::ProjectionsOf(
    QuerySide stream, const OutputRows& rows) const {
  const bool is_long = stream == QuerySide::kLong;
  const Side& own = is_long ? long_ : global_;
  const Side& other = is_long ? global_ : long_;
  const torch::Tensor& of_own = is_long ? rows.longs : rows.globals;
  const torch::Tensor& of_other = is_long ? rows.globals : rows.longs;
  std::vector<torch::nn::Linear> projections;
  const auto add = [&](const torch::nn::Linear& projection) {
    const auto same = [&](const torch::nn::Linear& added) {
      return added.get() == projection.get();
    };
    if (std::none_of(projections.begin(), projections.end(), same)) {
      projections.push_back(projection);
    }
  };
  if (!of_own.defined()) {
    add(own.query);
  }
  const bool shares = options_.share_qkv_projections;
  if (shares || !AsksForNone(of_own)) {
    add(own.own_key);
    add(own.own_value);
  }
  if (!shares && !AsksForNone(of_other)) {
    add(other.other_key);
    add(other.other_value);
  }
  return projections;
}

GlobalLocalAttentionImpl::HeadSource GlobalLocalAttentionImpl::ProductsTogether(
    const LayerCall& call) const {
  std::vector<HeadProjection> products;
  for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
    const LinearInput& stream =
        side == QuerySide::kLong ? call.streams.longs : call.streams.globals;
    if (stream.value.size(1) == 0) {
      continue;
    }
    const std::vector<torch::nn::Linear> projections =
        ProjectionsOf(side, call.rows);
    const std::vector<torch::Tensor> projected =
        products_.ApplyEach(stream, projections);
    for (size_t i = 0; i < projections.size(); ++i) {
      products.push_back({.projection = projections[i],
                          .stream = side,
                          .heads = AsHeads(projected[i], stream)});
    }
  }
  return [products = std::move(products), others = ProductsOf(call)](
             const torch::nn::Linear& projection, QuerySide stream,
             const torch::Tensor& of_rows) {
    for (const HeadProjection& product : products) {
      if (!of_rows.defined() && product.stream == stream &&
          product.projection.get() == projection.get()) {
        return product.heads;
      }
    }
    return others(projection, stream, of_rows);
  };
}

ResidualScores GlobalLocalAttentionImpl::AttendBoth(
    const LayerCall& call, const HeadSource& source,
    const std::function<void(QuerySide, const torch::Tensor&)>& take) const {
  const OutputRows& rows = call.rows;
  const auto give = [&](QuerySide side, SparseAttentionOutput* output) {
    const torch::Tensor contexts = ByTokens(
        output->context, side == QuerySide::kLong ? rows.longs : rows.globals);
    // Without gradients nobody else holds these, as large as the stream.
    output->context.reset();
    take(side, contexts);
  };
  // With one projection for all pieces both sides see the same keys and values.
  const bool shares = options_.share_qkv_projections;
  SeenTokens by_long = !shares && AsksForNone(rows.longs)
                           ? SeenTokens()
                           : Project(QuerySide::kLong, source);
  SparseAttentionOutput long_side =
      Attend(QuerySide::kLong, call, by_long, source);
  give(QuerySide::kLong, &long_side);
  if (!shares) {
    by_long = {};
  }

  const SeenTokens by_global =
      shares ? SeenTokens{.own = by_long.other, .other = by_long.own}
      : AsksForNone(rows.globals) ? SeenTokens()
                                  : Project(QuerySide::kGlobal, source);
  SparseAttentionOutput global_side =
      Attend(QuerySide::kGlobal, call, by_global, source);
  give(QuerySide::kGlobal, &global_side);

  return {.g2g = global_side.scores.own,
          .g2l = global_side.scores.other,
          .l2g = long_side.scores.other,
          .l2l = long_side.scores.own,
          .layers = call.carried.residual.mode == ResidualAttention::kOff
                        ? 0
                        : call.carried.previous.layers + 1};
}

GlobalLocalAttentionOutput GlobalLocalAttentionImpl::forward(
    const torch::Tensor& long_input, const torch::Tensor& global_input,
    const AttentionInputs& attention, const CarriedScores& carried,
    const OutputRows& rows) {
  const AttentionStreams streams = Streams(long_input, global_input);
  const LayerCall call = {.streams = streams,
                          .attention = attention,
                          .carried = carried,
                          .rows = rows,
                          .heads = AllHeads()};
  // In float32 the gradients of a stream are added in the order of the pieces.
  const bool together = torch::GradMode::is_enabled() &&
                        products_.precision() == LinearPrecision::kBfloat16;
  GlobalLocalAttentionOutput output;
  output.scores = AttendBoth(
      call, together ? ProductsTogether(call) : ProductsOf(call),
      [&](QuerySide side, const torch::Tensor& contexts) {
        (side == QuerySide::kLong ? output.long_output : output.global_output) =
            Output(side, products_.Input(contexts));
      });
  return output;
}

}  // namespace etc
