#include "attention/global_local_attention.h"

#include <c10/util/Exception.h>

#include <string>

#include "base/check_shape.h"
#include "base/initializers.h"

namespace etc {
namespace {

// Model spec 3.2 and 4.3: not the initializer range of the other tables.
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
}

// The shapes of an answer where nobody asks on the long side.
SparseAttentionOutput WithoutQueries(const SparseAttentionInput& input) {
  SparseAttentionOutput output = {.context = input.query};
  if (input.residual != ResidualAttention::kOff) {
    const int64_t batch = input.query.size(0);
    const int64_t heads = input.query.size(1);
    const int64_t window = 2 * input.local_radius + 1;
    output.own_scores = input.query.new_empty({batch, heads, 0, window});
    output.other_scores =
        input.query.new_empty({batch, heads, 0, input.other_key.size(2)});
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

GlobalLocalAttentionImpl::GlobalLocalAttentionImpl(
    const GlobalLocalAttentionOptions& options)
    : options_(options) {
  CheckOptions(options_);
  RegisterProjections();
  if (options_.relative_vocab_size > 0) {
    for (const auto& [name, side] : {std::pair("long_relative", &long_),
                                     std::pair("global_relative", &global_)}) {
      side->relative = register_module(
          name, RelativePositions(options_.relative_vocab_size,
                                  options_.num_heads, options_.head_size));
    }
  }
}

// The table of model spec 3.5: which projections there are, and which of them
// stand in for others.
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

  long_.output = register_module("long_output",
                                 MakeLinear(features, long_size, deviation));
  global_.output =
      options_.share_output_projection
          ? long_.output
          : register_module("global_output",
                            MakeLinear(features, global_size, deviation));
}

torch::Tensor GlobalLocalAttentionImpl::Heads(
    const torch::nn::Linear& projection, const LinearInput& input) {
  return products_.Apply(input, projection)
      .reshape({input.value.size(0), input.value.size(1), options_.num_heads,
                options_.head_size})
      .transpose(1, 2);
}

GlobalLocalAttentionImpl::KeysAndValues GlobalLocalAttentionImpl::ProjectOwn(
    const Side& side, const LinearInput& own) {
  return {.key = Heads(side.own_key, own), .value = Heads(side.own_value, own)};
}

GlobalLocalAttentionImpl::KeysAndValues GlobalLocalAttentionImpl::ProjectOther(
    const Side& side, const LinearInput& other) {
  return {.key = Heads(side.other_key, other),
          .value = Heads(side.other_value, other)};
}

GlobalLocalAttentionImpl::SideOutput GlobalLocalAttentionImpl::RunSide(
    Side& side, const LinearInput& own, const Seen& seen,
    SparseAttentionInput input) {
  input.query = Heads(side.query, own);
  input.own_key = seen.own.key;
  input.own_value = seen.own.value;
  input.other_key = seen.other.key;
  input.other_value = seen.other.value;
  if (!side.relative.is_empty()) {
    input.relative = side.relative->table();
  }
  SideOutput result;
  result.attention = own.value.size(1) == 0 && input.side == QuerySide::kLong
                         ? WithoutQueries(input)
                         : SparseAttention(input, options_.implementation);
  result.output = products_.Apply(
      products_.Input(result.attention.context.transpose(1, 2).reshape(
          {own.value.size(0), own.value.size(1),
           options_.num_heads * options_.head_size})),
      side.output);
  return result;
}

GlobalLocalAttentionOutput GlobalLocalAttentionImpl::forward(
    const torch::Tensor& long_input, const torch::Tensor& global_input,
    const AttentionInputs& attention, const CarriedScores& carried) {
  TORCH_CHECK(long_input.dim() == 3 && global_input.dim() == 3,
              "inputs should be [batch, length, hidden], but are ",
              long_input.sizes(), " and ", global_input.sizes());
  const int64_t batch = long_input.size(0);
  const int64_t longs = long_input.size(1);
  const int64_t globals = global_input.size(1);
  ETC_CHECK_SHAPE(long_input, {batch, longs, options_.long_hidden_size});
  ETC_CHECK_SHAPE(global_input, {batch, globals, options_.global_hidden_size});

  const ResidualScores& previous = carried.previous;
  SparseAttentionInput input{.attention = &attention,
                             .local_radius = options_.local_radius,
                             .residual = carried.mode,
                             .layer = carried.layer,
                             .storage = carried.storage,
                             .dropout = is_training() ? options_.dropout : 0.0};
  input.side = QuerySide::kLong;
  input.own_previous = previous.l2l;
  input.other_previous = previous.l2g;
  input.live = previous.long_live;
  const LinearInput longs_in = products_.Input(long_input);
  const LinearInput globals_in = products_.Input(global_input);
  const Seen by_long = {.own = ProjectOwn(long_, longs_in),
                        .other = ProjectOther(long_, globals_in)};
  const SideOutput long_side = RunSide(long_, longs_in, by_long, input);

  input.side = QuerySide::kGlobal;
  input.own_previous = previous.g2g;
  input.other_previous = previous.g2l;
  input.live = previous.global_live;
  // With one projection for all pieces both sides see the same.
  const Seen by_global = options_.share_qkv_projections
                             ? Seen{.own = by_long.other, .other = by_long.own}
                             : Seen{.own = ProjectOwn(global_, globals_in),
                                    .other = ProjectOther(global_, longs_in)};
  const SideOutput global_side = RunSide(global_, globals_in, by_global, input);

  return {.long_output = long_side.output,
          .global_output = global_side.output,
          .scores = {.g2g = global_side.attention.own_scores,
                     .g2l = global_side.attention.other_scores,
                     .l2g = long_side.attention.other_scores,
                     .l2l = long_side.attention.own_scores,
                     .long_live = long_side.attention.live,
                     .global_live = global_side.attention.live}};
}

}  // namespace etc
