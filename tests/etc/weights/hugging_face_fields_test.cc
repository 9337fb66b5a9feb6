// The fields of HuggingFace's config.json that the encoder's configuration has
// no place for: read, written, kept in metadata; labels that contradict one
// another are noted, not taken.
#include "etc/weights/hugging_face_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

HuggingFaceFields FieldsOf(const json& object) {
  const auto fields = HuggingFaceFieldsFromJson(object, "config.json");
  EXPECT_TRUE(fields.ok()) << fields.status();
  return fields.value_or(HuggingFaceFields());
}

TEST(HuggingFaceFieldsTest, ComeBackFromJsonAndMetadata) {
  const HuggingFaceFields fields = {
      .model_type = "roberta",
      .architecture = "RobertaForSequenceClassification",
      .pad_token_id = 3,
      .classifier_dropout = 0.25,
      .problem_type = "multi_label_classification",
      .labels = {"b", "a, \"c\"", "ü"},
      .mean = 2,
      .deviation = 0.5};
  const auto kept = HuggingFaceFieldsFromMetadata(MetadataOf(fields), "f");
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept, fields);
  HuggingFaceFields unscaled = fields;
  unscaled.mean = 0;
  unscaled.deviation = 1;
  EXPECT_EQ(FieldsOf(HuggingFaceFieldsToJson(fields, 3)), unscaled);

  // A scaling may have either alone.
  for (const auto& [mean, deviation] :
       {std::pair(2.0, 1.0), std::pair(0.0, 0.5)}) {
    unscaled.mean = mean;
    unscaled.deviation = deviation;
    EXPECT_EQ(*HuggingFaceFieldsFromMetadata(MetadataOf(unscaled), "f"),
              unscaled)
        << mean << ", " << deviation;
  }

  EXPECT_THAT(MetadataOf({}), IsEmpty());
  EXPECT_EQ(*HuggingFaceFieldsFromMetadata({}, "f"), HuggingFaceFields());
  EXPECT_EQ(HuggingFaceFieldsFromMetadata(
                {{"hugging_face", R"({"deviation": 0})"}}, "f")
                .status()
                .message(),
            "f: metadata hugging_face.deviation and mean should be finite, and "
            "deviation above 0");
  EXPECT_EQ(HuggingFaceFieldsFromMetadata({{"hugging_face", "{"}}, "f")
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(HuggingFaceFieldsTest, ArchitectureDecidesWithoutModelType) {
  EXPECT_TRUE(
      FieldsOf({{"architectures", {"RobertaForMaskedLM"}}}).is_roberta());
  EXPECT_FALSE(FieldsOf({{"architectures", {"BertModel"}}}).is_roberta());
  EXPECT_FALSE(
      FieldsOf({{"architectures", {"RobertaModel"}}, {"model_type", "bert"}})
          .is_roberta());
  EXPECT_THAT(HuggingFaceFieldsFromJson({{"model_type", "gpt2"}}, "config.json")
                  .status()
                  .ToString(),
              HasSubstr("config.json: model_type should be"));
}

TEST(HuggingFaceFieldsTest, KnowRobertasOtherNames) {
  for (const char* type : {"roberta", "xlm-roberta", "camembert"}) {
    const HuggingFaceFields fields = FieldsOf({{"model_type", type}});
    EXPECT_TRUE(fields.is_roberta()) << type;
    EXPECT_EQ(FieldsOf({{"architectures",
                         {ClassPrefix(fields.model_type) + "ForMaskedLM"}}})
                  .model_type,
              type);
  }
}

TEST(HuggingFaceFieldsTest, LabelsComeFromEitherField) {
  EXPECT_THAT(FieldsOf({{"id2label", {{"1", "a"}, {"0", "b"}}}}).labels,
              ElementsAre("b", "a"));
  EXPECT_THAT(FieldsOf({{"label2id", {{"a", 1}, {"b", 0}}}}).labels,
              ElementsAre("b", "a"));
  // Labels of a model whose user set one of the two.
  EXPECT_THAT(FieldsOf({{"id2label", {{"0", "LABEL_0"}, {"1", "LABEL_1"}}},
                        {"label2id", {{"a", 1}, {"b", 0}}}})
                  .labels,
              ElementsAre("b", "a"));
  EXPECT_THAT(
      FieldsOf({{"id2label", {{"0", "LABEL_0"}, {"1", "LABEL_1"}}}}).labels,
      IsEmpty());
  std::string eleven;
  json many;
  for (int i = 0; i < 11; ++i) {
    many["id2label"][std::to_string(i)] = "l" + std::to_string(i);
  }
  EXPECT_EQ(FieldsOf(many).labels[10], "l10") << "by number, not by text";
}

TEST(HuggingFaceFieldsTest, NotesLabelsThatCannotBeUsed) {
  const std::pair<json, const char*> cases[] = {
      {{{"id2label", {{"0", "a"}, {"1", "b"}}},
        {"label2id", {{"a", 1}, {"b", 0}}}},
       "contradict each other: output 0 is \"a\" and \"b\""},
      {{{"id2label", {{"0", "a"}, {"2", "b"}}}}, "no label 1"},
      {{{"id2label", {{"0", "a"}, {"1", "a"}}}}, "\"a\" is there twice"},
      {{{"label2id", {{"a", 0}, {"b", 0}}}}, "index 0 is there twice"},
      {{{"id2label", {{"x", "a"}}}}, "whole number"},
      {{{"id2label", {"a", "b"}}}, "should be an object"}};
  for (const auto& [object, message] : cases) {
    const HuggingFaceFields fields = FieldsOf(object);
    EXPECT_THAT(fields.labels_mistake, HasSubstr(message)) << object;
    EXPECT_THAT(fields.labels, IsEmpty()) << object;
  }
}

}  // namespace
}  // namespace etc
