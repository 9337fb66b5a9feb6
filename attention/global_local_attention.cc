#include "attention/global_local_attention.h"

#include <c10/util/Exception.h>

#include <memory>
#include <string>

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
  TORCH_CHECK(options.local_radius >= 1,
              "local_radius should be at least 1, but is ",
              options.local_radius);
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
torch::Tensor NoHeads(const LinearInput& input,
                      const GlobalLocalAttentionOptions& options) {
  return input.value.new_empty(
      {input.value.size(0), options.num_heads, 0, options.head_size});
}

// Gates of both blocks. Those of a block without keys need not exist.
ResidualGates GatesOf(ResidualGates gates) {
  if (gates.own.defined() && !gates.other.defined()) {
    gates.other = torch::zeros_like(gates.own);
  }
  return gates;
}

// The output for a side without queries.
SparseAttentionOutput WithoutQueries(const SparseAttentionInput& input) {
  const torch::Tensor& query = input.operands.query;
  SparseAttentionOutput output = {.context = query};
  if (input.residual != ResidualAttention::kOff) {
    const int64_t batch = query.size(0);
    const int64_t heads = query.size(1);
    const int64_t window = input.pattern.own_columns();
    output.scores = {
        .own = query.new_empty({batch, heads, 0, window}),
        .other = query.new_empty({batch, heads, 0, input.pattern.other_keys})};
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
    const torch::Tensor& rows) {
  const int64_t batch = input.value.size(0);
  const int64_t length = input.value.size(1);
  if (length == 0) {
    return NoHeads(input, options_);
  }
  torch::Tensor projected;
  if (rows.defined()) {
    const torch::Tensor some =
        products_.Apply(products_.Input(RowsOf(input.value, rows)), projection);
    projected = some.new_zeros({batch * length, some.size(1)})
                    .index_copy(0, rows, some);
  } else {
    projected = products_.Apply(input, projection);
  }
  // The products of attention are rounded where those of projections are.
  return (input.is_rounded ? projected.to(torch::kBFloat16) : projected)
      .reshape({batch, length, options_.num_heads, options_.head_size})
      .transpose(1, 2);
}

GlobalLocalAttentionImpl::SeenTokens GlobalLocalAttentionImpl::Project(
    const Side& side, const LinearInput& own, const LinearInput& other) {
  return {.own = {.key = Heads(side.own_key, own),
                  .value = Heads(side.own_value, own)},
          .other = {.key = Heads(side.other_key, other),
                    .value = Heads(side.other_value, other)}};
}

SparseAttentionOutput GlobalLocalAttentionImpl::Attend(
    const Side& side, const LinearInput& own, const SeenTokens& seen,
    const torch::Tensor& rows, SparseAttentionInput input) {
  const int64_t tokens = own.value.size(0) * own.value.size(1);
  const bool has_queries = tokens > 0 && !AsksForNone(rows);
  const torch::Tensor queries = DistinctRows(rows, tokens);
  if (has_queries && queries.defined()) {
    input.pattern = OnlyQueries(input.pattern, queries);
  }
  input.operands = {.query = has_queries ? Heads(side.query, own, queries)
                                         : NoHeads(own, options_),
                    .own_key = seen.own.key,
                    .own_value = seen.own.value,
                    .other_key = seen.other.key,
                    .other_value = seen.other.value,
                    .relative = side.relative.is_empty()
                                    ? RelativeTable()
                                    : side.relative->table()};
  return has_queries ? SparseAttention(input, options_.implementation)
                     : WithoutQueries(input);
}

torch::Tensor GlobalLocalAttentionImpl::Output(const Side& side,
                                               const torch::Tensor& context,
                                               const torch::Tensor& rows) {
  const int64_t batch = context.size(0);
  const int64_t length = context.size(2);
  const int64_t hidden = side.output->weight.size(0);
  if (AsksForNone(rows)) {  // as in NoHeads
    return context.new_empty({0, hidden});
  }
  if (length == 0) {
    return context.new_empty({batch, 0, hidden});
  }
  const torch::Tensor contexts = context.transpose(1, 2).reshape(
      {batch, length, options_.num_heads * options_.head_size});
  return products_.Apply(products_.Input(RowsOf(contexts, rows)), side.output);
}

void GlobalLocalAttentionImpl::CheckInputs(
    const torch::Tensor& long_input, const torch::Tensor& global_input) const {
  CheckStreams(long_input, global_input, long_.query->weight);
  const int64_t batch = long_input.size(0);
  const int64_t longs = long_input.size(1);
  const int64_t globals = global_input.size(1);
  ETC_CHECK_SHAPE(long_input, {batch, longs, options_.long_hidden_size});
  ETC_CHECK_SHAPE(global_input, {batch, globals, options_.global_hidden_size});
  TORCH_CHECK(options_.has_long_tokens || longs == 0, "there are ", longs,
              " long tokens, but has_long_tokens is false");
}

SparseAttentionInput GlobalLocalAttentionImpl::SideInput(
    QuerySide side, const torch::Tensor& long_input,
    const torch::Tensor& global_input, const AttentionInputs& attention,
    const CarriedScores& carried) const {
  const AttentionInputs visible =
      options_.causal ? attention.Causal() : attention;
  const ResidualScores& previous = carried.previous;
  const bool is_long = side == QuerySide::kLong;
  return {
      .pattern = visible.Softmax(side, long_input.size(0), long_input.size(1),
                                 global_input.size(1), options_.local_radius),
      .residual = carried.mode,
      .previous = {.own = is_long ? previous.l2l : previous.g2g,
                   .other = is_long ? previous.l2g : previous.g2l,
                   .layers = previous.layers},
      .gates = carried.mode == ResidualAttention::kGate
                   ? GatesOf(is_long ? long_.gates : global_.gates)
                   : ResidualGates(),
      .decay = carried.decay,
      .storage = carried.storage,
      .precision = products_.precision()};
}

AttentionOperands GlobalLocalAttentionImpl::OperandsToInspect(
    const Side& side, const LinearInput& own, const LinearInput& other,
    const torch::Tensor& rows) {
  const int64_t batch = own.value.size(0);
  const int64_t tokens = batch * own.value.size(1);
  const bool has_queries = tokens > 0 && !AsksForNone(rows);
  const torch::Tensor queries =
      DistinctRows(rows.defined() ? rows.cpu() : torch::Tensor(), tokens);
  // Without queries, shapes without memory.
  const auto heads = [&](const torch::nn::Linear& projection,
                         const LinearInput& source,
                         const torch::Tensor& of_rows = {}) {
    return has_queries ? Heads(projection, source, of_rows)
                       : source.value.new_zeros({1}).expand(
                             {batch, options_.num_heads, source.value.size(1),
                              options_.head_size});
  };
  const torch::Tensor own_key = heads(side.own_key, own);
  const torch::Tensor other_key = heads(side.other_key, other);
  return {
      .query = heads(side.query, own, ToDevice(queries, own.value.device())),
      .own_key = own_key,
      .own_value = own_key,  // not read
      .other_key = other_key,
      .other_value = other_key,
      .relative =
          side.relative.is_empty() ? RelativeTable() : side.relative->table()};
}

GlobalLocalAttentionImpl::SidesToInspect
GlobalLocalAttentionImpl::InspectedSides(const torch::Tensor& long_input,
                                         const torch::Tensor& global_input,
                                         const AttentionInputs& attention,
                                         const CarriedScores& carried,
                                         const OutputRows& rows) {
  CheckInputs(long_input, global_input);
  const auto input = [&](QuerySide side) {
    return SideInput(side, long_input, global_input, attention, carried);
  };
  SidesToInspect sides = {.longs = input(QuerySide::kLong),
                          .globals = input(QuerySide::kGlobal)};
  const LinearInput longs_in = products_.Input(long_input);
  const LinearInput globals_in = products_.Input(global_input);
  sides.longs.operands =
      OperandsToInspect(long_, longs_in, globals_in, rows.longs);
  sides.globals.operands =
      OperandsToInspect(global_, globals_in, longs_in, rows.globals);
  return sides;
}

SparseAttentionInput GlobalLocalAttentionImpl::Softmax(
    QuerySide side, const torch::Tensor& long_input,
    const torch::Tensor& global_input, const AttentionInputs& attention,
    const CarriedScores& carried) {
  const torch::NoGradGuard no_grad;
  CheckInputs(long_input, global_input);
  SparseAttentionInput input =
      SideInput(side, long_input, global_input, attention, carried);
  const LinearInput longs = products_.Input(long_input);
  const LinearInput globals = products_.Input(global_input);
  const bool is_long = side == QuerySide::kLong;
  input.operands =
      OperandsToInspect(is_long ? long_ : global_, is_long ? longs : globals,
                        is_long ? globals : longs, /*rows=*/torch::Tensor());
  return input;
}

AttentionView GlobalLocalAttentionImpl::Inspect(
    const torch::Tensor& long_input, const torch::Tensor& global_input,
    const AttentionInputs& attention, const CarriedScores& carried,
    const AttentionSelection& which) {
  const torch::NoGradGuard no_grad;
  const SidesToInspect sides =
      InspectedSides(long_input, global_input, attention, carried, which.rows);
  const auto inspect = [&](const SparseAttentionInput& side,
                           const torch::Tensor& rows) {
    return InspectAttention(side, {.heads = which.heads,
                                   .rows = rows,
                                   .probabilities = which.probabilities,
                                   .scores = which.scores});
  };
  const SoftmaxView longs = inspect(sides.longs, which.rows.longs);
  const SoftmaxView globals = inspect(sides.globals, which.rows.globals);
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
    const OutputRows& rows) {
  const torch::NoGradGuard no_grad;
  const SidesToInspect sides =
      InspectedSides(long_input, global_input, attention, carried, rows);
  const SoftmaxStatistics longs = MeasureAttention(sides.longs, rows.longs);
  const SoftmaxStatistics globals =
      MeasureAttention(sides.globals, rows.globals);
  return {.g2g = globals.own,
          .g2l = globals.other,
          .l2g = longs.other,
          .l2l = longs.own,
          .long_entropy = longs.entropy,
          .global_entropy = globals.entropy};
}

GlobalLocalAttentionOutput GlobalLocalAttentionImpl::forward(
    const torch::Tensor& long_input, const torch::Tensor& global_input,
    const AttentionInputs& attention, const CarriedScores& carried,
    const OutputRows& rows) {
  CheckInputs(long_input, global_input);
  const LinearInput longs_in = products_.Input(long_input);
  const LinearInput globals_in = products_.Input(global_input);

  // With one projection for all pieces both sides see the same keys and values.
  const bool shares = options_.share_qkv_projections;
  SeenTokens by_long = !shares && AsksForNone(rows.longs)
                           ? SeenTokens()
                           : Project(long_, longs_in, globals_in);
  const auto side_input = [&](QuerySide side) {
    SparseAttentionInput input =
        SideInput(side, long_input, global_input, attention, carried);
    input.dropout = is_training() ? options_.dropout : 0.0;
    return input;
  };
  SparseAttentionOutput long_side = Attend(long_, longs_in, by_long, rows.longs,
                                           side_input(QuerySide::kLong));
  const torch::Tensor long_output =
      Output(long_, long_side.context, rows.longs);
  // Without gradients nobody else holds these, as large as the long stream.
  long_side.context.reset();
  if (!shares) {
    by_long = {};
  }

  const SeenTokens by_global =
      shares ? SeenTokens{.own = by_long.other, .other = by_long.own}
      : AsksForNone(rows.globals) ? SeenTokens()
                                  : Project(global_, globals_in, longs_in);
  const SparseAttentionOutput global_side =
      Attend(global_, globals_in, by_global, rows.globals,
             side_input(QuerySide::kGlobal));

  return {.long_output = long_output,
          .global_output = Output(global_, global_side.context, rows.globals),
          .scores = {.g2g = global_side.scores.own,
                     .g2l = global_side.scores.other,
                     .l2g = long_side.scores.other,
                     .l2l = long_side.scores.own,
                     .layers = carried.mode == ResidualAttention::kOff
                                   ? 0
                                   : carried.previous.layers + 1}};
}

}  // namespace etc
