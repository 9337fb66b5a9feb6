#include "etc/encoder_decoder/model.h"

#include <algorithm>
#include <memory>

#include "base/clone_module.h"
#include "etc/encoder_decoder/layers.h"

namespace etc {

EncoderDecoderImpl::EncoderDecoderImpl(const EncoderDecoderConfig& config)
    : config_(CheckedForModules(config)) {
  const bool shares_all = config_.share_embeddings == "all";
  embedding_ = register_module(
      "embedding",
      TokenEmbedding(config_.vocab_size, config_.hidden_size,
                     shares_all ? std::max(config_.max_source_positions,
                                           config_.max_target_positions)
                                : config_.max_source_positions));
  encoder_ =
      register_module("encoder", TransformerEncoder(config_, embedding_));
  decoder_ = register_module(
      "decoder", shares_all ? TransformerDecoder(config_, embedding_)
                            : TransformerDecoder(config_));
}

torch::Tensor EncoderDecoderImpl::forward(const torch::Tensor& source_ids,
                                          const torch::Tensor& decoder_ids) {
  return decoder_->Logits(
      decoder_->forward(encoder_->forward(source_ids), decoder_ids));
}

SmoothedLoss EncoderDecoderImpl::Loss(const torch::Tensor& source_ids,
                                      const torch::Tensor& decoder_ids,
                                      const torch::Tensor& targets,
                                      double smoothing) {
  return decoder_->Loss(
      decoder_->forward(encoder_->forward(source_ids), decoder_ids), targets,
      smoothing);
}

void EncoderDecoderImpl::set_score_storage(ScoreStorage storage) {
  storage_ = storage;
  encoder_->set_score_storage(storage);
  decoder_->set_score_storage(storage);
}

void EncoderDecoderImpl::set_attention_implementation(
    AttentionImplementation implementation) {
  implementation_ = implementation;
  encoder_->set_attention_implementation(implementation);
  decoder_->set_attention_implementation(implementation);
}

void EncoderDecoderImpl::set_linear_precision(LinearPrecision precision) {
  precision_ = precision;
  encoder_->set_linear_precision(precision);
  decoder_->set_linear_precision(precision);
}

std::shared_ptr<torch::nn::Module> EncoderDecoderImpl::clone(
    const c10::optional<torch::Device>& device) const {
  return CloneModule(*this, device, [this] {
    auto copy = std::make_shared<EncoderDecoderImpl>(config_);
    copy->set_score_storage(storage_);
    copy->set_attention_implementation(implementation_);
    copy->set_linear_precision(precision_);
    return copy;
  });
}

void EncoderDecoderImpl::clone_(torch::nn::Module& other,
                                const c10::optional<torch::Device>& device) {
  BecomeCloneOf(other, device, this);
}

}  // namespace etc
