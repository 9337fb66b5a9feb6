#ifndef ETC_TESTS_SUPPORT_TOY_TRANSLATION_H_
#define ETC_TESTS_SUPPORT_TOY_TRANSLATION_H_

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "etc/encoder_decoder/config.h"
#include "etc/encoder_decoder/model.h"

namespace etc {

// The toy encoder-decoder of doc/translation.md 11.2, in float64: every
// parameter by formula.

inline EncoderDecoderConfig ToyTranslationConfig(
    const std::string& residual_attention = "off",
    const std::string& sublayer = "post_norm") {
  EncoderDecoderConfig config;
  config.vocab_size = 9;
  config.hidden_size = 4;
  config.num_attention_heads = 2;
  config.intermediate_size = 6;
  config.num_encoder_layers = 2;
  config.num_decoder_layers = 3;
  config.hidden_dropout_prob = 0.0;
  config.encoder_sublayer = sublayer;
  config.decoder_sublayer = sublayer;
  config.encoder_residual_attention = residual_attention;
  config.decoder_residual_attention = residual_attention;
  config.cross_residual_attention = residual_attention;
  return config;
}

// A model in evaluation mode whose parameters are random numbers from 0.5 to
// 1.5, so that none of them may be left out or divided by unnoticed.
inline EncoderDecoder PositiveTranslationModel(
    const EncoderDecoderConfig& config, uint64_t seed) {
  torch::manual_seed(seed);
  EncoderDecoder model(config);
  model->eval();
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : model->parameters()) {
    parameter.uniform_(0.5, 1.5);
  }
  return model;
}

// Fills the parameters of a model by their numbers, in fairseq's order.
class ToyTranslationFiller {
 public:
  explicit ToyTranslationFiller(EncoderDecoder model)
      : model_(model), parameters_(model->named_parameters()) {}

  void Fill() {
    const torch::NoGradGuard no_grad;
    const EncoderDecoderConfig& config = model_->config();
    Set("embedding.weight", 0.0, 0.5);
    At("embedding.weight")[kPaddingId].zero_();
    for (int64_t i = 0; i < config.num_encoder_layers; ++i) {
      const std::string layer = "encoder.layers." + std::to_string(i) + ".";
      Attention(layer + "self_attention");
      FeedForward(layer + "feed_forward");
    }
    for (int64_t i = 0; i < config.num_decoder_layers; ++i) {
      const std::string layer = "decoder.layers." + std::to_string(i) + ".";
      Attention(layer + "self_attention");
      Attention(layer + "cross_attention");
      FeedForward(layer + "feed_forward");
    }
    if (config.encoder_sublayer == "pre_norm") {
      Norm("encoder.final_norm");
      Norm("decoder.final_norm");
    }
  }

 private:
  torch::Tensor At(const std::string& name) { return parameters_[name]; }
  // base + amplitude sin(0.37 e + 1.3 number + 0.5) for element e.
  torch::Tensor Next(int64_t elements, double base, double amplitude) {
    return torch::arange(elements, torch::kFloat64)
        .mul_(0.37)
        .add_(1.3 * static_cast<double>(++number_) + 0.5)
        .sin_()
        .mul_(amplitude)
        .add_(base);
  }
  void Set(const std::string& name, double base, double amplitude) {
    torch::Tensor parameter = At(name);
    parameter.copy_(
        Next(parameter.numel(), base, amplitude).view(parameter.sizes()));
  }
  void Dense(const std::string& name) {
    Set(name + ".weight", 0.0, 0.5);
    Set(name + ".bias", 0.0, 0.1);
  }
  void Norm(const std::string& name) {
    Set(name + ".weight", 1.0, 0.1);
    Set(name + ".bias", 0.0, 0.1);
  }
  void Attention(const std::string& name) {
    const int64_t d = model_->config().hidden_size;
    const torch::Tensor weight = Next(3 * d * d, 0.0, 0.5).view({3, d, d});
    const torch::Tensor bias = Next(3 * d, 0.0, 0.1).view({3, d});
    int64_t part = 0;
    for (const char* const source : {"query", "key", "value"}) {
      At(name + "." + source + ".weight").copy_(weight[part]);
      At(name + "." + source + ".bias").copy_(bias[part]);
      ++part;
    }
    Dense(name + ".output");
    Norm(name + "_norm");
  }
  void FeedForward(const std::string& name) {
    Dense(name + ".intermediate");
    Dense(name + ".output");
    Norm(name + ".norm");
  }

  EncoderDecoder model_;
  torch::OrderedDict<std::string, torch::Tensor> parameters_;
  int64_t number_ = 0;
};

inline EncoderDecoder ToyTranslationModel(const EncoderDecoderConfig& config) {
  EncoderDecoder model(config);
  model->to(torch::kFloat64);
  model->eval();
  ToyTranslationFiller(model).Fill();
  return model;
}

// Rows of ids, "45672 11842" for two of five.
inline torch::Tensor ToyIds(const std::string& rows) {
  std::vector<int64_t> values;
  int64_t count = 1;
  for (const char c : rows) {
    if (c == ' ') {
      ++count;
    } else {
      values.push_back(c - '0');
    }
  }
  return torch::tensor(values, torch::kInt64).view({count, -1});
}

struct ToyTranslationBatch {
  torch::Tensor source_ids = ToyIds("45672 11842");
  torch::Tensor decoder_ids = ToyIds("25611 27845");
  torch::Tensor targets = ToyIds("56211 78452");
};

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_TOY_TRANSLATION_H_
