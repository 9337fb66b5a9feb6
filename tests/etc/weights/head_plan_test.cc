// Heads of pre-training in a file, without tensors: found, missing, in part, of
// another shape, tied, and for another vocabulary. Values are tested with
// pretraining_heads_test.
#include "etc/weights/head_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "etc/weights/source_config.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using enum PretrainingHead;

EtcConfig SmallBertConfig() {
  EtcConfig config = AsBert({});
  config.vocab_size = 11;
  config.segment_vocab_size = 2;
  config.hidden_size = 4;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.intermediate_size = 6;
  config.max_absolute_position_embeddings = 9;
  return config;
}

// A file with the encoder and those heads that `has` says, under their first
// names.
SourceWeights WithHeads(
    NameStyle style, const std::string& prefix,
    const std::function<bool(PretrainingHead)>& has = [](PretrainingHead) {
      return true;
    }) {
  SourceWeights source{.path = "file", .config = SmallBertConfig()};
  std::vector<std::string> names;
  for (const EncoderParameter& parameter : EncoderParameters(source.config)) {
    const std::string name = prefix + NameInStyle(parameter, style);
    source.tensors[name] = {"F32", ShapeInStyle(parameter, style)};
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  source.names = *RecognizeNames(names, "file");
  for (const PretrainingParameter& parameter :
       PretrainingParameters(source.config)) {
    if (has(parameter.head)) {
      source.tensors[NamesInFile(parameter, source.names).front()] = {
          "F32", ShapeInStyle(parameter.parameter, style)};
    }
  }
  return source;
}

std::string RefusalOf(const SourceWeights& source) {
  return PlanHeads(source, source.config).status().ToString();
}

TEST(HeadPlanTest, FindsEveryHeadInEveryStyle) {
  const std::pair<NameStyle, const char*> kStyles[] = {
      {NameStyle::kRealEtc, "encoder."},
      {NameStyle::kGoogleBert, "bert/"},
      {NameStyle::kHuggingFace, "bert."},
      {NameStyle::kHuggingFace, ""},
      {NameStyle::kHuggingFace, "module.bert."}};
  for (const auto& [style, prefix] : kStyles) {
    const SourceWeights source = WithHeads(style, prefix);
    const auto plan = PlanHeads(source, source.config);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_THAT(plan->found, ElementsAre(kMlm, kPooler, kNsp, kCpc));
    EXPECT_THAT(plan->missing, IsEmpty());
    EXPECT_THAT(plan->tied, IsEmpty());
    ASSERT_THAT(plan->steps, SizeIs(10));
    for (const WeightStep& step : plan->steps) {
      EXPECT_TRUE(source.tensors.contains(step.source)) << step.source;
      EXPECT_TRUE(plan->Uses(step.source));
      EXPECT_EQ(step.transpose,
                style == NameStyle::kGoogleBert && step.target.is_kernel);
      EXPECT_EQ(step.how, step.transpose ? "transposed" : "as it is");
    }
    // Tensors kept here are not of the encoder, and its plan says of which head
    // they are.
    const auto weights = PlanWeights(source, source.config);
    ASSERT_TRUE(weights.ok()) << weights.status();
    ASSERT_THAT(weights->dropped, SizeIs(10));
    for (const DroppedTensor& tensor : weights->dropped) {
      EXPECT_TRUE(plan->Uses(tensor.name));
      EXPECT_EQ(tensor.why, absl::StrCat("part of the ", tensor.head));
    }
  }
}

TEST(HeadPlanTest, SaysWhichAreMissing) {
  const SourceWeights source =
      WithHeads(NameStyle::kGoogleBert, "bert/",
                [](PretrainingHead head) { return head == kMlm; });
  const auto all = PlanHeads(source, source.config);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->found, ElementsAre(kMlm));
  EXPECT_THAT(all->missing, ElementsAre(kPooler, kNsp, kCpc));
  const auto wanted = PlanHeads(source, source.config, {.heads = {kMlm, kNsp}});
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  EXPECT_THAT(wanted->Messages(),
              ElementsAre("MLM head: found",
                          "NSP head: not in the file, starts at random"));
  const auto none = PlanHeads(source, source.config, {.heads = {}});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(none->steps, IsEmpty());
}

// Any tensor of a head of several that is not there is named.
TEST(HeadPlanTest, RefusesHalfAHead) {
  for (const PretrainingParameter& parameter :
       PretrainingParameters(SmallBertConfig())) {
    SourceWeights source = WithHeads(NameStyle::kGoogleBert, "bert/");
    const std::string& name = parameter.parameter.google_bert;
    source.tensors.erase(name);
    if (parameter.head == kCpc) {  // has only one
      EXPECT_TRUE(PlanHeads(source, source.config).ok());
      continue;
    }
    EXPECT_THAT(
        RefusalOf(source),
        HasSubstr(absl::StrCat(
            "file: its ", PretrainingHeadDescription(parameter.head),
            " is incomplete: it has no tensor \"", name, "\", but \"")));
    // Nobody asked for it.
    EXPECT_TRUE(PlanHeads(source, source.config, {.heads = {kCpc}}).ok());
  }
}

