#include "etc/embedding.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "base/check_tensor.h"
#include "base/initializers.h"
#include "etc/model.h"
#include "etc/nn/gradient_checkpoint.h"
#include "etc/nn/residual_norm.h"

namespace etc {
namespace {

// Segment ids of tokens that have none given (doc/model.md 2).
constexpr int64_t kDefaultLongSegment = 1;
constexpr int64_t kDefaultGlobalSegment = 0;

// torch::dropout in training mode, which keeps of each element whether it was
// dropped.
class DropoutFunction : public torch::autograd::Function<DropoutFunction> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Variables = torch::autograd::variable_list;

  static torch::Tensor forward(Context* context, const torch::Tensor& input,
                               double probability) {
    const torch::Tensor factors = torch::empty_like(input)
                                      .bernoulli_(1.0 - probability)
                                      .div_(1.0 - probability);
    context->save_for_backward({factors.to(torch::kBool)});
    // The factor of a kept element, rounded as it is, without a wait for the
    // device.
    context->saved_data["factor"] =
        torch::ones({1}, input.options().device(torch::kCPU))
            .div_(1.0 - probability)
            .item<double>();
    return input * factors;
  }

  static Variables backward(Context* context, Variables gradients) {
    const double factor = context->saved_data["factor"].toDouble();
    return {gradients[0] * context->get_saved_variables()[0] * factor,
            torch::Tensor()};
  }
};

}  // namespace

EmbeddingTableImpl::EmbeddingTableImpl(int64_t rows, int64_t width,
                                       int64_t projection_size,
                                       double initializer_range) {
  torch::Tensor weight = torch::empty({rows, width});
  TruncatedNormal_(weight, initializer_range);
  weight_ = register_parameter("weight", weight);
  if (projection_size > 0 && projection_size != width) {
    projection_ = register_module(
        "projection", MakeLinear(width, projection_size,
                                 1.0 / std::sqrt(static_cast<double>(width))));
  }
}

torch::Tensor EmbeddingTableImpl::forward(const torch::Tensor& ids,
                                          const torch::Tensor& mask,
                                          const std::string& name) {
  CheckIntegers(ids, name);
  CheckSameDevice(ids, name, weight_, "the table");
  torch::Tensor allowed_ids = ids;
  if (mask.defined()) {
    allowed_ids = ids.masked_fill(AsBoolMask(mask, "mask").logical_not(), 0);
  }
  // Elsewhere the check would stop the stream; the device has its own.
  if (allowed_ids.numel() > 0 && allowed_ids.is_cpu()) {
    const int64_t lowest = allowed_ids.min().item<int64_t>();
    const int64_t highest = allowed_ids.max().item<int64_t>();
    TORCH_CHECK(lowest >= 0 && highest < weight_.size(0), name,
                " should be in [0, ", weight_.size(0), "), but range from ",
                lowest, " to ", highest);
  }
  torch::Tensor vectors = torch::embedding(weight_, allowed_ids);
  if (!projection_.is_empty()) {
    vectors = ApplyLinear(vectors, projection_);
  }
  if (mask.defined()) {
    vectors = vectors * mask.unsqueeze(-1).to(vectors.dtype());
  }
  return vectors;
}

EtcEmbeddingImpl::EtcEmbeddingImpl(const EtcConfig& config)
    : hidden_size_(config.hidden_size),
      segment_vocab_size_(config.segment_vocab_size),
      has_long_tokens_(config.has_long_tokens),
      dropout_(config.hidden_dropout_prob) {
  const double range = config.initializer_range;
  token_ = register_module(
      "token", EmbeddingTable(config.vocab_size, config.token_embedding_size(),
                              hidden_size_, range));
  segment_ = register_module(
      "segment", EmbeddingTable(segment_vocab_size_, hidden_size_, 0, range));
  const int64_t positions = config.max_absolute_position_embeddings;
  if (positions > 0) {
    if (has_long_tokens_) {
      long_position_ = register_module(
          "long_position", EmbeddingTable(positions, hidden_size_, 0, range));
    }
    global_position_ = register_module(
        "global_position", EmbeddingTable(positions, hidden_size_, 0, range));
  }
  const auto norm = [&] {
    return MakeLayerNorm(hidden_size_, config.layer_norm_epsilon);
  };
  if (has_long_tokens_) {
    long_norm_ = register_module("long_norm", norm());
  }
  global_norm_ = register_module("global_norm", norm());
}

// The inputs and modules of one of the two streams.
struct EtcEmbeddingImpl::Stream {
  std::string prefix;  // of the names of its tensors in EtcInput
  torch::Tensor token_ids;
  torch::Tensor segment_ids;
  int64_t default_segment;
  torch::Tensor position_ids;
  torch::Tensor adder;
  EmbeddingTable position;
  torch::nn::LayerNorm norm;
};

