// etc_config.json: the official file's fields, defaults and nulls
// (doc/model.md 1.1), the published sizes (doc/model.md 1.2), and a message
// that names the field for each value or combination from which no model can be
// built.

#include "etc/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "etc/config_fields.h"
#include "etc/weights/source_config.h"
#include "nlohmann/json.hpp"
#include "tests/support/field_bounds.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

absl::StatusOr<EtcConfig> Parse(const std::string& text) {
  std::vector<std::string> unknown;
  return EtcConfigFromJson(json::parse(text), "c.json", &unknown);
}

// Trainable numbers with a shared feed-forward block (doc/model.md 1.2 and
// doc/formats.md 3.1). V, E, H, F, S, R, N as there, A = N d.
int64_t ParameterCount(const EtcConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t heads = config.num_attention_heads;
  const int64_t attention = heads * config.head_size();
  const int64_t inner = config.intermediate_size;
  const int64_t inputs = config.share_qkv_projections  ? 3
                         : config.share_kv_projections ? 6
                                                       : 10;
  const int64_t outputs = config.share_att_output_projection ? 1 : 2;
  const int64_t layer =
      inputs * (hidden + 1) * attention + outputs * (attention + 1) * hidden +
      2 * hidden * inner + inner + hidden + 3 * 2 * hidden +
      2 * config.relative_vocab_size.value_or(0) * (attention + heads);
  return config.num_hidden_layers * layer +
         (config.vocab_size + config.segment_vocab_size + 4) * hidden;
}

// Golden file: the official form, sorted and indented by 2 (doc/model.md 1.1).
constexpr char kDefaults[] = R"({
  "att_size_per_head": null,
  "attention_probs_dropout_prob": 0.1,
  "depth_scaled_initializer": false,
  "embedding_size": null,
  "final_layer_norm": false,
  "grad_checkpointing_period": 0,
  "has_long_tokens": true,
  "hidden_act": "gelu",
  "hidden_dropout_prob": 0.1,
  "hidden_size": 768,
  "initializer_range": 0.02,
  "intermediate_size": 3072,
  "layer_norm_epsilon": 1e-12,
  "local_radius": 84,
  "max_absolute_position_embeddings": 0,
  "num_attention_heads": 12,
  "num_hidden_layers": 12,
  "relative_pos_max_distance": 12,
  "relative_vocab_size": 32,
  "residual_attention": "off",
  "residual_decay": 0.9,
  "residual_gate_init": 0.0,
  "segment_vocab_size": 16,
  "share_att_output_projection": false,
  "share_feed_forward_params": true,
  "share_kv_projections": false,
  "share_qkv_projections": true,
  "sublayer": "post_norm",
  "use_hard_g2l_mask": false,
  "use_hard_l2g_mask": false,
  "use_pre_activation_order": false,
  "vocab_size": null
}
)";

TEST(EtcConfigTest, WritesTheOfficialForm) {
  EXPECT_EQ(EtcConfigToJson(EtcConfig{}), kDefaults);
}

TEST(EtcConfigTest, KeepsTheDefaultsOfAbsentFields) {
  const auto config = Parse("{}");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(EtcConfigToJson(*config), kDefaults);
  EXPECT_EQ(config->vocab_size, 0);
  EXPECT_EQ(config->head_size(), 64);
  EXPECT_EQ(config->token_embedding_size(), 768);
}

