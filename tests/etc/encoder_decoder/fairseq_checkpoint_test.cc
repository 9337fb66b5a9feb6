// Checkpoints of fairseq: through a file and back the configuration and the
// model are the same to the bit, for every sublayer that fairseq has and every
// sharing of tables; options of later versions; files that do not fit; a disk
// that is full. That Python's torch.load reads such a file, and we what
// torch.save writes, is for tests/fairseq_checkpoints.py.

#include "etc/encoder_decoder/fairseq_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <filesystem>
#include <string>
#include <utility>

#include "base/file_operations.h"
#include "etc/encoder_decoder/admin_omegas.h"
#include "etc/encoder_decoder/fairseq_names.h"
#include "etc/weights/pytorch_writer.h"
#include "nlohmann/json.hpp"
#include "tests/support/full_disk.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/toy_translation.h"

namespace etc {
namespace {

using testing::HasSubstr;

torch::Tensor LogitsOf(EncoderDecoder model) {
  const torch::NoGradGuard no_grad;
  return model->forward(torch::tensor({{4, 5, 6, 2}}, torch::kLong),
                        torch::tensor({{2, 7, 8}}, torch::kLong));
}

class FairseqCheckpointTest : public testing::Test {
 protected:
  // Writes tensors of the model with other options and returns the error.
  std::string ErrorOf(const NamedTensors& tensors,
                      const nlohmann::json& entries, int64_t heads = 0) {
    EXPECT_TRUE(WritePytorchFile(path_, entries, {}, "model", tensors).ok());
    const auto loaded = LoadFairseqCheckpoint(path_, heads);
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(loaded.status().message());
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.File("checkpoint.pt");
};

TEST_F(FairseqCheckpointTest, KeepsModelAndConfiguration) {
  for (const char* const sublayer : {"post_norm", "pre_norm", "admin"}) {
    for (const char* const sharing : {"all", "decoder", "none"}) {
      SCOPED_TRACE(std::string(sublayer) + ", " + sharing);
      EncoderDecoderConfig config = ToyTranslationConfig("mean", sublayer);
      config.share_embeddings = sharing;
      config.hidden_dropout_prob = 0.3;
      config.activation_dropout_prob = 0.15;
      config.max_source_positions = 66;
      config.max_target_positions = 77;
      config.residual_decay = 0.8;
      config.hidden_act = "gelu_erf";
      const EncoderDecoder model = PositiveTranslationModel(config, 3);
      const absl::Status written = WriteFairseqCheckpoint(path_, model);
      ASSERT_TRUE(written.ok()) << written;
      const auto loaded = LoadFairseqCheckpoint(path_);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      EXPECT_EQ(EncoderDecoderConfigToJson((*loaded)->config()),
                EncoderDecoderConfigToJson(config));
      EXPECT_FALSE((*loaded)->is_training());
      EXPECT_TRUE(LogitsOf(*loaded).equal(LogitsOf(model)));
    }
  }
}

TEST_F(FairseqCheckpointTest, IsKnownByItsNames) {
  ASSERT_TRUE(WriteFairseqCheckpoint(path_, PositiveTranslationModel(
                                                ToyTranslationConfig("off"), 3))
                  .ok());
  EXPECT_TRUE(IsFairseqTranslation(*TensorReader::Open(path_)));
  const std::string other = directory_.File("other.bin");
  ASSERT_TRUE(WritePytorchFile(other, nlohmann::json::object(), {}, "model",
                               {{"bert.x", torch::zeros({1})}})
                  .ok());
  EXPECT_FALSE(IsFairseqTranslation(*TensorReader::Open(other)));
}

// Its output may be a table of its own, or the decoder's.
TEST_F(FairseqCheckpointTest, IsKnownByLaterNames) {
  for (const std::string sharing : {"all", "none"}) {
    EncoderDecoderConfig config = ToyTranslationConfig("off");
    config.share_embeddings = sharing;
    const EncoderDecoder model = PositiveTranslationModel(config, 3);
    const NamedTensors tensors = *FairseqTensors(model);
    NamedTensors later;
    for (const auto& [name, tensor] : tensors) {
      const size_t stacked = name.find("in_proj_");
      if (stacked == std::string::npos) {
        later[name] = tensor;
        continue;
      }
      const auto thirds = tensor.chunk(3);
      for (size_t i = 0; i < thirds.size(); ++i) {
        later[name.substr(0, stacked) + "qkv"[i] + "_proj." +
              name.substr(stacked + 8)] = thirds[i];
      }
    }
    later["decoder.output_projection.weight"] =
        later.at(sharing == "none" ? "decoder.embed_out"
                                   : "decoder.embed_tokens.weight");
    later.erase("decoder.embed_out");
    ASSERT_TRUE(WritePytorchFile(path_,
                                 {{"cfg",
                                   {{"model",
                                     {{"encoder_attention_heads", 2},
                                      {"decoder_attention_heads", 2}}}}}},
                                 {}, "model", later)
                    .ok());
    EXPECT_TRUE(IsFairseqTranslation(*TensorReader::Open(path_)));
    const auto loaded = LoadFairseqCheckpoint(path_);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ((*loaded)->config().share_embeddings, sharing);
    EXPECT_TRUE(LogitsOf(*loaded).equal(LogitsOf(model)));
  }
}

TEST_F(FairseqCheckpointTest, ReadsOptionsOfLaterVersions) {
  const EncoderDecoder model =
      PositiveTranslationModel(ToyTranslationConfig("off"), 3);
  const NamedTensors tensors = *FairseqTensors(model);
  ASSERT_TRUE(WritePytorchFile(path_,
                               {{"args", nullptr},
                                {"cfg",
                                 {{"common", {{"seed", 1}}},
                                  {"model",
                                   {{"encoder_attention_heads", 2},
                                    {"decoder_attention_heads", 2},
                                    {"dropout", 0.25},
                                    {"activation_dropout", 0}}}}}},
                               {}, "model", tensors)
                  .ok());
  const auto config = FairseqConfig(*TensorReader::Open(path_));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->num_attention_heads, 2);
  EXPECT_EQ(config->hidden_dropout_prob, 0.25);
  EXPECT_EQ(config->encoder_residual_attention, "off");
  EXPECT_THAT(std::string(FairseqConfig(*TensorReader::Open(path_), /*heads=*/1)
                              .status()
                              .message()),
              HasSubstr("num_attention_heads should be 2, as its options say, "
                        "but is 1"));
  EXPECT_THAT(ErrorOf(tensors, nlohmann::json::object()),
              HasSubstr("number of attention heads"));
  EXPECT_EQ(FairseqConfig(*TensorReader::Open(path_), /*heads=*/1)
                ->num_attention_heads,
            1);
}

// Before 2019 activation_dropout was relu_dropout.
TEST_F(FairseqCheckpointTest, ReadsOptionsOfEarlierVersions) {
  const EncoderDecoder model =
      PositiveTranslationModel(ToyTranslationConfig("off"), 3);
  ASSERT_TRUE(WritePytorchFile(path_,
                               {{"args",
                                 {{"encoder_attention_heads", 2},
                                  {"decoder_attention_heads", 2},
                                  {"relu_dropout", 0.15}}}},
                               {}, "model", *FairseqTensors(model))
                  .ok());
  const auto config = FairseqConfig(*TensorReader::Open(path_));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->activation_dropout_prob, 0.15);
}

TEST_F(FairseqCheckpointTest, SaysWhatDoesNotFit) {
  const EncoderDecoder model =
      PositiveTranslationModel(ToyTranslationConfig("off"), 3);
  const NamedTensors tensors = *FairseqTensors(model);
  const auto options = [](const nlohmann::json& changes) {
    nlohmann::json args = {{"encoder_attention_heads", 2},
                           {"decoder_attention_heads", 2}};
    if (changes.is_object()) {
      args.update(changes);
    }
    return nlohmann::json{{"args", args}};
  };
  NamedTensors learned = tensors;
  learned["decoder.embed_positions.weight"] = torch::zeros({1, 4});
  EXPECT_THAT(ErrorOf(learned, options({})),
              HasSubstr("decoder should have sinusoidal positions"));
  NamedTensors other = tensors;
  other["encoder.embed_tokens.weight"] = torch::zeros({10, 4});
  EXPECT_THAT(ErrorOf(other, options({})), HasSubstr("of one shape"));
  EXPECT_THAT(ErrorOf(tensors, options({{"decoder_attention_heads", 1}})),
              HasSubstr("but have 2 and 1"));
  EXPECT_THAT(ErrorOf(tensors, options({{"dropout", "much"}})),
              HasSubstr("options.dropout should be a number"));
  EXPECT_THAT(ErrorOf(tensors, options({{"activation_fn", "swish"}})),
              HasSubstr("swish"));
  NamedTensors incomplete = tensors;
  incomplete.erase("decoder.layers.0.encoder_attn.out_proj.bias");
  EXPECT_THAT(ErrorOf(incomplete, options({})),
              HasSubstr("encoder_attn.out_proj.bias"));
  EncoderDecoderConfig mixed = ToyTranslationConfig("off", "admin");
  mixed.decoder_sublayer = "post_norm";
  EXPECT_THAT(WriteFairseqCheckpoint(path_, PositiveTranslationModel(mixed, 3))
                  .message(),
              HasSubstr("in both stacks or in none"));
}

TEST_F(FairseqCheckpointTest, ReadsNoOptionsThatAreTooDeep) {
  const std::string path = directory_.File("model.safetensors");
  const EncoderDecoder model =
      PositiveTranslationModel(ToyTranslationConfig("off"), 3);
  ASSERT_TRUE(
      WriteTensors(path, *FairseqTensors(model),
                   {{"args", R"({"model": {"a": )" + std::string(200000, '[') +
                                 std::string(200000, ']') + "}}"}})
          .ok());
  EXPECT_THAT(LoadFairseqCheckpoint(path).status().message(),
              HasSubstr("the number of attention heads among its options"));
}

// fairseq's "gelu" is the exact form, ours the tanh form.
TEST_F(FairseqCheckpointTest, NamesActivationsAsFairseqDoes) {
  for (const auto& [ours, theirs] :
       {std::pair("gelu", "gelu_accurate"), std::pair("gelu_erf", "gelu"),
        std::pair("relu", "relu")}) {
    EncoderDecoderConfig config = ToyTranslationConfig("off");
    config.hidden_act = ours;
    const EncoderDecoder model = PositiveTranslationModel(config, 3);
    ASSERT_TRUE(WriteFairseqCheckpoint(path_, model).ok());
    const nlohmann::json options =
        nlohmann::json::parse(TensorReader::Open(path_)->metadata().at("args"));
    EXPECT_EQ(options["activation_fn"], theirs);
    const auto loaded = LoadFairseqCheckpoint(path_);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ((*loaded)->config().hidden_act, ours);
    EXPECT_TRUE(LogitsOf(*loaded).equal(LogitsOf(model)));
  }
}

TEST_F(FairseqCheckpointTest, RefusesAnotherEpsilonThanFairseqs) {
  EncoderDecoderConfig config = ToyTranslationConfig("off");
  config.layer_norm_epsilon = 1e-6;
  const EncoderDecoder model = PositiveTranslationModel(config, 3);
  const absl::Status written = WriteFairseqCheckpoint(path_, model);
  EXPECT_EQ(written.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(written.message(), HasSubstr("layer_norm_epsilon"));
  EXPECT_EQ(CheckFairseqExpressible(model), written);
}

TEST_F(FairseqCheckpointTest, SaysBeforehandWhatItRefuses) {
  EXPECT_TRUE(CheckFairseqExpressible(
                  PositiveTranslationModel(ToyTranslationConfig("sum"), 3))
                  .ok());
  EXPECT_THAT(CheckFairseqExpressible(
                  PositiveTranslationModel(ToyTranslationConfig("gate"), 3))
                  .message(),
              HasSubstr("fairseq has no gates"));
}

TEST_F(FairseqCheckpointTest, RefusesOptionsOfAnotherFunction) {
  const auto error = [&](const char* sublayer, const std::string& option,
                         const nlohmann::json& value) {
    nlohmann::json args = {{"encoder_attention_heads", 2},
                           {"decoder_attention_heads", 2}};
    args[option] = value;
    nlohmann::json entries;
    entries["args"] = args;
    return ErrorOf(*FairseqTensors(PositiveTranslationModel(
                       ToyTranslationConfig("off", sublayer), 3)),
                   entries);
  };
  for (const std::string name :
       {"encoder_normalize_before", "decoder_normalize_before"}) {
    EXPECT_THAT(error("post_norm", name, true),
                HasSubstr("options." + name + " should be false"));
    EXPECT_THAT(error("admin", name, true), HasSubstr(name));
    EXPECT_THAT(error("pre_norm", name, false),
                HasSubstr("options." + name + " should be true"));
    EXPECT_THAT(error("post_norm", name, 1),
                HasSubstr(name + " should be true or false"));
  }
  for (const std::string name :
       {"no_token_positional_embeddings", "no_scale_embedding",
        "cross_self_attention", "layer_wise_attention"}) {
    EXPECT_THAT(error("post_norm", name, true),
                HasSubstr("options." + name + " should be false"));
  }
}

TEST_F(FairseqCheckpointTest, LeavesNothingOnAFullDisk) {
  const EncoderDecoder model =
      PositiveTranslationModel(ToyTranslationConfig("off"), 3);
  for (const size_t bytes : {0, 100, 5000}) {
    FullDisk disk(bytes);
    const ScopedFileOperations scope(&disk);
    EXPECT_THAT(WriteFairseqCheckpoint(path_, model).ToString(),
                HasSubstr("No space left"))
        << bytes;
    EXPECT_TRUE(std::filesystem::is_empty(directory_.path())) << bytes;
  }
}

TEST_F(FairseqCheckpointTest, FoldedOmegasAreAPlainModel) {
  EncoderDecoder model =
      PositiveTranslationModel(ToyTranslationConfig("mean", "admin"), 3);
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->named_parameters()) {
      if (parameter.key() == "encoder.layers.0.self_attention_omega" ||
          parameter.key() == "decoder.layers.0.self_attention_omega") {
        parameter.value().fill_(1);
      }
    }
  }
  const auto folded = FoldAdminOmegas(model);
  ASSERT_TRUE(folded.ok()) << folded.status();
  ASSERT_TRUE(WriteFairseqCheckpoint(path_, *folded).ok());
  const auto loaded = LoadFairseqCheckpoint(path_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->config().encoder_sublayer, "post_norm");
  const torch::Tensor expected = LogitsOf(model);
  EXPECT_TRUE(torch::allclose(LogitsOf(*loaded), expected, /*rtol=*/1e-4,
                              /*atol=*/1e-4));
}

}  // namespace
}  // namespace etc
