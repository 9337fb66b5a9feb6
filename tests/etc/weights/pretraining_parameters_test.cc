// Names, shapes and numbers of the heads of pre-training: the published counts
// of doc/pretraining.md 6.2, the names of doc/formats.md 3.2 and 3.3, and what
// a file may call them beside its encoder's prefix.
#include "etc/weights/pretraining_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "etc/weights/source_config.h"

namespace etc {
namespace {

using testing::Contains;
using testing::ElementsAre;

using Shape = std::vector<int64_t>;

EtcConfig Bert(int64_t layers, int64_t hidden) {
  EtcConfig config = AsBert({});
  config.vocab_size = 30522;
  config.segment_vocab_size = 2;
  config.hidden_size = hidden;
  config.num_hidden_layers = layers;
  config.num_attention_heads = hidden / 64;
  config.intermediate_size = 4 * hidden;
  config.max_absolute_position_embeddings = 512;
  return config;
}

int64_t Product(const Shape& shape) {
  int64_t product = 1;
  for (const int64_t size : shape) {
    product *= size;
  }
  return product;
}

int64_t NumbersOf(const EtcConfig& config, PretrainingHead head) {
  int64_t sum = 0;
  for (const PretrainingParameter& parameter : PretrainingParameters(config)) {
    sum += parameter.head == head ? Product(parameter.parameter.shape) : 0;
  }
  return sum;
}

// The encoder's in BERT's files, where one tensor may be several of ours.
int64_t EncoderNumbers(const EtcConfig& config) {
  std::map<std::string, int64_t> numbers;
  for (const EncoderParameter& parameter : EncoderParameters(config)) {
    numbers[parameter.google_bert] = Product(parameter.shape);
  }
  int64_t sum = 0;
  for (const auto& [name, count] : numbers) {
    sum += count;
  }
  return sum;
}

TEST(PretrainingParametersTest, CountsAreThePublishedOnes) {
  const struct {
    int64_t layers, hidden, encoder_and_pooler, mlm, nsp;
  } kModels[] = {{4, 512, 28'763'648, 294'202, 1'026},
                 {12, 768, 109'482'240, 622'650, 1'538},
                 {24, 1024, 335'141'888, 1'082'170, 2'050},
                 {36, 1536, 1'069'969'920, 2'394'426, 3'074}};
  for (const auto& model : kModels) {
    const EtcConfig config = Bert(model.layers, model.hidden);
    EXPECT_EQ(
        EncoderNumbers(config) + NumbersOf(config, PretrainingHead::kPooler),
        model.encoder_and_pooler);
    EXPECT_EQ(NumbersOf(config, PretrainingHead::kMlm), model.mlm);
    EXPECT_EQ(NumbersOf(config, PretrainingHead::kNsp), model.nsp);
    EXPECT_EQ(NumbersOf(config, PretrainingHead::kCpc),
              model.hidden * model.hidden);
  }
}

TEST(PretrainingParametersTest, HasTheNamesAndShapesOfOtherCodes) {
  EtcConfig config = Bert(1, 64);
  config.embedding_size = 16;
  const struct {
    const char* ours;
    const char* google;
    Shape google_shape;
    const char* hugging_face;
    Shape hugging_face_shape;
  } kExpected[] = {
      {"head.mlm.transform.weight",
       "cls/predictions/transform/dense/kernel",
       {64, 16},
       "cls.predictions.transform.dense.weight",
       {16, 64}},
      {"head.mlm.transform.bias",
       "cls/predictions/transform/dense/bias",
       {16},
       "cls.predictions.transform.dense.bias",
       {16}},
      {"head.mlm.norm.weight",
       "cls/predictions/transform/LayerNorm/gamma",
       {16},
       "cls.predictions.transform.LayerNorm.weight",
       {16}},
      {"head.mlm.norm.bias",
       "cls/predictions/transform/LayerNorm/beta",
       {16},
       "cls.predictions.transform.LayerNorm.bias",
       {16}},
      {"head.mlm.output_bias",
       "cls/predictions/output_bias",
       {30522},
       "cls.predictions.bias",
       {30522}},
      {"head.pooler.weight",
       "bert/pooler/dense/kernel",
       {64, 64},
       "bert.pooler.dense.weight",
       {64, 64}},
      {"head.pooler.bias",
       "bert/pooler/dense/bias",
       {64},
       "bert.pooler.dense.bias",
       {64}},
      {"head.nsp.weight",
       "cls/seq_relationship/output_weights",
       {2, 64},
       "cls.seq_relationship.weight",
       {2, 64}},
      {"head.nsp.bias",
       "cls/seq_relationship/output_bias",
       {2},
       "cls.seq_relationship.bias",
       {2}},
      {"head.cpc.kernel", "cpc/kernel", {64, 64}, "cpc.kernel", {64, 64}}};
  const auto parameters = PretrainingParameters(config);
  ASSERT_EQ(parameters.size(), std::size(kExpected));
  for (size_t i = 0; i < parameters.size(); ++i) {
    const EncoderParameter& parameter = parameters[i].parameter;
    const auto& expected = kExpected[i];
    EXPECT_EQ(parameter.name, expected.ours);
    for (const NameStyle style :
         {NameStyle::kGoogleBert, NameStyle::kOfficialEtc}) {
      EXPECT_EQ(NameInStyle(parameter, style), expected.google);
      EXPECT_EQ(ShapeInStyle(parameter, style), expected.google_shape);
    }
    EXPECT_EQ(NameInStyle(parameter, NameStyle::kHuggingFace),
              expected.hugging_face);
    EXPECT_EQ(ShapeInStyle(parameter, NameStyle::kHuggingFace),
              expected.hugging_face_shape);
  }
}

// The names in a file of our parameter `ours`.
std::vector<std::string> Names(const std::string& ours, NameStyle style,
                               const std::string& prefix) {
  for (const PretrainingParameter& parameter :
       PretrainingParameters(Bert(1, 64))) {
    if (parameter.parameter.name == ours) {
      return NamesInFile(parameter, {.style = style, .prefix = prefix});
    }
  }
  return {};
}

TEST(PretrainingParametersTest, FollowsThePrefixOfTheEncoder) {
  const std::string norm = "head.mlm.norm.weight";
  EXPECT_THAT(Names(norm, NameStyle::kRealEtc, "encoder."), ElementsAre(norm));
  EXPECT_THAT(Names(norm, NameStyle::kRealEtc, ""), ElementsAre(norm));
  EXPECT_THAT(Names(norm, NameStyle::kGoogleBert, "bert/"),
              ElementsAre("cls/predictions/transform/LayerNorm/gamma"));
  EXPECT_THAT(Names(norm, NameStyle::kOfficialEtc, "a/etc_document_bert/"),
              ElementsAre("a/cls/predictions/transform/LayerNorm/gamma"));
  EXPECT_THAT(Names(norm, NameStyle::kHuggingFace, "module.bert."),
              ElementsAre("module.cls.predictions.transform.LayerNorm.weight",
                          "module.cls.predictions.transform.LayerNorm.gamma",
                          "module.lm_head.layer_norm.weight"));
  EXPECT_THAT(
      Names("head.mlm.output_bias", NameStyle::kHuggingFace, "bert."),
      ElementsAre("cls.predictions.bias", "cls.predictions.decoder.bias",
                  "lm_head.bias", "lm_head.decoder.bias"));
}

TEST(PretrainingParametersTest, ThePoolerHasThePrefixOfTheEncoder) {
  const std::string pooler = "head.pooler.bias";
  EXPECT_THAT(Names(pooler, NameStyle::kHuggingFace, "roberta."),
              Contains("roberta.pooler.dense.bias"));
  EXPECT_THAT(Names(pooler, NameStyle::kHuggingFace, ""),
              Contains("pooler.dense.bias"));
  EXPECT_THAT(Names(pooler, NameStyle::kGoogleBert, "bert/"),
              ElementsAre("bert/pooler/dense/bias"));
  EXPECT_THAT(Names(pooler, NameStyle::kOfficialEtc, "etc_document_bert/"),
              Contains("bert/pooler/dense/bias"));
}

TEST(PretrainingParametersTest, KnowsWhichHeadATensorBelongsTo) {
  const auto tensors = PretrainingTensors(
      Bert(1, 64), {.style = NameStyle::kHuggingFace, .prefix = "bert."});
  EXPECT_EQ(tensors.at("cls.predictions.decoder.weight"),
            PretrainingHead::kMlm);
  EXPECT_EQ(tensors.at("lm_head.decoder.weight"), PretrainingHead::kMlm);
  EXPECT_EQ(tensors.at("bert.pooler.dense.weight"), PretrainingHead::kPooler);
  EXPECT_EQ(tensors.at("cls.seq_relationship.bias"), PretrainingHead::kNsp);
  EXPECT_EQ(tensors.at("classifier.weight"), PretrainingHead::kClassifier);
  EXPECT_EQ(tensors.at("qa_outputs.bias"), PretrainingHead::kAnswerSpan);
  // RoBERTa's.
  EXPECT_EQ(tensors.at("classifier.dense.weight"), PretrainingHead::kPooler);
  EXPECT_EQ(tensors.at("classifier.out_proj.bias"),
            PretrainingHead::kClassifier);
  EXPECT_FALSE(tensors.contains("classifier.layers.weight"));
  EXPECT_EQ(JoinPretrainingHeads({}), "none");
  EXPECT_EQ(
      JoinPretrainingHeads({PretrainingHead::kMlm, PretrainingHead::kCpc}),
      "MLM head, CPC kernel");
}

// No name stands for two parameters, nor for one of the encoder.
TEST(PretrainingParametersTest, NamesAreUnique) {
  for (const NameStyle style :
       {NameStyle::kRealEtc, NameStyle::kOfficialEtc, NameStyle::kGoogleBert,
        NameStyle::kHuggingFace}) {
    std::set<std::string> names;
    for (const EncoderParameter& parameter : EncoderParameters(Bert(1, 64))) {
      names.insert("bert." + NameInStyle(parameter, style));
    }
    for (const PretrainingParameter& parameter :
         PretrainingParameters(Bert(1, 64))) {
      for (const std::string& name :
           NamesInFile(parameter, {.style = style, .prefix = "bert."})) {
        EXPECT_TRUE(names.insert(name).second) << name;
      }
    }
  }
}

}  // namespace
}  // namespace etc
