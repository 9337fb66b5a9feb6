#include "attention/global_local_attention.h"

#include <c10/util/Exception.h>

#include <string>

#include "attention/check_shape.h"
#include "attention/initializers.h"

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
    for (const auto& [name, member] :
         {std::pair("long_relative", &long_relative_),
          std::pair("global_relative", &global_relative_)}) {
      *member = register_module(
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

  long_query_ = add("long_query", long_size);
  l2l_key_ = add("l2l_key", long_size);
  l2l_value_ = add("l2l_value", long_size);
  l2g_key_ = share_kv ? l2l_key_ : add("l2g_key", global_size);
  l2g_value_ = share_kv ? l2l_value_ : add("l2g_value", global_size);
  global_query_ = share_all ? long_query_ : add("global_query", global_size);
  g2g_key_ = share_all ? l2l_key_ : add("g2g_key", global_size);
  g2g_value_ = share_all ? l2l_value_ : add("g2g_value", global_size);
  g2l_key_ = share_kv ? g2g_key_ : add("g2l_key", long_size);
  g2l_value_ = share_kv ? g2g_value_ : add("g2l_value", long_size);

  long_output_ = register_module("long_output",
                                 MakeLinear(features, long_size, deviation));
  global_output_ =
      options_.share_output_projection
          ? long_output_
          : register_module("global_output",
                            MakeLinear(features, global_size, deviation));
}

torch::Tensor GlobalLocalAttentionImpl::Heads(
    torch::nn::Linear& projection, const torch::Tensor& input) const {
  return projection->forward(input)
      .reshape({input.size(0), input.size(1), options_.num_heads,
                options_.head_size})
      .transpose(1, 2);
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
  const int64_t features = options_.num_heads * options_.head_size;

  SparseAttentionInput input{.attention = &attention,
                             .local_radius = options_.local_radius,
                             .residual = carried.mode,
                             .layer = carried.layer,
                             .storage = carried.storage,
                             .dropout = is_training() ? options_.dropout : 0.0};
  input.side = QuerySide::kLong;
  input.query = Heads(long_query_, long_input);
  input.own_key = Heads(l2l_key_, long_input);
  input.own_value = Heads(l2l_value_, long_input);
  input.other_key = Heads(l2g_key_, global_input);
  input.other_value = Heads(l2g_value_, global_input);
  input.own_previous = carried.previous.l2l;
  input.other_previous = carried.previous.l2g;
  input.live = carried.previous.long_live;
  if (!long_relative_.is_empty()) {
    input.relative = long_relative_->table();
  }
  const SparseAttentionOutput longs_out =
      SparseAttention(input, options_.implementation);

  input.side = QuerySide::kGlobal;
  input.query = Heads(global_query_, global_input);
  input.own_key = Heads(g2g_key_, global_input);
  input.own_value = Heads(g2g_value_, global_input);
  input.other_key = Heads(g2l_key_, long_input);
  input.other_value = Heads(g2l_value_, long_input);
  input.own_previous = carried.previous.g2g;
  input.other_previous = carried.previous.g2l;
  input.live = carried.previous.global_live;
  if (!global_relative_.is_empty()) {
    input.relative = global_relative_->table();
  }
  const SparseAttentionOutput globals_out =
      SparseAttention(input, options_.implementation);

  return {
      .long_output = long_output_->forward(
          longs_out.context.transpose(1, 2).reshape({batch, longs, features})),
      .global_output =
          global_output_->forward(globals_out.context.transpose(1, 2).reshape(
              {batch, globals, features})),
      .scores = {.g2g = globals_out.own_scores,
                 .g2l = globals_out.other_scores,
                 .l2g = longs_out.other_scores,
                 .l2l = longs_out.own_scores,
                 .long_live = longs_out.live,
                 .global_live = globals_out.live}};
}

}  // namespace etc
