// The source of each parameter, without tensors: the tensor of a file that
// fills it when projections are shared or BERT is lifted (doc/formats.md 3.4,
// doc/model.md 11), tensors that are dropped and parameters that stay new, and
// the message for everything that does not fit. Values are tested with
// convert_test.
#include "etc/weights/weight_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "etc/weights/source_config.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

EtcConfig SmallConfig() {
  EtcConfig config;
  config.vocab_size = 11;
  config.segment_vocab_size = 3;
  config.hidden_size = 4;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.local_radius = 2;
  config.relative_pos_max_distance = 2;
  config.relative_vocab_size = 8;
  config.intermediate_size = 6;
  config.share_qkv_projections = false;
  return config;
}

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

// A file with all tensors of the configuration and `others`.
SourceWeights Source(const EtcConfig& config, NameStyle style,
                     const std::string& prefix,
                     const std::map<std::string, TensorInfo>& others = {}) {
  SourceWeights source{.path = "file", .tensors = others, .config = config};
  for (const EncoderParameter& parameter : EncoderParameters(config)) {
    source.tensors[prefix + NameInStyle(parameter, style)] = {
        "F32", ShapeInStyle(parameter, style)};
  }
  std::vector<std::string> names;
  for (const auto& [name, info] : source.tensors) {
    names.push_back(name);
  }
  auto recognized = RecognizeNames(names, "file");
  EXPECT_TRUE(recognized.ok()) << recognized.status();
  source.names = *std::move(recognized);
  EXPECT_EQ(source.names.style, style);
  EXPECT_EQ(source.names.prefix, prefix);
  return source;
}

const WeightStep& StepOf(const WeightPlan& plan, const std::string& name) {
  const auto step =
      std::find_if(plan.steps.begin(), plan.steps.end(),
                   [&](const WeightStep& s) { return s.target.name == name; });
  EXPECT_NE(step, plan.steps.end()) << name;
  return step == plan.steps.end() ? plan.steps.front() : *step;
}

