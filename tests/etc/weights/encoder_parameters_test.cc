// The names and shapes of all parameters of a whole ETC-base as
// doc/formats.md 3.1 and doc/model.md 7.2 list them, of BERT-base as
// doc/model.md 3.2 and 3.3 do, and the numbers of tensors and of parameters
// that the specification gives for them.
#include "etc/weights/encoder_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "etc/model_size.h"
#include "etc/weights/source_config.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using Shape = std::vector<int64_t>;

std::map<std::string, Shape> InStyle(const EtcConfig& config, NameStyle style) {
  std::map<std::string, Shape> shapes;
  for (const EncoderParameter& parameter : EncoderParameters(config)) {
    const std::string& name = NameInStyle(parameter, style);
    if (!name.empty()) {
      shapes[name] = ShapeInStyle(parameter, style);
    }
  }
  return shapes;
}

int64_t Numbers(const std::vector<EncoderParameter>& parameters) {
  int64_t sum = 0;
  for (const EncoderParameter& parameter : parameters) {
    int64_t product = 1;
    for (const int64_t size : parameter.shape) {
      product *= size;
    }
    sum += product;
  }
  return sum;
}

// The published BERT-base (doc/model.md 1.2, doc/formats.md 3.2).
EtcConfig BertBase() {
  const auto bert = BertConfigFromJson({{"vocab_size", 30522},
                                        {"hidden_size", 768},
                                        {"num_hidden_layers", 12},
                                        {"num_attention_heads", 12},
                                        {"intermediate_size", 3072},
                                        {"max_position_embeddings", 512},
                                        {"type_vocab_size", 2}},
                                       "bert_config.json");
  EXPECT_TRUE(bert.ok()) << bert.status();
  return bert->config;
}

// 38 variables a layer and 6 more (doc/model.md 7.2).
TEST(EncoderParametersTest, BaseHasTheOfficialNumberOfVariables) {
  const auto base = InStyle(*EtcConfigPreset("base"), NameStyle::kOfficialEtc);
  EXPECT_EQ(base.size(), 462u);
}

TEST(EncoderParametersTest, BaseHasTheOfficialNamesAndShapes) {
  auto base = InStyle(*EtcConfigPreset("base"), NameStyle::kOfficialEtc);
  std::map<std::string, Shape> expected = {
      {"token_emb_lookup/embedding_table", {30522, 768}},
      {"segment_emb_lookup/embedding_table", {16, 768}},
      {"long_emb_layer_norm/gamma", {768}},
      {"long_emb_layer_norm/beta", {768}},
      {"global_emb_layer_norm/gamma", {768}},
      {"global_emb_layer_norm/beta", {768}}};
  for (int i = 0; i < 12; ++i) {
    const std::string layers = "global_local_transformer_layers/";
    const std::string fused = absl::StrCat(layers, "fused_att_layer_", i, "/");
    const std::string att = fused + "fused_global_local_att/";
    for (const char* projection :
         {"long_query", "l2l_key", "l2g_key", "l2l_value", "l2g_value",
          "global_query", "g2g_key", "g2l_key", "g2g_value", "g2l_value"}) {
      expected[absl::StrCat(att, projection, "_projection/linear/kernel")] = {
          768, 768};
      expected[absl::StrCat(att, projection, "_projection/linear/bias")] = {
          768};
    }
    for (const char* output : {"long", "global"}) {
      expected[absl::StrCat(att, output, "_output_projection/kernel")] = {768,
                                                                          768};
      expected[absl::StrCat(att, output, "_output_projection/bias")] = {768};
    }
    for (const char* relative : {"long_qkv_attention/qkv_relative_attention/",
                                 "global_qkv_attention/"}) {
      expected[absl::StrCat(att, relative, "relative_emb_table")] = {32, 12,
                                                                     64};
      expected[absl::StrCat(att, relative, "relative_bias_table")] = {32, 12};
    }
    const std::string forward =
        absl::StrCat(layers, "feed_forward_layer_", i, "/");
    for (const std::string& norm :
         {fused + "layer_norm_0", fused + "layer_norm_1",
          forward + "layer_norm"}) {
      expected[norm + "/gamma"] = {768};
      expected[norm + "/beta"] = {768};
    }
    expected[forward + "dense_layers/layer_0/kernel"] = {768, 3072};
    expected[forward + "dense_layers/layer_0/bias"] = {3072};
    expected[forward + "dense_layers/layer_1/kernel"] = {3072, 768};
    expected[forward + "dense_layers/layer_1/bias"] = {768};
  }
  for (const auto& [name, shape] : expected) {
    ASSERT_TRUE(base.contains(name)) << name;
    EXPECT_EQ(base[name], shape) << name;
    base.erase(name);
  }
  EXPECT_TRUE(base.empty()) << base.begin()->first;
}