// Every field other than its default, so that a field that is forgotten or
// taken for another one shows.
TEST(EtcConfigTest, ReadsBackEveryFieldItWrites) {
  json fields = {{"att_size_per_head", 5},
                 {"attention_probs_dropout_prob", 0.25},
                 {"embedding_size", 7},
                 {"grad_checkpointing_period", 2},
                 {"hidden_act", "relu"},
                 {"hidden_dropout_prob", 0.5},
                 {"hidden_size", 9},
                 {"initializer_range", 0.03},
                 {"intermediate_size", 11},
                 {"layer_norm_epsilon", 1e-5},
                 {"local_radius", 13},
                 {"max_absolute_position_embeddings", 14},
                 {"num_attention_heads", 4},
                 {"num_hidden_layers", 3},
                 {"relative_pos_max_distance", 6},
                 {"relative_vocab_size", 17},
                 {"residual_attention", "mean"},
                 {"residual_decay", 0.75},
                 {"residual_gate_init", 0.5},
                 {"segment_vocab_size", 18},
                 {"share_att_output_projection", true},
                 {"share_feed_forward_params", false},
                 {"share_kv_projections", true},
                 {"share_qkv_projections", false},
                 {"use_hard_g2l_mask", true},
                 {"use_hard_l2g_mask", true},
                 {"sublayer", "pre_norm"},
                 {"use_pre_activation_order", true},
                 {"vocab_size", 19},
                 {"has_long_tokens", true},
                 {"final_layer_norm", true},
                 {"depth_scaled_initializer", true}};
  ASSERT_EQ(fields.size(), 32u);
  json defaults = json::parse(kDefaults);
  // Only where all is shared may there be no long tokens: see below.
  defaults["has_long_tokens"] = json();
  for (const auto& [name, value] : fields.items()) {
    ASSERT_NE(value, defaults.at(name)) << name;
  }
  const auto config = Parse(fields.dump());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(EtcConfigToJson(*config), fields.dump(2) + "\n");
  EXPECT_EQ(config->head_size(), 5);
  EXPECT_EQ(config->token_embedding_size(), 7);
  EXPECT_EQ(config->hidden_size, 9);
  EXPECT_TRUE(config->use_hard_l2g_mask);
}

TEST(EtcConfigTest, ReadsNullsAsTheOfficialCodeDoes) {
  const auto config = Parse(R"({"vocab_size": null, "embedding_size": null,
      "att_size_per_head": null, "relative_vocab_size": null,
      "relative_pos_max_distance": 0, "hidden_act": null})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->vocab_size, 0);
  EXPECT_EQ(config->relative_vocab_size, std::nullopt);
  EXPECT_EQ(config->hidden_act, "linear");
}

// The official file knows two sublayers, by another field.
TEST(EtcConfigTest, ReadsTheSublayerFromEitherField) {
  EXPECT_EQ(Parse(R"({"use_pre_activation_order": true})")->sublayer,
            "pre_norm");
  EXPECT_EQ(Parse(R"({"use_pre_activation_order": false})")->sublayer,
            "post_norm");
  for (const char* name : {"post_norm", "pre_norm", "rezero", "admin"}) {
    const auto sublayer = SublayerFromName(name);
    ASSERT_TRUE(sublayer.has_value()) << name;
    EXPECT_STREQ(SublayerName(*sublayer), name);
    const auto config = Parse(json({{"sublayer", name}}).dump());
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->sublayer, name);
    // Both fields stand in what is written, and agree.
    const json written = json::parse(EtcConfigToJson(*config));
    EXPECT_EQ(written["sublayer"], name);
    EXPECT_EQ(written["use_pre_activation_order"],
              std::string(name) == "pre_norm");
    const auto again = Parse(written.dump());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->sublayer, name);
  }
  EXPECT_EQ(SublayerFromName("pre"), std::nullopt);
}

TEST(EtcConfigTest, ReadsActivationsInAnyCase) {
  EXPECT_EQ(Parse(R"({"hidden_act": "GELU"})")->hidden_act, "gelu");
  EXPECT_EQ(Parse(R"({"hidden_act": "ReLU"})")->hidden_act, "relu");
  EXPECT_EQ(Parse(R"({"hidden_act": ""})")->hidden_act, "linear");
}

TEST(EtcConfigTest, CollectsUnknownFields) {
  std::vector<std::string> unknown = {"kept"};
  const auto config = EtcConfigFromJson(
      {{"vocab_size", 5}, {"zeta", 1}, {"hiden_size", 2}}, "c.json", &unknown);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(unknown, ElementsAre("kept", "hiden_size", "zeta"));
  EXPECT_EQ(config->hidden_size, 768);
}

TEST(EtcConfigTest, ReadsAFileAndNamesIt) {
  TemporaryDirectory directory;
  std::vector<std::string> unknown;
  const auto good =
      ReadEtcConfig(directory.Write("a.json", kDefaults), &unknown);
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_THAT(unknown, IsEmpty());

  const std::string bad = directory.Write("b.json", "{\"hidden_size\": []}");
  EXPECT_EQ(ReadEtcConfig(bad, &unknown).status().message(),
            bad + ": hidden_size should be an integer, but is an array");
  EXPECT_EQ(ReadEtcConfig(directory.File("c.json"), &unknown).status().code(),
            absl::StatusCode::kNotFound);
}