TEST(HeadPlanTest, RefusesOtherShapesAndDtypes) {
  SourceWeights source = WithHeads(NameStyle::kHuggingFace, "bert.");
  // A vocabulary that was rounded up, but not in the table.
  source.tensors["cls.predictions.bias"].shape = {16};
  EXPECT_THAT(RefusalOf(source),
              HasSubstr("tensor \"cls.predictions.bias\" should be [11], but "
                        "is [16]"));
  source = WithHeads(NameStyle::kHuggingFace, "bert.");
  source.tensors["cls.seq_relationship.weight"].shape = {4, 2};
  EXPECT_THAT(RefusalOf(source), HasSubstr("should be [2, 4], but is [4, 2]"));
  source = WithHeads(NameStyle::kHuggingFace, "bert.");
  source.tensors["cls.predictions.bias"].dtype = "I64";
  EXPECT_THAT(RefusalOf(source),
              HasSubstr("should hold floating numbers, but is I64"));
}

TEST(HeadPlanTest, TiesWhatHuggingFaceStoresTwice) {
  SourceWeights source = WithHeads(NameStyle::kHuggingFace, "bert.");
  source.tensors["cls.predictions.decoder.weight"] = {"F32", {11, 4}};
  source.tensors["cls.predictions.decoder.bias"] = {"F32", {11}};
  const auto plan = PlanHeads(source, source.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->tied, SizeIs(2));
  EXPECT_EQ(plan->tied[0].name, "cls.predictions.decoder.bias");
  EXPECT_EQ(plan->tied[0].same_as, "cls.predictions.bias");
  EXPECT_EQ(plan->tied[1].name, "cls.predictions.decoder.weight");
  EXPECT_EQ(plan->tied[1].same_as, "bert.embeddings.word_embeddings.weight");
  EXPECT_TRUE(plan->Uses("cls.predictions.decoder.weight"));
  source.tensors["cls.predictions.decoder.weight"].shape = {12, 4};
  EXPECT_THAT(RefusalOf(source),
              HasSubstr("decoder.weight\" should be [11, 4], but is [12, 4]"));
  // The only copy of the bias.
  source = WithHeads(NameStyle::kHuggingFace, "bert.");
  source.tensors.erase("cls.predictions.bias");
  source.tensors["cls.predictions.decoder.bias"] = {"F32", {11}};
  const auto other = PlanHeads(source, source.config);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(other->Uses("cls.predictions.decoder.bias"));
}

TEST(HeadPlanTest, ReadsRobertasHead) {
  SourceWeights source = WithHeads(NameStyle::kHuggingFace, "roberta.",
                                   [](PretrainingHead) { return false; });
  source.tensors["lm_head.dense.weight"] = {"F16", {4, 4}};
  source.tensors["lm_head.dense.bias"] = {"F32", {4}};
  source.tensors["lm_head.layer_norm.weight"] = {"F32", {4}};
  source.tensors["lm_head.layer_norm.bias"] = {"F32", {4}};
  source.tensors["lm_head.bias"] = {"F32", {11}};
  source.tensors["lm_head.decoder.weight"] = {"F32", {11, 4}};
  const auto plan = PlanHeads(source, source.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->found, ElementsAre(kMlm));
  EXPECT_EQ(plan->steps[0].source, "lm_head.dense.weight");
  EXPECT_EQ(plan->steps[0].how, "from F16");
  ASSERT_THAT(plan->tied, SizeIs(1));
  EXPECT_EQ(plan->tied[0].same_as, "roberta.embeddings.word_embeddings.weight");
  source.tensors.erase("lm_head.layer_norm.bias");
  EXPECT_THAT(RefusalOf(source), HasSubstr("MLM head is incomplete"));
}

// BertForTokenClassification has the names of BertForSequenceClassification.
TEST(HeadPlanTest, TellsClassifiersOfTokensFromThoseOfTexts) {
  const std::pair<NameStyle, const char*> kStyles[] = {
      {NameStyle::kRealEtc, "encoder."}, {NameStyle::kHuggingFace, "bert."}};
  for (const auto& [style, prefix] : kStyles) {
    for (const bool has_pooler : {true, false}) {
      SourceWeights source =
          WithHeads(style, prefix, [has_pooler](PretrainingHead head) {
            return has_pooler && head == kPooler;
          });
      EXPECT_FALSE(ClassifiesTexts(source) || ClassifiesTokens(source));
      for (const PretrainingParameter& parameter :
           TaskHeadParameters(source.config, 3)) {
        if (parameter.head == kClassifier) {
          source.tensors[NamesInFile(parameter, source.names).front()] = {
              "F32", parameter.parameter.shape};
        }
      }
      EXPECT_EQ(ClassifiesTexts(source), has_pooler);
      EXPECT_EQ(ClassifiesTokens(source), !has_pooler);
      source.hugging_face.architecture = "BertForTokenClassification";
      EXPECT_TRUE(ClassifiesTokens(source));
      source.hugging_face.architecture = "BertForMultipleChoice";
      EXPECT_FALSE(ClassifiesTexts(source) || ClassifiesTokens(source));
    }
  }
}

TEST(HeadPlanTest, TakesTheBiasesOfAnotherVocabularyByPiece) {
  const SourceWeights source = WithHeads(NameStyle::kGoogleBert, "bert/");
  EtcConfig target = source.config;
  target.vocab_size = 3;
  const auto plan =
      PlanHeads(source, target, {.heads = {kMlm}, .token_rows = {5, -1, 0}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const WeightStep& step : plan->steps) {
    const bool is_bias = step.target.name == "head.mlm.output_bias";
    EXPECT_EQ(step.rows.empty(), !is_bias) << step.target.name;
    if (is_bias) {
      EXPECT_THAT(step.target.shape, ElementsAre(3));
      EXPECT_THAT(step.rows, ElementsAre(5, -1, 0));
      EXPECT_EQ(step.how, "by piece, the others 0");
    }
  }
}

}  // namespace
}  // namespace etc