torch::Tensor EtcEmbeddingImpl::EmbedStream(const Stream& stream,
                                            bool recomputes) {
  if (!recomputes || !is_training() || stream.token_ids.numel() == 0) {
    return torch::dropout(NormedStream(stream), dropout_, is_training());
  }
  std::vector<torch::Tensor> inputs = {stream.token_ids};
  if (stream.adder.defined()) {
    inputs.push_back(stream.adder);
  }
  // `alive`: the graph may outlive whoever has the model.
  const torch::Tensor normed = CheckpointGradients(
      [this, alive = weak_from_this().lock(),
       stream](const std::vector<torch::Tensor>& given) {
        Stream once = stream;
        if (given.size() > 1) {
          once.adder = given[1];
        }
        return std::vector<torch::Tensor>{NormedStream(once)};
      },
      inputs, parameters())[0];
  return dropout_ > 0.0 ? DropoutFunction::apply(normed, dropout_) : normed;
}

torch::Tensor EtcEmbeddingImpl::NormedStream(const Stream& stream) {
  const int64_t batch = stream.token_ids.size(0);
  const int64_t length = stream.token_ids.size(1);
  torch::Tensor segment_ids = stream.segment_ids;
  if (segment_ids.defined()) {
    ETC_CHECK_SHAPE(segment_ids, {batch, length});
    CheckIntegers(segment_ids, stream.prefix + "segment_ids");
  } else {
    segment_ids = torch::full_like(stream.token_ids, stream.default_segment);
  }
  if (length == 0) {
    // Looking nothing up would give each table a gradient of zeros, as large as
    // it is.
    return token_->weight().new_empty({batch, 0, hidden_size_});
  }
  EmbeddingTable position = stream.position;
  torch::Tensor sum =  // [B, length, H]
      token_->forward(stream.token_ids, /*mask=*/{},
                      stream.prefix + "token_ids") +
      segment_->forward(segment_ids, segment_ids.ge(0).logical_and(
                                         segment_ids.lt(segment_vocab_size_)));
  if (!stream.position.is_empty()) {
    torch::Tensor position_ids = stream.position_ids;
    if (!position_ids.defined()) {
      position_ids = torch::arange(length, stream.token_ids.options())
                         .unsqueeze(0)
                         .expand({batch, length});
    }
    ETC_CHECK_SHAPE(position_ids, {batch, length});
    sum = sum + position->forward(position_ids, /*mask=*/{},
                                  stream.prefix + "position_ids");
  } else {
    TORCH_CHECK(!stream.position_ids.defined(),
                "position ids are given, but max_absolute_position_embeddings "
                "is 0");
  }
  if (stream.adder.defined()) {
    ETC_CHECK_SHAPE(stream.adder, {batch, length, hidden_size_});
    CheckSameDevice(stream.adder, "an embedding adder", sum, "the model");
    TORCH_CHECK(stream.adder.scalar_type() == sum.scalar_type(),
                "an embedding adder should be ", sum.scalar_type(),
                ", as the model, but is ", stream.adder.scalar_type());
    sum = sum + stream.adder;
  }
  return ApplyLayerNorm(sum, stream.norm);
}

EmbeddedInput EtcEmbeddingImpl::forward(const EtcInput& input,
                                        bool recomputes) {
  CheckIntegers(input.token_ids, "token_ids");
  CheckIntegers(input.global_token_ids, "global_token_ids");
  TORCH_CHECK(input.token_ids.dim() == 2 && input.global_token_ids.dim() == 2,
              "token ids should be [batch, length], but are ",
              input.token_ids.sizes(), " and ", input.global_token_ids.sizes());
  ETC_CHECK_SHAPE(input.global_token_ids,
                  {input.token_ids.size(0), input.global_token_ids.size(1)});
  TORCH_CHECK(has_long_tokens_ || input.token_ids.size(1) == 0, "there are ",
              input.token_ids.size(1),
              " long tokens, but has_long_tokens is false");
  return {
      .long_input = EmbedStream({.prefix = "",
                                 .token_ids = input.token_ids,
                                 .segment_ids = input.segment_ids,
                                 .default_segment = kDefaultLongSegment,
                                 .position_ids = input.position_ids,
                                 .adder = input.long_embedding_adder,
                                 .position = long_position_,
                                 .norm = long_norm_},
                                recomputes),
      .global_input = EmbedStream({.prefix = "global_",
                                   .token_ids = input.global_token_ids,
                                   .segment_ids = input.global_segment_ids,
                                   .default_segment = kDefaultGlobalSegment,
                                   .position_ids = input.global_position_ids,
                                   .adder = input.global_embedding_adder,
                                   .position = global_position_,
                                   .norm = global_norm_},
                                  recomputes)};
}

const torch::Tensor& EtcEmbeddingImpl::token_table() const {
  return token_->weight();
}

}  // namespace etc