struct Refusal {
  std::string json;
  std::string message;  // begins so
};

class EtcConfigRefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(EtcConfigRefusalTest, NamesTheField) {
  const auto config = Parse(GetParam().json);
  ASSERT_FALSE(config.ok()) << GetParam().json;
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(config.status().message()),
              StartsWith(GetParam().message))
      << GetParam().json;
}

INSTANTIATE_TEST_SUITE_P(
    Table, EtcConfigRefusalTest,
    testing::Values(
        Refusal{"[]", "c.json should be an object, but is an array"},
        Refusal{R"({"hidden_size": "768"})",
                "c.json: hidden_size should be an integer, but is \"768\""},
        Refusal{R"({"hidden_size": 768.0})",
                "c.json: hidden_size should be an integer, but is 768.0"},
        Refusal{R"({"hidden_size": null})",
                "c.json: hidden_size should be an integer, but is null"},
        Refusal{R"({"share_kv_projections": 1})",
                "c.json: share_kv_projections should be true or false"},
        Refusal{R"({"hidden_act": 3})",
                "c.json: hidden_act should be a string, but is 3"},
        Refusal{R"({"hidden_act": "swish"})",
                "c.json: hidden_act should be \"relu\" or \"gelu\" or "
                "\"gelu_erf\" or \"tanh\" or \"linear\", but is \"swish\""},
        Refusal{R"({"hidden_size": 128})",
                "c.json: hidden_size should be a multiple of "
                "num_attention_heads (12) where att_size_per_head is null, but "
                "is 128; set num_attention_heads as well, to 2 for heads of "
                "64"},
        Refusal{R"({"hidden_size": 127})",
                "c.json: hidden_size should be a multiple of "
                "num_attention_heads (12) where att_size_per_head is null, but "
                "is 127; set num_attention_heads as well, to 1 for heads of "
                "127"},
        Refusal{R"({"layer_norm_epsilon": 0})",
                "c.json: layer_norm_epsilon should be in [1e-30, 1], but is 0"},
        Refusal{R"({"final_layer_norm": true})",
                "c.json: final_layer_norm should be false where sublayer is "
                "\"post_norm\", but is true"},
        Refusal{R"({"final_layer_norm": true, "sublayer": "rezero"})",
                "c.json: final_layer_norm should be false where sublayer is "
                "\"rezero\", but is true"},
        Refusal{R"({"sublayer": "Admin"})",
                "c.json: sublayer should be \"post_norm\" or \"pre_norm\" or "
                "\"rezero\" or \"admin\", but is \"Admin\"; did you mean "
                "\"admin\"?"},
        Refusal{R"({"sublayer": "rezero", "use_pre_activation_order": true})",
                "c.json: use_pre_activation_order should be false where "
                "sublayer is \"rezero\", but is true"},
        Refusal{
            R"({"sublayer": "pre_norm", "use_pre_activation_order": false})",
            "c.json: use_pre_activation_order should be true where "
            "sublayer is \"pre_norm\", but is false"},
        Refusal{R"({"use_pre_activation_order": null})",
                "c.json: use_pre_activation_order should be true or false"},
        Refusal{R"({"has_long_tokens": false})",
                "c.json: share_att_output_projection should be true where "
                "has_long_tokens is false, but is false"},
        Refusal{R"({"has_long_tokens": false, "share_qkv_projections": false,
                    "share_att_output_projection": true})",
                "c.json: share_qkv_projections should be true where "},
        Refusal{
            R"({"has_long_tokens": false, "share_feed_forward_params": false,
                    "share_att_output_projection": true})",
            "c.json: share_feed_forward_params should be true where "},
        Refusal{R"({"residual_attention": "Sum"})",
                "c.json: residual_attention should be \"off\" or \"sum\" or "
                "\"mean\" or \"decay\" or \"gate\", but is \"Sum\"; did you "
                "mean \"sum\"?"},
        Refusal{R"({"residual_decay": 1})",
                "c.json: residual_decay should be in (0, 1), but is 1"},
        Refusal{R"({"residual_attention": "decay", "residual_decay": 0.4})",
                "c.json: residual_decay should be above 0.43"},
        Refusal{R"({"residual_gate_init": "0"})",
                "c.json: residual_gate_init should be a number"},
        Refusal{R"({"vocab_size": 0})",
                "c.json: vocab_size should be at least 1, but is 0"},
        Refusal{R"({"vocab_size": 16777217})",
                "c.json: vocab_size should be at most 16777216"},
        Refusal{R"({"hidden_size": 100000000000})",
                "c.json: hidden_size should be at most 1048576"},
        Refusal{R"({"num_hidden_layers": 1000000})",
                "c.json: num_hidden_layers should be at most 4096"},
        Refusal{R"({"local_radius": 1048577})",
                "c.json: local_radius should be at most 1048576"},
        Refusal{R"({"segment_vocab_size": 0})", "c.json: segment_vocab_size "},
        Refusal{R"({"embedding_size": 0})", "c.json: embedding_size "},
        Refusal{R"({"hidden_size": 0})",
                "c.json: hidden_size should be at least 1, but is 0"},
        Refusal{R"({"num_hidden_layers": 0})", "c.json: num_hidden_layers "},
        Refusal{R"({"num_attention_heads": 0})",
                "c.json: num_attention_heads should be at least 1, but is 0"},
        Refusal{R"({"num_attention_heads": 5})",
                "c.json: hidden_size should be a multiple of "
                "num_attention_heads (5) where att_size_per_head is null, but "
                "is 768"},
        Refusal{R"({"local_radius": 0})", "c.json: local_radius "},
        Refusal{R"({"att_size_per_head": -1})", "c.json: att_size_per_head "},
        Refusal{R"({"relative_pos_max_distance": -1})",
                "c.json: relative_pos_max_distance should be at least 0"},
        Refusal{R"({"relative_pos_max_distance": 15})",
                "c.json: relative_vocab_size should be at least 2 * "
                "relative_pos_max_distance + 4 = 34, but is 32"},
        Refusal{R"({"relative_pos_max_distance": 0, "relative_vocab_size": 3})",
                "c.json: relative_vocab_size should be at least"},
        Refusal{R"({"relative_vocab_size": null})",
                "c.json: relative_pos_max_distance should be 0 where "
                "relative_vocab_size is null, but is 12"},
        Refusal{R"({"max_absolute_position_embeddings": -1})",
                "c.json: max_absolute_position_embeddings "},
        Refusal{R"({"intermediate_size": 0})", "c.json: intermediate_size "},
        Refusal{R"({"hidden_dropout_prob": 1})",
                "c.json: hidden_dropout_prob should be in [0, 1), but is 1"},
        Refusal{R"({"attention_probs_dropout_prob": -0.1})",
                "c.json: attention_probs_dropout_prob "},
        Refusal{R"({"initializer_range": 0})", "c.json: initializer_range "},
        Refusal{R"({"grad_checkpointing_period": -1})",
                "c.json: grad_checkpointing_period "}));