WeightPlan PlanOrDie(const SourceWeights& source, const EtcConfig& target,
                     const WeightPlanOptions& options = {}) {
  auto plan = PlanWeights(source, target, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : WeightPlan{};
}

std::string Refusal(const SourceWeights& source, const EtcConfig& target) {
  return PlanWeights(source, target).status().ToString();
}

// --- The same model ---------------------------------------------------------

TEST(WeightPlanTest, TakesEveryParameterOfTheSameModel) {
  for (int flags = 0; flags < 32; ++flags) {
    EtcConfig config = SmallConfig();
    config.share_qkv_projections = (flags & 1) != 0;
    config.share_kv_projections = (flags & 2) != 0;
    config.share_att_output_projection = (flags & 4) != 0;
    config.share_feed_forward_params = (flags & 8) != 0;
    if ((flags & 16) != 0) {
      config.embedding_size = 3;
      config.max_absolute_position_embeddings = 7;
    }
    for (const NameStyle style :
         {NameStyle::kRealEtc, NameStyle::kOfficialEtc}) {
      const WeightPlan plan = PlanOrDie(Source(config, style, ""), config);
      EXPECT_EQ(plan.NumFresh(), 0);
      EXPECT_THAT(plan.dropped, IsEmpty());
      EXPECT_THAT(plan.notices, IsEmpty());
      for (const WeightStep& step : plan.steps) {
        EXPECT_EQ(step.source, NameInStyle(step.target, style));
        EXPECT_EQ(step.transpose,
                  style == NameStyle::kOfficialEtc && step.target.is_kernel);
        EXPECT_THAT(step.rows, IsEmpty());
      }
    }
  }
}

TEST(WeightPlanTest, FindsPositionTablesOutsideOfTheScope) {
  EtcConfig config = SmallConfig();
  config.max_absolute_position_embeddings = 7;
  SourceWeights source =
      Source(config, NameStyle::kOfficialEtc, "etc_document_bert/");
  std::vector<std::string> names;
  const std::string scope = "etc_document_bert/";
  for (const char* table : {"position_emb_lookup_long/embedding_table",
                            "position_emb_lookup_global/embedding_table"}) {
    source.tensors.erase(scope + table);
    source.tensors[table] = {"F32", {7, 4}};
  }
  for (const auto& [name, info] : source.tensors) {
    names.push_back(name);
  }
  source.names = *RecognizeNames(names, "file");
  const WeightPlan plan = PlanOrDie(source, config);
  EXPECT_EQ(StepOf(plan, "embedding.long_position.weight").source,
            "position_emb_lookup_long/embedding_table");
  EXPECT_EQ(plan.NumFresh(), 0);
}

TEST(WeightPlanTest, DropsHeadsByNameAndCountsBookkeeping) {
  const WeightPlan plan = PlanOrDie(
      Source(SmallConfig(), NameStyle::kOfficialEtc, "etc_document_bert/",
             {{"cls/predictions/output_bias", {"F32", {11}}},
              {"global_step", {"I64", {}}},
              {"cls/predictions/output_bias/adam_m", {"F32", {11}}}}),
      SmallConfig());
  ASSERT_THAT(plan.dropped, SizeIs(1));
  EXPECT_EQ(plan.dropped[0].name, "cls/predictions/output_bias");
  EXPECT_EQ(plan.bookkeeping, 2);
}

TEST(WeightPlanTest, SaysOfWhichDtypeATensorWas) {
  SourceWeights source = Source(SmallConfig(), NameStyle::kRealEtc, "");
  source.tensors["embedding.token.weight"].dtype = "BF16";
  const WeightPlan plan = PlanOrDie(source, SmallConfig());
  EXPECT_EQ(StepOf(plan, "embedding.token.weight").how, "from BF16");
  EXPECT_EQ(StepOf(plan, "embedding.segment.weight").how, "as it is");
}

// --- Sharing ----------------------------------------------------------------

TEST(WeightPlanTest, CopiesSharedProjectionsToThoseApart) {
  EtcConfig shared = SmallConfig();
  shared.share_qkv_projections = true;
  shared.share_att_output_projection = true;
  EtcConfig apart = SmallConfig();
  apart.share_feed_forward_params = false;
  const WeightPlan plan =
      PlanOrDie(Source(shared, NameStyle::kRealEtc, ""), apart);
  EXPECT_EQ(plan.NumFresh(), 0);
  const std::string layer = "layers.1.";
  const std::map<std::string, std::string> expected = {
      {"attention.l2g_key.weight", "attention.l2l_key.weight"},
      {"attention.g2g_key.bias", "attention.l2l_key.bias"},
      {"attention.g2l_key.weight", "attention.l2l_key.weight"},
      {"attention.g2l_value.weight", "attention.l2l_value.weight"},
      {"attention.global_query.weight", "attention.long_query.weight"},
      {"attention.global_output.bias", "attention.long_output.bias"},
      {"long_feed_forward.norm.weight", "feed_forward.norm.weight"},
      {"global_feed_forward.output.weight", "feed_forward.output.weight"}};
  for (const auto& [target, source] : expected) {
    EXPECT_EQ(StepOf(plan, layer + target).source, layer + source);
    EXPECT_EQ(StepOf(plan, layer + target).how,
              absl::StrCat("a copy of ", layer, source));
  }
}

// Shared keys and values: what the global tokens use is apart.
TEST(WeightPlanTest, CopiesTheKeysOfTheSameQueries) {
  EtcConfig shared = SmallConfig();
  shared.share_kv_projections = true;
  const WeightPlan plan =
      PlanOrDie(Source(shared, NameStyle::kRealEtc, ""), SmallConfig());
  EXPECT_EQ(StepOf(plan, "layers.0.attention.g2l_key.weight").source,
            "layers.0.attention.g2g_key.weight");
  EXPECT_EQ(StepOf(plan, "layers.0.attention.l2g_key.weight").source,
            "layers.0.attention.l2l_key.weight");
}

TEST(WeightPlanTest, RefusesToMergeWhatIsApart) {
  EtcConfig shared = SmallConfig();
  shared.share_att_output_projection = true;
  EXPECT_THAT(
      Refusal(Source(SmallConfig(), NameStyle::kRealEtc, ""), shared),
      AllOf(HasSubstr("file: "), HasSubstr("attention.global_output.bias"),
            HasSubstr("has no place in the model")));
}

// --- BERT -------------------------------------------------------------------

TEST(WeightPlanTest, TakesBertAsItIs) {
  for (const NameStyle style :
       {NameStyle::kGoogleBert, NameStyle::kHuggingFace}) {
    const WeightPlan plan = PlanOrDie(
        Source(SmallBert(), style, "", {{"x", {"F32", {1}}}}), SmallBert());
    EXPECT_EQ(plan.NumFresh(), 0);
    ASSERT_THAT(plan.dropped, SizeIs(1));
    for (const WeightStep& step : plan.steps) {
      EXPECT_EQ(step.transpose,
                style == NameStyle::kGoogleBert && step.target.is_kernel);
      EXPECT_THAT(step.rows, IsEmpty());
    }
    // Without long tokens no tensor of BERT's is there twice.
    std::set<std::string> sources;
    for (const WeightStep& step : plan.steps) {
      EXPECT_TRUE(sources.insert(step.source).second) << step.source;
    }
  }
}

// The table of doc/formats.md 3.4.
TEST(WeightPlanTest, LiftsBert) {
  const WeightPlan plan =
      PlanOrDie(Source(SmallBert(), NameStyle::kHuggingFace, "bert.",
                       {{"bert.pooler.dense.bias", {"F32", {4}}}}),
                SmallConfig());
  const std::string from = "bert.encoder.layer.1.";
  const std::map<std::string, std::string> expected = {
      {"attention.long_query.weight", "attention.self.query.weight"},
      {"attention.global_query.weight", "attention.self.query.weight"},
      {"attention.l2l_key.weight", "attention.self.key.weight"},
      {"attention.l2g_key.weight", "attention.self.key.weight"},
      {"attention.g2g_key.weight", "attention.self.key.weight"},
      {"attention.g2l_key.bias", "attention.self.key.bias"},
      {"attention.l2l_value.weight", "attention.self.value.weight"},
      {"attention.l2g_value.weight", "attention.self.value.weight"},
      {"attention.g2g_value.weight", "attention.self.value.weight"},
      {"attention.g2l_value.weight", "attention.self.value.weight"},
      {"attention.long_output.weight", "attention.output.dense.weight"},
      {"attention.global_output.bias", "attention.output.dense.bias"},
      {"long_attention_norm.weight", "attention.output.LayerNorm.weight"},
      {"global_attention_norm.bias", "attention.output.LayerNorm.bias"},
      {"feed_forward.intermediate.weight", "intermediate.dense.weight"},
      {"feed_forward.output.bias", "output.dense.bias"},
      {"feed_forward.norm.weight", "output.LayerNorm.weight"}};
  for (const auto& [target, source] : expected) {
    EXPECT_EQ(StepOf(plan, "layers.1." + target).source, from + source);
  }
  EXPECT_EQ(StepOf(plan, "embedding.token.weight").source,
            "bert.embeddings.word_embeddings.weight");
  EXPECT_THAT(StepOf(plan, "embedding.segment.weight").rows,
              ElementsAre(0, 0, 0));
  // Two tables of each of two streams in two layers.
  EXPECT_EQ(plan.NumFresh(), 8);
  EXPECT_EQ(StepOf(plan, "layers.0.attention.long_relative.embedding").how,
            "freshly initialised");
  ASSERT_THAT(plan.dropped, SizeIs(2));
  EXPECT_EQ(plan.dropped[0].name, "bert.embeddings.position_embeddings.weight");
  EXPECT_EQ(plan.dropped[1].name, "bert.pooler.dense.bias");
}

// An imported BERT, as we keep it, is as good as the original, also one with
// parameters for long tokens.
TEST(WeightPlanTest, LiftsBertFromOurOwnFile) {
  for (const bool has_long_tokens : {false, true}) {
    EtcConfig bert = SmallBert();
    bert.has_long_tokens = has_long_tokens;
    const WeightPlan plan =
        PlanOrDie(Source(bert, NameStyle::kRealEtc, "encoder."), SmallConfig());
    EXPECT_EQ(plan.NumFresh(), 8);
    EXPECT_THAT(plan.dropped, SizeIs(has_long_tokens ? 2 : 1));
    EXPECT_EQ(StepOf(plan, "layers.0.attention.g2l_value.weight").source,
              "encoder.layers.0.attention.l2l_value.weight");
    EXPECT_EQ(StepOf(plan, "embedding.long_norm.weight").source,
              has_long_tokens ? "encoder.embedding.long_norm.weight"
                              : "encoder.embedding.global_norm.weight");
  }
}

TEST(WeightPlanTest, TakesSegmentsByIndexIfAskedTo) {
  const WeightPlan plan =
      PlanOrDie(Source(SmallBert(), NameStyle::kGoogleBert, ""), SmallConfig(),
                {.segments = WeightPlanOptions::Segments::kByIndex});
  EXPECT_THAT(StepOf(plan, "embedding.segment.weight").rows,
              ElementsAre(0, 1, -1));
}

TEST(WeightPlanTest, SkipsTheRowsOfRobertasPadding) {
  SourceWeights source =
      Source(SmallBert(), NameStyle::kHuggingFace, "roberta.");
  source.tensors["roberta.embeddings.position_embeddings.weight"].shape[0] = 11;
  source.first_position = 2;
  const WeightPlan plan = PlanOrDie(source, SmallBert());
  EXPECT_THAT(StepOf(plan, "embedding.global_position.weight").rows,
              ElementsAre(2, 3, 4, 5, 6, 7, 8, 9, 10));
}

TEST(WeightPlanTest, KeepsPositionsOfATargetThatHasThem) {
  EtcConfig target = SmallConfig();
  target.max_absolute_position_embeddings = 5;
  const WeightPlan plan =
      PlanOrDie(Source(SmallBert(), NameStyle::kGoogleBert, ""), target);
  EXPECT_THAT(StepOf(plan, "embedding.long_position.weight").rows,
              ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(plan.dropped, IsEmpty());
  target.max_absolute_position_embeddings = 10;
  EXPECT_THAT(Refusal(Source(SmallBert(), NameStyle::kGoogleBert, ""), target),
              HasSubstr("max_absolute_position_embeddings should be at least "
                        "10, but is 9"));
}

TEST(WeightPlanTest, TakesTokenRowsByPiece) {
  EtcConfig target = SmallConfig();
  target.vocab_size = 3;
  const WeightPlan plan =
      PlanOrDie(Source(SmallBert(), NameStyle::kHuggingFace, ""), target,
                {.token_rows = {10, -1, 4}});
  const WeightStep& step = StepOf(plan, "embedding.token.weight");
  EXPECT_THAT(step.rows, ElementsAre(10, -1, 4));
  EXPECT_THAT(step.how, HasSubstr("2 of 3 rows found"));
}

TEST(WeightPlanTest, SaysWhatIsComputedDifferently) {
  EtcConfig bert = SmallBert();
  bert.hidden_act = "gelu_erf";
  bert.layer_norm_epsilon = 1e-5;
  const WeightPlan plan =
      PlanOrDie(Source(bert, NameStyle::kHuggingFace, ""), SmallConfig());
  EXPECT_THAT(plan.notices,
              ElementsAre("hidden_act was \"gelu_erf\" and is \"gelu\"",
                          "layer_norm_epsilon was 1e-05 and is 1e-12"));
}

// --- Other sublayers --------------------------------------------------------

EtcConfig WithSublayer(EtcConfig config, const std::string& sublayer) {
  config.sublayer = sublayer;
  return config;
}

TEST(WeightPlanTest, TakesAlphasAndOmegasOfTheSameModel) {
  for (const char* sublayer : {"rezero", "admin"}) {
    for (const bool shares : {false, true}) {
      EtcConfig config = WithSublayer(SmallConfig(), sublayer);
      config.share_feed_forward_params = shares;
      const WeightPlan plan =
          PlanOrDie(Source(config, NameStyle::kRealEtc, ""), config);
      EXPECT_EQ(plan.NumFresh(), 0);
      EXPECT_THAT(plan.dropped, IsEmpty());
      EXPECT_THAT(plan.notices, IsEmpty());
    }
  }
}

// Three residual connections a layer; from BERT also relative positions are
// new, two tables of two parameters.
TEST(WeightPlanTest, LeavesOmegasOfPostNormAtOne) {
  const EtcConfig target = WithSublayer(SmallConfig(), "admin");
  const WeightPlan plan =
      PlanOrDie(Source(SmallConfig(), NameStyle::kOfficialEtc, ""), target);
  EXPECT_EQ(plan.NumFresh(), 2 * 3);
  EXPECT_EQ(StepOf(plan, "layers.1.feed_forward.omega").source, "");
  EXPECT_NE(StepOf(plan, "layers.1.feed_forward.norm.weight").source, "");
  EXPECT_THAT(plan.dropped, IsEmpty());
  EXPECT_THAT(plan.notices,
              ElementsAre("sublayer was \"post_norm\" and is \"admin\": omegas "
                          "start at 1, with which the model is the same"));
  const WeightPlan lifted =
      PlanOrDie(Source(SmallBert(), NameStyle::kHuggingFace, ""), target);
  EXPECT_EQ(lifted.NumFresh(), 2 * (3 + 4));
}

TEST(WeightPlanTest, LeavesOutLayerNormsForReZero) {
  const EtcConfig target = WithSublayer(SmallConfig(), "rezero");
  for (const char* before : {"post_norm", "pre_norm", "admin"}) {
    const EtcConfig config = WithSublayer(SmallConfig(), before);
    const WeightPlan plan =
        PlanOrDie(Source(config, NameStyle::kRealEtc, ""), target);
    EXPECT_EQ(plan.NumFresh(), 2 * 3);
    EXPECT_EQ(StepOf(plan, "layers.0.long_attention_alpha").source, "");
    // LayerNorms of the embeddings stay.
    EXPECT_EQ(StepOf(plan, "embedding.long_norm.weight").source,
              "embedding.long_norm.weight");
    EXPECT_THAT(plan.dropped,
                SizeIs(2 * 3 * (config.sublayer == "admin" ? 3 : 2)));
    for (const DroppedTensor& tensor : plan.dropped) {
      EXPECT_EQ(tensor.why, "for which sublayer \"rezero\" has no place");
    }
    EXPECT_THAT(plan.notices,
                ElementsAre(HasSubstr("alphas start at 0, and LayerNorms")));
  }
}

TEST(WeightPlanTest, RefusesWeightsOfSublayersThatDiffer) {
  for (const auto& [before, now] :
       {std::pair("rezero", "post_norm"), std::pair("rezero", "admin"),
        std::pair("admin", "post_norm"), std::pair("pre_norm", "admin"),
        std::pair("pre_norm", "post_norm")}) {
    const SourceWeights source =
        Source(WithSublayer(SmallConfig(), before), NameStyle::kRealEtc, "");
    EXPECT_THAT(Refusal(source, WithSublayer(SmallConfig(), now)),
                HasSubstr(absl::StrCat("file: sublayer should be ", now,
                                       ", but is ", before)));
  }
}

// --- Refusals ---------------------------------------------------------------

TEST(WeightPlanTest, NamesTheSizesThatDiffer) {
  struct Case {
    const char* field;
    void (*change)(EtcConfig*);
  };
  const Case cases[] = {
      {"vocab_size should be 12, but is 11",
       [](EtcConfig* c) { c->vocab_size = 12; }},
      {"hidden_size", [](EtcConfig* c) { c->hidden_size = 8; }},
      {"num_hidden_layers", [](EtcConfig* c) { c->num_hidden_layers = 1; }},
      {"num_attention_heads", [](EtcConfig* c) { c->num_attention_heads = 4; }},
      {"att_size_per_head", [](EtcConfig* c) { c->att_size_per_head = 3; }},
      {"intermediate_size", [](EtcConfig* c) { c->intermediate_size = 7; }},
      {"embedding_size", [](EtcConfig* c) { c->embedding_size = 3; }},
      {"segment_vocab_size", [](EtcConfig* c) { c->segment_vocab_size = 4; }},
      {"sublayer should be pre_norm, but is post_norm",
       [](EtcConfig* c) { c->sublayer = "pre_norm"; }},
      {"final_layer_norm",
       [](EtcConfig* c) {
         c->sublayer = "pre_norm";
         c->final_layer_norm = true;
       }},
      {"relative_vocab_size", [](EtcConfig* c) { c->relative_vocab_size = 9; }},
      {"relative_pos_max_distance",
       [](EtcConfig* c) { c->relative_pos_max_distance = 1; }},
  };
  const SourceWeights source = Source(SmallConfig(), NameStyle::kRealEtc, "");
  for (const Case& one : cases) {
    EtcConfig target = SmallConfig();
    one.change(&target);
    EXPECT_THAT(Refusal(source, target),
                AllOf(HasSubstr("file: "), HasSubstr(one.field)));
  }
}

TEST(WeightPlanTest, RefusesToLoseRelativePositions) {
  EtcConfig target = SmallConfig();
  target.relative_pos_max_distance = 0;
  target.relative_vocab_size = std::nullopt;
  EXPECT_THAT(Refusal(Source(SmallConfig(), NameStyle::kRealEtc, ""), target),
              HasSubstr("global_relative.bias"));
}

TEST(WeightPlanTest, NamesTheTensorsThatAreNotThere) {
  SourceWeights source =
      Source(SmallConfig(), NameStyle::kOfficialEtc, "etc_document_bert/");
  const std::string lost =
      "global_local_transformer_layers/feed_forward_layer_1/layer_norm/gamma";
  source.names.stored_as.erase(lost);
  EXPECT_THAT(Refusal(source, SmallConfig()),
              AllOf(HasSubstr("there is no tensor"),
                    HasSubstr("etc_document_bert/" + lost),
                    HasSubstr("layers.1.feed_forward.norm.weight")));
}

TEST(WeightPlanTest, NamesTensorsOfOtherShapesAndTypes) {
  SourceWeights source = Source(SmallConfig(), NameStyle::kRealEtc, "");
  source.tensors["embedding.segment.weight"].shape = {4, 3};
  EXPECT_THAT(Refusal(source, SmallConfig()),
              AllOf(HasSubstr("embedding.segment.weight"),
                    HasSubstr("should be [3, 4], but is [4, 3]")));
  source = Source(SmallConfig(), NameStyle::kRealEtc, "");
  source.tensors["embedding.segment.weight"].dtype = "I32";
  EXPECT_THAT(Refusal(source, SmallConfig()),
              HasSubstr("should hold floating numbers, but is I32"));
}

// The number of heads changes no shape: only the configuration tells.
TEST(WeightPlanTest, RefusesAnotherTransposition) {
  SourceWeights source = Source(SmallConfig(), NameStyle::kOfficialEtc, "");
  const std::string name =
      "global_local_transformer_layers/feed_forward_layer_0/dense_layers/"
      "layer_0/kernel";
  source.tensors[name].shape = {6, 4};
  EXPECT_THAT(Refusal(source, SmallConfig()),
              HasSubstr("should be [4, 6], but is [6, 4]"));
}

// --- The lifted configuration, and copies -----------------------------------

TEST(WeightPlanTest, FillsTheDefaultEtcThatBertIsLiftedTo) {
  const SourceWeights source =
      Source(SmallBert(), NameStyle::kHuggingFace, "bert.");
  const WeightPlan plan = PlanOrDie(source, LiftedConfig(SmallBert()));
  const std::vector<TensorCopy> copies = plan.Copies();
  EXPECT_EQ(static_cast<int64_t>(copies.size() + plan.NumFresh()),
            static_cast<int64_t>(plan.steps.size()));
  for (const TensorCopy& copy : copies) {
    const WeightStep& step = StepOf(plan, copy.target);
    EXPECT_EQ(copy.source, step.source);
    EXPECT_TRUE(source.tensors.contains(copy.source)) << copy.source;
    EXPECT_EQ(copy.transpose, step.transpose);
    EXPECT_EQ(copy.rows, step.rows);
  }
}

// --- Gates -------------------------------------------------------------------

EtcConfig SmallWithGates() {
  EtcConfig config = SmallConfig();
  config.residual_attention = "gate";
  return config;
}

TEST(WeightPlanTest, TakesGatesOfAModelWithGates) {
  const WeightPlan plan =
      PlanOrDie(Source(SmallWithGates(), NameStyle::kRealEtc, "encoder."),
                SmallWithGates());
  EXPECT_EQ(plan.NumFresh(), 0);
  EXPECT_EQ(plan.NumNewGates(), 0);
  EXPECT_THAT(plan.dropped, IsEmpty());
  EXPECT_THAT(plan.notices, IsEmpty());
  EXPECT_EQ(StepOf(plan, "layers.1.attention.l2g_gate").source,
            "encoder.layers.1.attention.l2g_gate");
}

TEST(WeightPlanTest, GatesThatTheFileLacksBeginAsConfigured) {
  for (const NameStyle style : {NameStyle::kRealEtc, NameStyle::kOfficialEtc}) {
    for (const auto& [initial, text] :
         {std::pair(0.0,
                    "begin with 0 (residual_gate_init), which computes "
                    "what off does"),
          std::pair(1.0, "which computes what sum does"),
          std::pair(0.5, "begin with 0.5 (residual_gate_init)")}) {
      EtcConfig target = SmallWithGates();
      target.residual_gate_init = initial;
      EtcConfig mean = SmallConfig();
      mean.residual_attention = "mean";
      const WeightPlan plan = PlanOrDie(Source(mean, style, ""), target);
      EXPECT_EQ(plan.NumFresh(), 0);
      EXPECT_EQ(plan.NumNewGates(), 4);
      EXPECT_THAT(plan.dropped, IsEmpty());
      EXPECT_THAT(plan.notices, ElementsAre(HasSubstr(text)));
      const WeightStep& step = StepOf(plan, "layers.1.attention.g2g_gate");
      EXPECT_EQ(step.source, "");
      EXPECT_EQ(step.how, absl::StrCat("begins with ", initial));
      EXPECT_EQ(plan.Copies().size() + 4, plan.steps.size());
    }
  }
}

TEST(WeightPlanTest, DropsGatesInAnotherMode) {
  EtcConfig sum = SmallConfig();
  sum.residual_attention = "sum";
  SourceWeights source =
      Source(SmallWithGates(), NameStyle::kRealEtc, "encoder.");
  for (const char* written : {"gate", "sum"}) {
    // Gates are what the file has, not what its configuration says.
    source.config.residual_attention = written;
    const WeightPlan plan = PlanOrDie(source, sum);
    EXPECT_EQ(plan.NumFresh(), 0);
    EXPECT_THAT(plan.dropped, SizeIs(4));
    EXPECT_EQ(plan.dropped.front().name, "encoder.layers.1.attention.g2g_gate");
    EXPECT_THAT(plan.notices,
                ElementsAre(HasSubstr("gates of the weights are left out: "
                                      "residual attention is sum, not gate")));
    EXPECT_EQ(PlanOrDie(source, SmallWithGates()).NumNewGates(), 0);
  }
}

TEST(WeightPlanTest, LiftsTheGatesOfBertToEachBlock) {
  EtcConfig bert = SmallBert();
  bert.residual_attention = "gate";
  const WeightPlan plan = PlanOrDie(
      Source(bert, NameStyle::kRealEtc, "encoder."), SmallWithGates());
  EXPECT_EQ(plan.NumNewGates(), 0);
  for (const char* block : {"g2g", "g2l", "l2g", "l2l"}) {
    EXPECT_EQ(StepOf(plan, absl::StrCat("layers.1.attention.", block, "_gate"))
                  .source,
              "encoder.layers.1.attention.g2g_gate");
  }
}

TEST(WeightPlanTest, RefusesAFileThatHasSomeGates) {
  SourceWeights source = Source(SmallWithGates(), NameStyle::kRealEtc, "");
  source.names.stored_as.erase("layers.1.attention.l2l_gate");
  source.tensors.erase("layers.1.attention.l2l_gate");
  EXPECT_THAT(Refusal(source, SmallWithGates()),
              HasSubstr("no tensor \"layers.1.attention.l2l_gate\""));
  source = Source(SmallWithGates(), NameStyle::kRealEtc, "");
  source.tensors["layers.1.attention.l2l_gate"].shape = {3};
  EXPECT_THAT(Refusal(source, SmallWithGates()),
              AllOf(HasSubstr("l2l_gate"), HasSubstr("should be [2]")));
}

}  // namespace
}  // namespace etc
