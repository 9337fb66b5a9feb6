// The configuration beside a model's weights in each project's form, BERT's
// read, written and lifted to ETC (doc/formats.md 3.2, 3.3; doc/model.md 11).
#include "etc/weights/source_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "nlohmann/json.hpp"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kBert[] = R"({"vocab_size": 30522, "hidden_size": 768,
  "num_hidden_layers": 12, "num_attention_heads": 12,
  "intermediate_size": 3072, "max_position_embeddings": 512,
  "type_vocab_size": 2})";

EtcConfig SmallBert() {
  const auto bert = BertConfigFromJson({{"vocab_size", 11},
                                        {"hidden_size", 4},
                                        {"num_hidden_layers", 2},
                                        {"num_attention_heads", 2},
                                        {"intermediate_size", 6},
                                        {"max_position_embeddings", 9},
                                        {"type_vocab_size", 2}},
                                       "bert_config.json");
  EXPECT_TRUE(bert.ok()) << bert.status();
  return bert->config;
}

TEST(SourceConfigTest, ReadsTheConfigurationOfEachProject) {
  TemporaryDirectory directory;
  EXPECT_EQ(ReadSourceConfig(directory.path()).status().code(),
            absl::StatusCode::kNotFound);
  directory.Write("config.json", kBert);
  const auto bert = ReadSourceConfig(directory.File("model.safetensors"));
  ASSERT_TRUE(bert.ok()) << bert.status();
  EXPECT_TRUE(bert->is_bert);
  EXPECT_TRUE(IsBert(bert->config));
  EXPECT_EQ(InitialConfig(*bert).relative_vocab_size, 32);
  directory.Write("etc_config.json",
                  R"({"vocab_size": 7, "hidden_size": 12, "new": 1})");
  const auto etc = ReadSourceConfig(directory.path());
  ASSERT_TRUE(etc.ok()) << etc.status();
  EXPECT_FALSE(etc->is_bert);
  EXPECT_EQ(InitialConfig(*etc).vocab_size, 7);
  EXPECT_THAT(etc->warnings, ElementsAre(HasSubstr("\"new\" is ignored")));
}

// save_pretrained of transformers, into the directory of an export, leaves
// etc_config.json as it was.
TEST(SourceConfigTest, ReadsConfigJsonOfTransformersBeforeEtcConfigJson) {
  TemporaryDirectory directory;
  directory.Write("etc_config.json", R"({"vocab_size": 7, "hidden_size": 12})");
  directory.Write(
      "config.json",
      R"({"model_type": "realetc", "vocab_size": 7, "hidden_size": 12,
          "architectures": ["RealEtcForSequenceClassification"],
          "id2label": {"0": "tenant", "1": "owner"},
          "residual_attention": "mean"})");
  const auto source = ReadSourceConfig(directory.path());
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(source->path, directory.File("config.json"));
  EXPECT_FALSE(source->is_bert);
  EXPECT_EQ(source->config.residual_attention, "mean");
  EXPECT_THAT(source->hugging_face.labels, ElementsAre("tenant", "owner"));
  directory.Write("config.json", "{");
  EXPECT_THAT(ReadSourceConfig(directory.path()).status().message(),
              HasSubstr("config.json"));
}

