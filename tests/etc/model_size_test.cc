// Parameter counts by formula: against the numbers of the paper's models worked
// out in doc/model.md 1.2, and against the parameters that a real model
// registers, for every way of sharing and every optional table.
#include "etc/model_size.h"

#include <gtest/gtest.h>

#include <string>

#include "etc/model.h"

namespace etc {
namespace {

// doc/model.md 1.2: everything separate but the feed-forward blocks.
EtcConfig UnsharedBase() {
  EtcConfig config;
  config.vocab_size = 30522;
  config.share_qkv_projections = false;
  return config;
}

EtcConfig UnsharedLarge(int64_t relative_vocab_size) {
  EtcConfig config = UnsharedBase();
  config.vocab_size = 50265;
  config.hidden_size = 1024;
  config.num_hidden_layers = 24;
  config.num_attention_heads = 16;
  config.intermediate_size = 4096;
  config.relative_vocab_size = relative_vocab_size;
  return config;
}

TEST(ModelSizeTest, MatchesThePublishedSizes) {
  EXPECT_EQ(CountParameters(UnsharedBase()).total(), 165'825'024);
  // 557.97M and 558.57M in the specification.
  EXPECT_NEAR(CountParameters(UnsharedLarge(52)).total() / 1e6, 557.97, 0.005);
  EXPECT_NEAR(CountParameters(UnsharedLarge(64)).total() / 1e6, 558.57, 0.005);
}

TEST(ModelSizeTest, MatchesTheSizesOfSharedProjections) {
  EtcConfig config = UnsharedBase();
  config.share_qkv_projections = true;
  EXPECT_EQ(CountParameters(config).total(), 116'215'296);
  config.share_att_output_projection = true;
  EXPECT_EQ(CountParameters(config).total(), 109'128'192);
}

// doc/pretraining.md 6.2: encoder and pooler, which is a projection of H to H.
TEST(ModelSizeTest, BertPresetsHaveTheSizesOfBert) {
  struct Size {
    const char* preset;
    int64_t layers, hidden, heads, intermediate;
    int64_t with_pooler;
  };
  for (const Size& size :
       {Size{"bert_small", 4, 512, 8, 2048, 28'763'648},
        Size{"bert_base", 12, 768, 12, 3072, 109'482'240},
        Size{"bert_large", 24, 1024, 16, 4096, 335'141'888},
        Size{"bert_xlarge", 36, 1536, 24, 6144, 1'069'969'920}}) {
    SCOPED_TRACE(size.preset);
    const auto config = EtcConfigPreset(size.preset);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(CheckEtcConfig(*config, size.preset), absl::OkStatus());
    EXPECT_EQ(config->num_hidden_layers, size.layers);
    EXPECT_EQ(config->hidden_size, size.hidden);
    EXPECT_EQ(config->num_attention_heads, size.heads);
    EXPECT_EQ(config->intermediate_size, size.intermediate);
    EXPECT_EQ(config->head_size(), 64);
    EXPECT_EQ(CountParameters(*config).total() +
                  (size.hidden * size.hidden + size.hidden),
              size.with_pooler);
    // Residual attention adds nothing; LayerNorm before the blocks adds none,
    // but for that behind the last layer.
    EtcConfig other = *config;
    other.residual_attention = "mean";
    EXPECT_EQ(CountParameters(other).total(), CountParameters(*config).total());
    other.sublayer = "pre_norm";
    EXPECT_EQ(CountParameters(other).total(), CountParameters(*config).total());
    other.final_layer_norm = true;
    EXPECT_EQ(CountParameters(other).total(),
              CountParameters(*config).total() + 2 * size.hidden);
    // Two residual connections a layer: an omega in each, or an alpha and no
    // LayerNorm.
    other = *config;
    other.sublayer = "admin";
    EXPECT_EQ(CountParameters(other).total() - CountParameters(*config).total(),
              2 * size.layers * size.hidden);
    other.sublayer = "rezero";
    EXPECT_EQ(CountParameters(*config).total() - CountParameters(other).total(),
              2 * size.layers * (2 * size.hidden - 1));
  }
}

// One layer of base: 11 864 064 parameters (doc/model.md 1.2).
TEST(ModelSizeTest, CountsEachLayerAlike) {
  EtcConfig config = UnsharedBase();
  const int64_t twelve = CountParameters(config).total();
  config.num_hidden_layers = 11;
  EXPECT_EQ(twelve - CountParameters(config).total(), 11'864'064);
}

TEST(ModelSizeTest, PresetsHaveThePublishedSizes) {
  EXPECT_EQ(CountParameters(*EtcConfigPreset("base")).total(), 165'825'024);
  EXPECT_NEAR(CountParameters(*EtcConfigPreset("large")).total() / 1e6, 558,
              1.5);
}

int64_t RegisteredParameters(const EtcConfig& config) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : EtcModel(config)->parameters()) {
    count += parameter.numel();
  }
  return count;
}

// Sizes are different primes wherever they may be, so that no two terms can be
// confused.
TEST(ModelSizeTest, MatchesARealModel) {
  for (int flags = 0; flags < 1024; ++flags) {
    EtcConfig config;
    config.vocab_size = 101;
    config.segment_vocab_size = 7;
    config.hidden_size = 12;
    config.num_hidden_layers = 2;
    config.num_attention_heads = 3;
    config.local_radius = 2;
    config.intermediate_size = 23;
    config.relative_pos_max_distance = 2;
    config.relative_vocab_size = 11;
    config.share_feed_forward_params = (flags & 1) != 0;
    config.share_kv_projections = (flags & 2) != 0;
    config.share_qkv_projections = (flags & 4) != 0;
    config.share_att_output_projection = (flags & 8) != 0;
    if ((flags & 16) != 0) {
      config.embedding_size = 5;
      config.att_size_per_head = 6;
    }
    if ((flags & 32) != 0) {
      config.max_absolute_position_embeddings = 13;
    }
    if ((flags & 64) != 0) {
      config.relative_pos_max_distance = 0;
      config.relative_vocab_size = std::nullopt;
    }
    config.sublayer = SublayerName(static_cast<Sublayer>((flags >> 7) & 3));
    config.final_layer_norm = config.sublayer == "pre_norm";
    config.has_long_tokens = (flags & 512) == 0;
    if (!CheckEtcConfig(config, "").ok()) {
      continue;  // without long tokens, but not all shared
    }
    EXPECT_EQ(CountParameters(config).total(), RegisteredParameters(config))
        << "flags " << flags;
  }
}

// Four gates a head in every layer but the first, BERT one.
TEST(ModelSizeTest, CountsGates) {
  EtcConfig config = UnsharedBase();
  config.residual_attention = "gate";
  EXPECT_EQ(CountParameters(config).gates, 11 * 4 * 12);
  EXPECT_EQ(CountParameters(config).total(), 165'825'024 + 11 * 4 * 12);
  EtcConfig bert = *EtcConfigPreset("bert_base");
  const int64_t without = CountParameters(bert).total();
  bert.residual_attention = "gate";
  EXPECT_EQ(CountParameters(bert).total(), without + 11 * 12);

  EtcConfig small = UnsharedBase();
  small.vocab_size = 101;
  small.hidden_size = 12;
  small.num_attention_heads = 3;
  small.intermediate_size = 23;
  small.residual_attention = "gate";
  for (const int64_t layers : {1, 2, 3}) {
    small.num_hidden_layers = layers;
    EXPECT_EQ(CountParameters(small).total(), RegisteredParameters(small));
  }
}

}  // namespace
}  // namespace etc
