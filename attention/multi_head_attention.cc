#include "attention/multi_head_attention.h"

#include <c10/util/Exception.h>

#include <memory>
#include <optional>
#include <utility>

#include "attention/pattern.h"
#include "base/check_shape.h"
#include "base/check_tensor.h"
#include "base/clone_module.h"
#include "base/initializers.h"

namespace etc {
namespace {

// The options with their sizes filled in.
MultiHeadAttentionOptions Checked(MultiHeadAttentionOptions options) {
  for (const auto& [name, size] :
       {std::pair("hidden_size", options.hidden_size),
        std::pair("num_heads", options.num_heads),
        std::pair("head_size", options.head_size)}) {
    TORCH_CHECK(size >= 1, name, " should be at least 1, but is ", size);
  }
  TORCH_CHECK(options.key_size >= 0 && options.value_size >= 0,
              "key_size and value_size should be at least 0, but are ",
              options.key_size, " and ", options.value_size);
  CheckMaxDistance(options.relative_pos_max_distance,
                   "relative_pos_max_distance");
  TORCH_CHECK(options.dropout >= 0.0 && options.dropout < 1.0,
              "dropout should be in [0, 1), but is ", options.dropout);
  if (options.key_size == 0) {
    options.key_size = options.hidden_size;
  }
  if (options.value_size == 0) {
    options.value_size = options.hidden_size;
  }
  return options;
}

void CheckSource(const torch::Tensor& source, const char* name,
                 const torch::Tensor& weight) {
  TORCH_CHECK(source.defined() && source.dim() == 3, name,
              " should be [batch, length, features], but is ",
              source.defined() ? source.sizes() : at::IntArrayRef());
  CheckSameDevice(source, name, weight, "the layer");
  TORCH_CHECK(source.scalar_type() == weight.scalar_type(), name, " should be ",
              weight.scalar_type(), ", as the layer's weights, but is ",
              source.scalar_type());
}

// `given`, or by default a pattern in which every query sees every key.
SoftmaxPattern PatternOr(const SoftmaxPattern& given,
                         const KeyPatternOptions& everything) {
  if (given.masks == nullptr) {
    return AllKeysPattern(everything);
  }
  TORCH_CHECK(!given.max_distance.has_value() ||
                  *given.max_distance == everything.max_distance,
              "the max_distance of the pattern should be the layer's "
              "relative_pos_max_distance, ",
              everything.max_distance, ", but is ",
              given.max_distance.value_or(0));
  return given;
}

}  // namespace

MultiHeadAttentionImpl::MultiHeadAttentionImpl(
    const MultiHeadAttentionOptions& options)
    : options_(Checked(options)) {
  const int64_t features = options_.num_heads * options_.head_size;
  const auto add = [&](const char* name, int64_t inputs, int64_t outputs) {
    return register_module(
        name, MakeLinear(inputs, outputs, options_.initializer_range));
  };
  query_ = add("query", options_.hidden_size, features);
  key_ = add("key", options_.key_size, features);
  value_ = add("value", options_.value_size, features);
  output_ = add("output", features, options_.hidden_size);
  if (options_.relative_pos_max_distance > 0) {
    relative_ = register_module(
        "relative",
        RelativePositions(RelativeVocabSize(options_.relative_pos_max_distance),
                          options_.num_heads, options_.head_size));
  }
  if (options_.residual_gate_init.has_value()) {
    gate_ = register_parameter(
        "gate", torch::full({options_.num_heads}, *options_.residual_gate_init,
                            torch::kFloat32));
  }
}

std::shared_ptr<torch::nn::Module> MultiHeadAttentionImpl::clone(
    const c10::optional<torch::Device>& device) const {
  return CloneModule(*this, device, [this] {
    auto copy = std::make_shared<MultiHeadAttentionImpl>(options_);
    copy->set_linear_precision(products_.precision());
    return copy;
  });
}

void MultiHeadAttentionImpl::clone_(
    torch::nn::Module& other, const c10::optional<torch::Device>& device) {
  BecomeCloneOf(other, device, this);
}

void MultiHeadAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << "etc::MultiHeadAttention(hidden_size=" << options_.hidden_size
         << ", key_size=" << options_.key_size
         << ", value_size=" << options_.value_size
         << ", num_heads=" << options_.num_heads
         << ", head_size=" << options_.head_size
         << ", relative_pos_max_distance=" << options_.relative_pos_max_distance
         << ", dropout=" << options_.dropout << ")";
}