TEST(EtcConfigTest, HoldsEveryFieldToItsBounds) {
  ExpectHoldsFieldsToBounds<EtcConfig>("c.json", [](const json& fields) {
    return std::string(Parse(fields.dump()).status().message());
  });
}

// A run's configuration has the model as an object within it.
TEST(EtcConfigTest, NamesTheObjectThatAFieldIsIn) {
  std::vector<std::string> unknown;
  EXPECT_EQ(
      EtcConfigFromJson({{"local_radius", 0}}, "run.json: model", &unknown)
          .status()
          .message(),
      "run.json: model.local_radius should be at least 1, but is 0");
  EtcConfig config;
  config.sublayer = "pre";
  EXPECT_THAT(std::string(CheckEtcConfig(config, "run.json: model").message()),
              StartsWith("run.json: model.sublayer should be \"post_norm\""));
}

TEST(EtcConfigTest, AcceptsTheBordersOfWhatItRefuses) {
  for (const char* text :
       {R"({"num_attention_heads": 5, "att_size_per_head": 3})",
        R"({"residual_attention": "decay", "residual_decay": 0.44})",
        R"({"residual_attention": "sum", "residual_decay": 0.001})",
        R"({"residual_attention": "gate", "residual_gate_init": -1})",
        R"({"relative_pos_max_distance": 14})",
        R"({"relative_pos_max_distance": 0, "relative_vocab_size": 4})",
        R"({"relative_pos_max_distance": 0, "relative_vocab_size": null})",
        R"({"local_radius": 1, "hidden_dropout_prob": 0})",
        R"({"local_radius": 1048576, "num_hidden_layers": 4096})",
        R"({"share_kv_projections": true, "share_qkv_projections": true})"}) {
    EXPECT_TRUE(Parse(text).ok()) << text << Parse(text).status();
  }
}

