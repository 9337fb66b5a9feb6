// Naming styles of the tensors of a file (doc/formats.md 3.1 to 3.3), and
// tensors that are no weights. Opening files is tested with convert_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "etc/weights/source_config.h"
#include "etc/weights/weight_plan.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The names of all tensors of a model in a style.
std::vector<std::string> Names(const EtcConfig& config, NameStyle style,
                               const std::string& prefix) {
  std::set<std::string> names;
  for (const EncoderParameter& parameter : EncoderParameters(config)) {
    if (const std::string& name = NameInStyle(parameter, style);
        !name.empty()) {
      names.insert(prefix + name);
    }
  }
  return {names.begin(), names.end()};
}

TEST(RecognizeNamesTest, KnowsEveryStyleBehindAnyPrefix) {
  EtcConfig etc = *EtcConfigPreset("base");
  etc.vocab_size = 11;
  EtcConfig bert = AsBert(etc);
  bert.max_absolute_position_embeddings = 9;
  const struct {
    EtcConfig config;
    NameStyle style;
    std::vector<std::string> prefixes;
  } cases[] = {
      {etc, NameStyle::kRealEtc, {"", "encoder."}},
      {etc, NameStyle::kOfficialEtc, {"", "etc_document_bert/", "a/b/"}},
      {bert, NameStyle::kGoogleBert, {"", "bert/"}},
      {bert, NameStyle::kHuggingFace, {"", "bert.", "module.roberta."}}};
  for (const auto& [config, style, prefixes] : cases) {
    for (const std::string& prefix : prefixes) {
      const std::vector<std::string> names = Names(config, style, prefix);
      const auto recognized = RecognizeNames(names, "file");
      ASSERT_TRUE(recognized.ok()) << recognized.status();
      EXPECT_EQ(recognized->style, style);
      EXPECT_EQ(recognized->prefix, prefix);
      ASSERT_EQ(recognized->stored_as.size(), names.size());
      for (const auto& [name, stored] : recognized->stored_as) {
        EXPECT_EQ(stored, prefix + name);
      }
    }
  }
}

TEST(RecognizeNamesTest, TakesLayerNormsInTensorFlowSpelling) {
  const auto names =
      RecognizeNames({"bert.embeddings.word_embeddings.weight",
                      "bert.embeddings.LayerNorm.gamma",
                      "bert.embeddings.LayerNorm.beta", "bert.gamma_ray.x"},
                     "file");
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(names->stored_as.at("embeddings.LayerNorm.weight"),
            "bert.embeddings.LayerNorm.gamma");
  EXPECT_EQ(names->stored_as.at("embeddings.LayerNorm.bias"),
            "bert.embeddings.LayerNorm.beta");
  EXPECT_EQ(names->stored_as.at("gamma_ray.x"), "bert.gamma_ray.x");
}

TEST(RecognizeNamesTest, RefusesOneTensorInTwoSpellings) {
  EXPECT_THAT(RecognizeNames(
                  {"embeddings.word_embeddings.weight",
                   "embeddings.LayerNorm.gamma", "embeddings.LayerNorm.weight"},
                  "file")
                  .status()
                  .ToString(),
              AllOf(HasSubstr("file: "), HasSubstr("LayerNorm.gamma"),
                    HasSubstr("twice")));
}

TEST(RecognizeNamesTest, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(RecognizeNames({"conv1.weight"}, "file").status().ToString(),
              AllOf(HasSubstr("file: expected a token table"),
                    HasSubstr("conv1.weight")));
  EXPECT_THAT(RecognizeNames({}, "file").status().ToString(),
              HasSubstr("none at all"));
  EXPECT_THAT(
      RecognizeNames({"_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter"}, "file")
          .status()
          .ToString(),
      HasSubstr("object-based TensorFlow 2"));
  EXPECT_THAT(RecognizeNames({"bert.embeddings.word_embeddings.weight",
                              "roberta.embeddings.word_embeddings.weight"},
                             "file")
                  .status()
                  .ToString(),
              HasSubstr("expected one token table"));
}

TEST(RecognizeNamesTest, NamesTranslationModelsThatHaveNoEncoderForIt) {
  for (const char* const name :
       {"decoder.layers.0.cross_attention.key.weight",
        "decoder.layers.0.encoder_attn.k_proj.weight"}) {
    EXPECT_THAT(
        RecognizeNames({name, "embedding.weight"}, "file").status().ToString(),
        HasSubstr("file: a translation model, which has a decoder"))
        << name;
  }
}

TEST(RecognizeNamesTest, TellsWhatTrainingLeftBehind) {
  for (const char* name :
       {"global_step", "save_counter", "beta1_power",
        "bert/embeddings/word_embeddings/adam_m", "a/b/lamb_v", "x/Adam_1",
        "AdamWeightDecayOptimizer_1/x", "bert.embeddings.position_ids"}) {
    EXPECT_TRUE(IsBookkeeping(name)) << name;
  }
  for (const char* name :
       {"cls/predictions/output_bias", "bert/pooler/dense/m2",
        "bert.embeddings.position_embeddings.weight"}) {
    EXPECT_FALSE(IsBookkeeping(name)) << name;
  }
}

}  // namespace
}  // namespace etc