TEST(EncoderParametersTest, NamesFollowTheSharingFlags) {
  EtcConfig config = *EtcConfigPreset("base");
  config.num_hidden_layers = 1;
  const auto count = [&](const std::string& part) {
    int64_t found = 0;
    for (const auto& [name, shape] : InStyle(config, NameStyle::kOfficialEtc)) {
      found += absl::StrContains(name, part) ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(count("_projection/linear/kernel"), 10);
  config.share_kv_projections = true;
  EXPECT_EQ(count("_projection/linear/kernel"), 6);
  EXPECT_EQ(count("g2g_key_projection"), 2);
  EXPECT_EQ(count("g2l_key_projection"), 0);
  config.share_qkv_projections = true;
  EXPECT_EQ(count("_projection/linear/kernel"), 3);
  config.share_att_output_projection = true;
  EXPECT_EQ(count("_output_projection/kernel"), 1);
  config.share_feed_forward_params = false;
  EXPECT_EQ(count("/feed_forward_layer_0"), 0);
  EXPECT_EQ(count("/long_feed_forward_layer_0"), 6);
  EXPECT_EQ(count("/global_feed_forward_layer_0"), 6);
  config.embedding_size = 128;
  EXPECT_EQ(count("token_emb_lookup/projection/"), 2);
  config.max_absolute_position_embeddings = 64;
  EXPECT_EQ(count("position_emb_lookup_"), 2);
}

// Every parameter once, under every way of sharing.
TEST(EncoderParametersTest, CountsWhatTheFormulaCounts) {
  for (int flags = 0; flags < 256; ++flags) {
    EtcConfig config = *EtcConfigPreset("base");
    config.num_hidden_layers = 2;
    config.share_feed_forward_params = (flags & 1) != 0;
    config.share_kv_projections = (flags & 2) != 0;
    config.share_qkv_projections = (flags & 4) != 0;
    config.share_att_output_projection = (flags & 8) != 0;
    config.embedding_size = (flags & 16) != 0 ? 128 : 768;
    config.max_absolute_position_embeddings = (flags & 32) != 0 ? 64 : 0;
    config.sublayer = SublayerName(static_cast<Sublayer>(flags >> 6));
    config.final_layer_norm = config.sublayer == "pre_norm";
    config.has_long_tokens = (flags & 13) != 13;  // unless all is shared
    const auto parameters = EncoderParameters(config);
    EXPECT_EQ(Numbers(parameters), CountParameters(config).total())
        << "flags " << flags;
    std::set<std::string> names;
    for (const EncoderParameter& parameter : parameters) {
      EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
      if (parameter.name.find("final_norm") == std::string::npos &&
          !absl::EndsWith(parameter.name, "alpha") &&
          !absl::EndsWith(parameter.name, "omega")) {
        EXPECT_TRUE(names.insert(parameter.official_etc).second)
            << parameter.official_etc;
      } else {
        EXPECT_EQ(parameter.official_etc, "");  // it has none
      }
    }
  }
  EXPECT_EQ(Numbers(EncoderParameters(*EtcConfigPreset("base"))), 165'825'024);
}

TEST(EncoderParametersTest, BertHasGooglesNamesAndShapes) {
  auto bert = InStyle(BertBase(), NameStyle::kGoogleBert);
  // 199 with the pooler's two (doc/formats.md 3.3).
  EXPECT_EQ(bert.size(), 197u);
  const std::map<std::string, Shape> expected = {
      {"embeddings/word_embeddings", {30522, 768}},
      {"embeddings/position_embeddings", {512, 768}},
      {"embeddings/token_type_embeddings", {2, 768}},
      {"embeddings/LayerNorm/gamma", {768}},
      {"encoder/layer_11/attention/self/query/kernel", {768, 768}},
      {"encoder/layer_11/attention/self/value/bias", {768}},
      {"encoder/layer_11/attention/output/dense/kernel", {768, 768}},
      {"encoder/layer_11/attention/output/LayerNorm/beta", {768}},
      {"encoder/layer_11/intermediate/dense/kernel", {768, 3072}},
      {"encoder/layer_11/output/dense/kernel", {3072, 768}},
      {"encoder/layer_11/output/LayerNorm/gamma", {768}}};
  for (const auto& [name, shape] : expected) {
    ASSERT_TRUE(bert.contains(name)) << name;
    EXPECT_EQ(bert[name], shape) << name;
  }
}

TEST(EncoderParametersTest, BertHasHuggingFacesNamesAndShapes) {
  auto bert = InStyle(BertBase(), NameStyle::kHuggingFace);
  EXPECT_EQ(bert.size(), 197u);
  int64_t numbers = 768 * 768 + 768;  // the pooler
  for (const auto& [name, shape] : bert) {
    int64_t product = 1;
    for (const int64_t size : shape) {
      product *= size;
    }
    numbers += product;
  }
  EXPECT_EQ(numbers, 109'482'240);
  const std::map<std::string, Shape> expected = {
      {"embeddings.word_embeddings.weight", {30522, 768}},
      {"embeddings.LayerNorm.bias", {768}},
      {"encoder.layer.11.attention.self.key.weight", {768, 768}},
      {"encoder.layer.11.attention.output.LayerNorm.weight", {768}},
      {"encoder.layer.11.intermediate.dense.weight", {3072, 768}},
      {"encoder.layer.11.output.dense.weight", {768, 3072}},
      {"encoder.layer.11.output.dense.bias", {768}}};
  for (const auto& [name, shape] : expected) {
    ASSERT_TRUE(bert.contains(name)) << name;
    EXPECT_EQ(bert[name], shape) << name;
  }
}

TEST(EncoderParametersTest, OnlyOurFilesHaveGates) {
  EtcConfig etc = *EtcConfigPreset("base");
  etc.num_hidden_layers = 3;
  etc.residual_attention = "gate";
  EtcConfig bert = *EtcConfigPreset("bert_small");
  bert.num_hidden_layers = 3;
  bert.residual_attention = "gate";
  for (const EtcConfig& config : {etc, bert}) {
    std::set<std::string> gates;
    for (const EncoderParameter& parameter : EncoderParameters(config)) {
      EXPECT_EQ(parameter.role == ParameterRole::kGate, IsGate(parameter.name));
      if (parameter.role == ParameterRole::kGate) {
        gates.insert(parameter.name);
        EXPECT_EQ(parameter.shape, Shape({config.num_attention_heads}));
        EXPECT_EQ(parameter.official_etc, "");
        EXPECT_EQ(parameter.google_bert, "");
        EXPECT_EQ(parameter.hugging_face, "");
      }
    }
    std::set<std::string> expected;
    for (const int layer : {1, 2}) {
      for (const char* block : {"g2g", "g2l", "l2g", "l2l"}) {
        if (config.has_long_tokens || std::string(block) == "g2g") {
          expected.insert(
              absl::StrCat("layers.", layer, ".attention.", block, "_gate"));
        }
      }
    }
    EXPECT_EQ(gates, expected);
    EXPECT_EQ(Numbers(EncoderParameters(config)),
              CountParameters(config).total());
    EtcConfig off = config;
    off.residual_attention = "off";
    EXPECT_THAT(GateNames(off), testing::UnorderedElementsAreArray(expected));
  }
}

TEST(EncoderParametersTest, KnowsGatesByTheirNames) {
  EXPECT_TRUE(IsGate("encoder.layers.1.attention.l2g_gate"));
  EXPECT_TRUE(IsGate("head.attention.gate"));
  EXPECT_TRUE(IsGate("gate"));
  EXPECT_FALSE(IsGate("head.gate.weight"));
  EXPECT_FALSE(IsGate("head.aggregate"));
  EXPECT_FALSE(IsGate("encoder.layers.1.attention.long_query.weight"));
}

}  // namespace
}  // namespace etc