std::vector<torch::Tensor> MultiHeadAttentionImpl::Heads(
    const LinearInput& input,
    const std::vector<torch::nn::Linear>& projections) const {
  std::vector<torch::Tensor> heads = products_.ApplyEach(input, projections);
  for (torch::Tensor& projected : heads) {
    // The products of attention are rounded where those of projections are.
    projected = (input.is_rounded ? projected.to(torch::kBFloat16) : projected)
                    .reshape({input.value.size(0), input.value.size(1),
                              options_.num_heads, options_.head_size})
                    .transpose(1, 2);
  }
  return heads;
}

void MultiHeadAttentionImpl::CheckQuery(const torch::Tensor& query) const {
  CheckSource(query, "query", query_->weight);
  ETC_CHECK_SHAPE(query, {query.size(0), query.size(1), options_.hidden_size});
}

void MultiHeadAttentionImpl::CheckKeys(
    const torch::Tensor& key, const torch::Tensor& value,
    std::optional<int64_t> batch_of_queries) const {
  CheckSource(key, "key", query_->weight);
  CheckSource(value, "value", query_->weight);
  const int64_t batch = batch_of_queries.value_or(key.size(0));
  const int64_t keys = key.size(1);
  ETC_CHECK_SHAPE(key, {batch, keys, options_.key_size});
  ETC_CHECK_SHAPE(value, {batch, keys, options_.value_size});
}

MultiHeadAttentionOutput MultiHeadAttentionImpl::forward(
    const torch::Tensor& query, const torch::Tensor& key,
    const torch::Tensor& value, const SoftmaxPattern& pattern,
    const CarriedKeyScores& carried) {
  CheckQuery(query);
  CheckKeys(key, value, query.size(0));
  if (key.is_same(query) && value.is_same(query)) {
    const std::vector<torch::Tensor> heads =
        Heads(products_.Input(query), {key_, value_, query_});
    return AttendTo(heads[2], {.key = heads[0], .value = heads[1]}, pattern,
                    carried);
  }
  const KeyValueHeads heads = HeadsOf(key, value);
  return AttendTo(Heads(products_.Input(query), {query_})[0], heads, pattern,
                  carried);
}

KeyValueHeads MultiHeadAttentionImpl::HeadsOf(
    const torch::Tensor& key, const torch::Tensor& value) const {
  const LinearInput key_in = products_.Input(key);
  if (value.is_same(key)) {
    const std::vector<torch::Tensor> heads = Heads(key_in, {key_, value_});
    return {.key = heads[0], .value = heads[1]};
  }
  const torch::Tensor keys = Heads(key_in, {key_})[0];
  return {.key = keys, .value = Heads(products_.Input(value), {value_})[0]};
}

KeyValueHeads MultiHeadAttentionImpl::Project(const torch::Tensor& key,
                                              const torch::Tensor& value) {
  CheckKeys(key, value);
  return HeadsOf(key, value);
}

MultiHeadAttentionOutput MultiHeadAttentionImpl::Attend(
    const torch::Tensor& query, const KeyValueHeads& heads,
    const SoftmaxPattern& pattern, const CarriedKeyScores& carried) {
  CheckQuery(query);
  TORCH_CHECK(heads.key.defined() && heads.key.dim() == 4,
              "heads.key should be [batch, heads, keys, head_size], but is ",
              heads.key.defined() ? heads.key.sizes() : at::IntArrayRef());
  return AttendTo(Heads(products_.Input(query), {query_})[0], heads, pattern,
                  carried);
}

MultiHeadAttentionOutput MultiHeadAttentionImpl::AttendTo(
    const torch::Tensor& query, const KeyValueHeads& heads,
    const SoftmaxPattern& pattern, const CarriedKeyScores& carried) {
  const int64_t batch = query.size(0);
  const int64_t queries = query.size(2);
  const int64_t keys = heads.key.size(2);
  ETC_CHECK_SHAPE(heads.key,
                  {batch, options_.num_heads, keys, options_.head_size});
  ETC_CHECK_SHAPE(heads.value,
                  {batch, options_.num_heads, keys, options_.head_size});
  const DotProductAttentionOutput attended = DotProductAttention(
      {.query = query,
       .key = heads.key,
       .value = heads.value,
       .pattern = PatternOr(
           pattern, {.queries = queries,
                     .keys = keys,
                     .batch = batch,
                     .max_distance = options_.relative_pos_max_distance}),
       .relative = relative_.is_empty() ? RelativeTable() : relative_->table(),
       .residual = carried.residual,
       .previous = carried.previous,
       .gate = carried.residual.mode == ResidualAttention::kGate
                   ? gate_
                   : torch::Tensor(),
       .precision = products_.precision(),
       .dropout = is_training() ? options_.dropout : 0.0},
      options_.implementation);
  const torch::Tensor contexts = attended.context.transpose(1, 2).reshape(
      {batch, queries, options_.num_heads * options_.head_size});
  return {.output = products_.Apply(products_.Input(contexts), output_),
          .scores = attended.scores};
}

}  // namespace etc