TEST(SourceConfigTest, ReadsConfigJsonFirstBesideHuggingFacesTensors) {
  TemporaryDirectory directory;
  directory.Write("bert_config.json", kBert);
  RecognizedNames names = {.style = NameStyle::kHuggingFace, .prefix = "bert."};
  const auto only = ReadBertSourceConfig(directory.path(), &names);
  ASSERT_TRUE(only.ok()) << only.status();
  EXPECT_EQ(only->config.hidden_act, "gelu_erf");
  directory.Write("config.json", kBert);
  const auto bert = ReadBertSourceConfig(directory.path(), &names);
  ASSERT_TRUE(bert.ok()) << bert.status();
  EXPECT_EQ(bert->path, directory.File("config.json"));
  EXPECT_EQ(bert->config.hidden_act, "gelu_erf");
  EXPECT_EQ(bert->first_position, 0);
  names.prefix = "roberta.";
  const auto roberta = ReadBertSourceConfig(directory.path(), &names);
  ASSERT_TRUE(roberta.ok()) << roberta.status();
  EXPECT_TRUE(roberta->hugging_face.is_roberta());
  EXPECT_EQ(roberta->first_position, 2);
  EXPECT_EQ(roberta->config.max_absolute_position_embeddings, 510);
  names = {.style = NameStyle::kGoogleBert, .prefix = "bert/"};
  for (const RecognizedNames* other :
       {static_cast<const RecognizedNames*>(&names),
        static_cast<const RecognizedNames*>(nullptr)}) {
    const auto google = ReadBertSourceConfig(directory.path(), other);
    ASSERT_TRUE(google.ok()) << google.status();
    EXPECT_EQ(google->path, directory.File("bert_config.json"));
    EXPECT_EQ(google->config.hidden_act, "gelu");
  }
}

// ETC's code may leave relative positions out; its two streams remain.
TEST(SourceConfigTest, TakesEtcWithAbsolutePositionsOnlyForEtc) {
  SourceConfig etc;
  etc.config.relative_vocab_size = std::nullopt;
  etc.config.relative_pos_max_distance = 0;
  etc.config.max_absolute_position_embeddings = 4096;
  for (bool EtcConfig::*const own :
       {&EtcConfig::share_qkv_projections, &EtcConfig::share_kv_projections,
        &EtcConfig::share_att_output_projection,
        &EtcConfig::share_feed_forward_params}) {
    etc.config.share_qkv_projections = true;
    etc.config.share_kv_projections = true;
    etc.config.share_att_output_projection = true;
    etc.config.share_feed_forward_params = true;
    EXPECT_TRUE(IsBert(etc.config));
    etc.config.*own = false;
    EXPECT_FALSE(IsBert(etc.config));
    EXPECT_EQ(EtcConfigToJson(InitialConfig(etc)), EtcConfigToJson(etc.config));
  }
}

nlohmann::json HuggingFaceConfig() {
  return {{"model_type", "roberta"},
          {"vocab_size", 50265},
          {"hidden_size", 8},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"intermediate_size", 16},
          {"max_position_embeddings", 514},
          {"type_vocab_size", 1},
          {"layer_norm_eps", 1e-5},
          {"pad_token_id", 1},
          {"hidden_act", "gelu"}};
}

TEST(BertConfigTest, ReadsRoberta) {
  const auto bert = BertConfigFromJson(HuggingFaceConfig(), "config.json");
  ASSERT_TRUE(bert.ok()) << bert.status();
  EXPECT_EQ(bert->first_position, 2);
  EXPECT_EQ(bert->config.max_absolute_position_embeddings, 512);
  EXPECT_EQ(bert->config.hidden_act, "gelu_erf");
  EXPECT_EQ(bert->config.layer_norm_epsilon, 1e-5);
  EXPECT_EQ(bert->config.residual_attention, "off");
  EXPECT_TRUE(IsBert(bert->config));
}

TEST(BertConfigTest, ReadsRealFormersMean) {
  nlohmann::json json = HuggingFaceConfig();
  for (const char* field : {"model_type", "layer_norm_eps", "pad_token_id"}) {
    json.erase(field);
  }
  EXPECT_EQ(BertConfigFromJson(json, "c")->config.hidden_act, "gelu");
  EXPECT_EQ(BertConfigFromJson(json, "c")->config.residual_attention, "off");
  json["use_running_mean"] = false;
  EXPECT_EQ(BertConfigFromJson(json, "c")->config.residual_attention, "sum");
  json["use_running_mean"] = true;
  EXPECT_EQ(BertConfigFromJson(json, "c")->config.residual_attention, "mean");
}