TEST(CheckEtcConfigTest, RefusesNumbersThatAreNone) {
  EtcConfig config;
  config.hidden_dropout_prob = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(CheckEtcConfig(config, "c").message(),
              HasSubstr("hidden_dropout_prob"));
  config = {};
  config.initializer_range = std::numeric_limits<double>::infinity();
  EXPECT_THAT(CheckEtcConfig(config, "c").message(),
              HasSubstr("initializer_range"));
}

// Numbers that are none in float32, in which models compute.
TEST(EtcConfigTest, RefusesNumbersThatFloat32DoesNotHave) {
  for (const auto& [field, value, bounds] :
       {std::tuple("layer_norm_epsilon", 1e300, "in [1e-30, 1]"),
        std::tuple("layer_norm_epsilon", 1e-300, "in [1e-30, 1]"),
        std::tuple("initializer_range", 1e300, "at most 100"),
        std::tuple("residual_gate_init", 1e39, "at most 1e+06"),
        std::tuple("residual_gate_init", -1e39, "at least -1e+06")}) {
    EXPECT_THAT(
        std::string(Parse(json({{field, value}}).dump()).status().message()),
        StartsWith(absl::StrCat("c.json: ", field, " should be ", bounds,
                                ", but is ")));
  }
}

// Parameter counts of doc/model.md 1.2.
TEST(EtcConfigPresetTest, HasThePublishedSizes) {
  auto base = EtcConfigPreset("base");
  ASSERT_TRUE(base.ok()) << base.status();
  EXPECT_EQ(CheckEtcConfig(*base, "base"), absl::OkStatus());
  EXPECT_TRUE(base->use_hard_g2l_mask);
  EXPECT_EQ(ParameterCount(*base), 165'825'024);
  base->share_qkv_projections = true;
  EXPECT_EQ(ParameterCount(*base), 116'215'296);
  base->share_att_output_projection = true;
  EXPECT_EQ(ParameterCount(*base), 109'128'192);

  auto large = EtcConfigPreset("large");
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(CheckEtcConfig(*large, "large"), absl::OkStatus());
  EXPECT_EQ(large->local_radius, 169);
  EXPECT_EQ(large->relative_pos_max_distance, 24);
  EXPECT_EQ(large->head_size(), 64);
  EXPECT_NEAR(ParameterCount(*large), 558.57e6, 0.005e6);
  large->relative_vocab_size = 52;
  EXPECT_NEAR(ParameterCount(*large), 557.97e6, 0.005e6);
}

TEST(EtcConfigPresetTest, KnowsNoOtherName) {
  const absl::Status status = EtcConfigPreset("Base").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "should be \"base\" or \"large\" or \"bert_small\" or "
            "\"bert_base\" or \"bert_large\" or \"bert_xlarge\", but is "
            "\"Base\"; did you mean \"base\"?");
}

// Read as if the configuration had come with BERT's weights; model_size_test.cc
// checks the sizes.
TEST(EtcConfigPresetTest, BertIsWhatBertsConfigurationSays) {
  const auto bert = BertConfigFromJson({{"vocab_size", 30522},
                                        {"hidden_size", 768},
                                        {"num_hidden_layers", 12},
                                        {"num_attention_heads", 12},
                                        {"intermediate_size", 3072},
                                        {"max_position_embeddings", 512},
                                        {"type_vocab_size", 2}},
                                       "bert_config.json");
  ASSERT_TRUE(bert.ok()) << bert.status();
  const auto preset = EtcConfigPreset("bert_base");
  ASSERT_TRUE(preset.ok()) << preset.status();
  EXPECT_EQ(EtcConfigToJson(*preset), EtcConfigToJson(bert->config));
  const auto again = Parse(EtcConfigToJson(*preset));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->has_long_tokens);
}

}  // namespace
}  // namespace etc
