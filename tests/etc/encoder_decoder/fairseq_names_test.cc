// Weights of an encoder-decoder in fairseq's names: through a file and back the
// model computes the same to the bit, every sublayer that fairseq has and every
// sharing of tables; the names of doc/translation.md 1.7; files that do not
// fit.

#include "etc/encoder_decoder/fairseq_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <utility>

#include "tests/support/temporary_directory.h"
#include "tests/support/toy_translation.h"

namespace etc {
namespace {

using testing::HasSubstr;

absl::Status LoadFrom(const NamedTensors& tensors,
                      const EncoderDecoder& model) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/model.safetensors";
  const absl::Status written = WriteTensors(path, tensors, {});
  if (!written.ok()) {
    return written;
  }
  const auto reader = TensorReader::Open(path);
  return reader.ok() ? LoadFairseqTensors(*reader, model) : reader.status();
}

TEST(FairseqNamesTest, ReadsWhatItWrites) {
  for (const char* const sublayer : {"post_norm", "pre_norm", "admin"}) {
    for (const char* const sharing : {"all", "decoder", "none"}) {
      SCOPED_TRACE(std::string(sublayer) + ", " + sharing);
      EncoderDecoderConfig config = ToyTranslationConfig("mean", sublayer);
      config.share_embeddings = sharing;
      EncoderDecoder model = PositiveTranslationModel(config, 1);
      auto tensors = FairseqTensors(model);
      ASSERT_TRUE(tensors.ok()) << tensors.status();
      tensors->emplace("encoder.version", torch::tensor({3.0f}));
      tensors->emplace("decoder.embed_positions._float_tensor",
                       torch::zeros({1}));
      EncoderDecoder other = PositiveTranslationModel(config, 2);
      const absl::Status loaded = LoadFrom(*tensors, other);
      ASSERT_TRUE(loaded.ok()) << loaded;
      for (const auto& parameter : model->named_parameters()) {
        EXPECT_TRUE(
            other->named_parameters()[parameter.key()].equal(parameter.value()))
            << parameter.key();
      }
    }
  }
}

// The tensors as versions since 2020 write them.
NamedTensors InLaterNames(const NamedTensors& tensors) {
  NamedTensors later;
  for (const auto& [name, tensor] : tensors) {
    const size_t stacked = name.find("in_proj_");
    if (stacked == std::string::npos) {
      later[name == "decoder.embed_out" ? "decoder.output_projection.weight"
                                        : name] = tensor;
      continue;
    }
    const std::string part = name.substr(stacked + 8);
    const auto thirds = tensor.chunk(3);
    for (size_t i = 0; i < thirds.size(); ++i) {
      later[name.substr(0, stacked) + "qkv"[i] + "_proj." + part] = thirds[i];
    }
  }
  later.emplace("decoder.output_projection.weight",
                later.at("decoder.embed_tokens.weight"));
  return later;
}

TEST(FairseqNamesTest, ReadsLaterNames) {
  for (const char* const sharing : {"all", "decoder", "none"}) {
    SCOPED_TRACE(sharing);
    EncoderDecoderConfig config = ToyTranslationConfig("mean", "pre_norm");
    config.share_embeddings = sharing;
    EncoderDecoder model = PositiveTranslationModel(config, 1);
    const NamedTensors later = InLaterNames(*FairseqTensors(model));
    EncoderDecoder other = PositiveTranslationModel(config, 2);
    const absl::Status loaded = LoadFrom(later, other);
    ASSERT_TRUE(loaded.ok()) << loaded;
    for (const auto& parameter : model->named_parameters()) {
      EXPECT_TRUE(
          other->named_parameters()[parameter.key()].equal(parameter.value()))
          << parameter.key();
    }
    NamedTensors changed = later;
    changed["decoder.output_projection.weight"] = torch::ones({9, 4});
    EXPECT_EQ(LoadFrom(changed, other).ok(), config.share_embeddings == "none");
  }
}

TEST(FairseqNamesTest, HasTheNamesAndShapesOfFairseq) {
  EncoderDecoder model =
      PositiveTranslationModel(ToyTranslationConfig("off", "admin"), 1);
  const auto tensors = FairseqTensors(model);
  ASSERT_TRUE(tensors.ok());
  const auto shape = [&](const std::string& name) {
    const auto found = tensors->find(name);
    return found == tensors->end() ? std::vector<int64_t>{-1}
                                   : found->second.sizes().vec();
  };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(shape("decoder.embed_tokens.weight"), (Shape{9, 4}));
  EXPECT_EQ(shape("encoder.layers.1.self_attn.in_proj_weight"), (Shape{12, 4}));
  EXPECT_EQ(shape("decoder.layers.2.encoder_attn.in_proj_bias"), (Shape{12}));
  EXPECT_EQ(shape("decoder.layers.2.encoder_attn.out_proj.weight"),
            (Shape{4, 4}));
  EXPECT_EQ(shape("decoder.layers.0.encoder_attn_layer_norm.bias"), (Shape{4}));
  EXPECT_EQ(shape("decoder.layers.0.fc1.weight"), (Shape{6, 4}));
  EXPECT_EQ(shape("encoder.layers.0.final_layer_norm.weight"), (Shape{4}));
  EXPECT_EQ(shape("encoder.layers.0.attention_ratio_change"), (Shape{4}));
  EXPECT_EQ(shape("decoder.layers.0.encoder_ratio_change"), (Shape{4}));
  // 2 tables, 14 tensors an encoder layer, 21 a decoder layer.
  EXPECT_EQ(tensors->size(), 2u + 2 * 14 + 3 * 21);
  // Queries are the first third.
  EXPECT_TRUE(tensors->at("encoder.layers.1.self_attn.in_proj_weight")
                  .narrow(0, 0, 4)
                  .equal(model->named_parameters()
                             ["encoder.layers.1.self_attention.query.weight"]));
}

TEST(FairseqNamesTest, RefusesWhatDoesNotFit) {
  EncoderDecoder model = PositiveTranslationModel(ToyTranslationConfig(), 1);
  const auto good = FairseqTensors(model);
  ASSERT_TRUE(good.ok());
  const torch::Tensor before =
      model->named_parameters()["encoder.layers.0.feed_forward.output.weight"]
          .clone();
  const auto message = [&](NamedTensors tensors) {
    return std::string(LoadFrom(tensors, model).message());
  };
  NamedTensors changed = *good;
  changed.erase("decoder.layers.1.fc2.bias");
  EXPECT_THAT(message(changed), HasSubstr("decoder.layers.1.fc2.bias"));
  changed = *good;
  changed["encoder.layers.0.fc_ratio_change"] = torch::ones({4});
  EXPECT_THAT(
      message(changed),
      HasSubstr("encoder.layers.0.fc_ratio_change should not be there"));
  changed = *good;
  changed["encoder.layers.0.fc2.weight"] = torch::ones({4, 5});
  EXPECT_THAT(message(changed), HasSubstr("encoder.layers.0.fc2.weight"));
  changed = *good;
  changed["decoder.embed_tokens.weight"] = torch::ones({9, 4});
  EXPECT_THAT(message(changed), HasSubstr("should be equal"));
  EXPECT_TRUE(
      model->named_parameters()["encoder.layers.0.feed_forward.output.weight"]
          .equal(before));
  EXPECT_THAT(std::string(FairseqTensors(PositiveTranslationModel(
                                             ToyTranslationConfig("gate"), 1))
                              .status()
                              .message()),
              HasSubstr("fairseq has no gates"));
  EXPECT_THAT(
      std::string(FairseqTensors(PositiveTranslationModel(
                                     ToyTranslationConfig("off", "rezero"), 1))
                      .status()
                      .message()),
      HasSubstr("rezero"));
}

}  // namespace
}  // namespace etc