TEST(BertConfigTest, RefusesWhatIsNotBert) {
  const std::pair<const char*, nlohmann::json> changes[] = {
      {"model_type", "albert"},
      {"position_embedding_type", "relative_key"},
      {"is_decoder", true},
      {"hidden_act", "swish"},
      {"hidden_size", "768"},
      {"num_attention_heads", 3},
      {"max_position_embeddings", 2}};
  for (const auto& [field, value] : changes) {
    nlohmann::json json = HuggingFaceConfig();
    json[field] = value;
    const auto bert = BertConfigFromJson(json, "config.json");
    EXPECT_FALSE(bert.ok()) << field;
    EXPECT_THAT(bert.status().ToString(), HasSubstr("config.json"));
  }
  nlohmann::json json = HuggingFaceConfig();
  json.erase("type_vocab_size");
  EXPECT_THAT(BertConfigFromJson(json, "config.json").status().ToString(),
              HasSubstr("type_vocab_size"));
}

TEST(BertConfigTest, ReadsBackWhatItWrites) {
  EtcConfig config = SmallBert();
  config.residual_attention = "mean";
  const auto google = BertConfigFromJson(
      nlohmann::json::parse(GoogleBertConfigToJson(config)), "c");
  ASSERT_TRUE(google.ok()) << google.status();
  EXPECT_EQ(EtcConfigToJson(google->config), EtcConfigToJson(config));
  config.residual_attention = "decay";
  config.residual_decay = 0.75;
  for (const char* activation : {"gelu", "gelu_erf", "relu"}) {
    config.hidden_act = activation;
    config.layer_norm_epsilon = 1e-5;
    const auto other = BertConfigFromJson(
        nlohmann::json::parse(HuggingFaceConfigToJson(config)), "c");
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(EtcConfigToJson(other->config), EtcConfigToJson(config));
  }
}

TEST(BertConfigTest, WritesOnlyModesThatRealFormerHas) {
  EtcConfig config = SmallBert();
  for (const auto& [mode, has_field] :
       {std::pair("off", false), std::pair("sum", true),
        std::pair("mean", true), std::pair("decay", false),
        std::pair("gate", false)}) {
    config.residual_attention = mode;
    for (const std::string& text :
         {GoogleBertConfigToJson(config), HuggingFaceConfigToJson(config)}) {
      EXPECT_EQ(nlohmann::json::parse(text).contains("use_running_mean"),
                has_field)
          << mode;
    }
  }
}

TEST(BertConfigTest, LiftsToEtcOfTheSameSizes) {
  EtcConfig bert = SmallBert();
  bert.hidden_act = "gelu_erf";
  bert.layer_norm_epsilon = 1e-5;
  bert.residual_attention = "sum";
  const EtcConfig lifted = LiftedConfig(bert);
  EXPECT_TRUE(CheckEtcConfig(lifted, "lifted").ok());
  EXPECT_EQ(lifted.vocab_size, 11);
  EXPECT_EQ(lifted.hidden_size, 4);
  EXPECT_EQ(lifted.segment_vocab_size, 16);
  EXPECT_EQ(lifted.relative_vocab_size, 32);
  EXPECT_EQ(lifted.max_absolute_position_embeddings, 0);
  EXPECT_FALSE(lifted.share_qkv_projections);
  EXPECT_EQ(lifted.hidden_act, "gelu_erf");
  EXPECT_EQ(lifted.layer_norm_epsilon, 1e-12);
  EXPECT_EQ(lifted.residual_attention, "sum");
  bert.residual_decay = 0.75;
  bert.residual_gate_init = 0.5;
  EXPECT_EQ(LiftedConfig(bert).residual_decay, 0.75);
  EXPECT_EQ(LiftedConfig(bert).residual_gate_init, 0.5);
}

}  // namespace
}  // namespace etc
