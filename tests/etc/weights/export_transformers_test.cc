// ExportForTransformers: the files that it writes, and the way back. That the
// code computes the model is python/tests/transformers_test.py's question.
#include "etc/weights/export_transformers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "etc/weights/convert.h"
#include "etc/weights/import_plan.h"
#include "etc/weights/transformers_code.h"
#include "nlohmann/json.hpp"
#include "tests/etc/weights/random_model.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ExportTransformersTest : public testing::Test {
 protected:
  // A classifier of three labels, or a regression.
  std::string WriteClassifier(bool is_regression) {
    EtcConfig config = ToyConfig();
    config.residual_attention = "gate";
    model_ = RandomModel(config);
    const int64_t outputs = is_regression ? 1 : 3;
    tensors_ = ModuleTensors(*model_, "encoder.");
    tensors_["head.pooler.weight"] = torch::randn({4, 4});
    tensors_["head.pooler.bias"] = torch::randn({4});
    tensors_["head.classifier.weight"] = torch::randn({outputs, 4});
    tensors_["head.classifier.bias"] = torch::randn({outputs});
    HuggingFaceFields fields;
    if (is_regression) {
      fields.problem_type = "regression";
      fields.mean = 10;
      fields.deviation = 2;
    } else {
      fields.problem_type = "single_label_classification";
      fields.labels = {"owner", "retrial", "tenant"};
    }
    const std::string ours = directory_.File("ours");
    WriteCheckpoint(ours, model_);
    EXPECT_TRUE(
        WriteTensors(ours + "/model.safetensors", tensors_, MetadataOf(fields))
            .ok());
    EXPECT_TRUE(
        WriteFileAtomically(ours + "/vocab.txt",
                            "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\nd\ne\nf\ng\n")
            .ok());
    return ours;
  }

  json Config(const std::string& directory) {
    return json::parse(*ReadFile(directory + "/config.json"));
  }

  TemporaryDirectory directory_;
  EtcModel model_ = nullptr;
  NamedTensors tensors_;
};

TEST_F(ExportTransformersTest, WritesConfigurationCodeAndWeightsByOurNames) {
  const std::string source = WriteClassifier(/*is_regression=*/false);
  const std::string out = directory_.File("out");
  const auto report = ExportForTransformers(
      source, {.max_long_length = 64, .max_global_length = 8}, out);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->written.back(), out + "/model.safetensors");
  EXPECT_THAT(report->warnings, IsEmpty());
  const json config = Config(out);
  EXPECT_EQ(config["model_type"], "realetc");
  EXPECT_EQ(config["architectures"],
            json({"RealEtcForSequenceClassification"}));
  EXPECT_EQ(config["auto_map"]["AutoModel"], "modeling_realetc.RealEtcModel");
  EXPECT_EQ(config["id2label"]["2"], "tenant");
  EXPECT_EQ(config["residual_attention"], "gate");
  EXPECT_EQ(config["max_long_length"], 64);
  for (const CodeFile& file : TransformersCode()) {
    EXPECT_EQ(*ReadFile(out + "/" + file.name), file.contents);
  }
  EXPECT_THAT(*ReadFile(out + "/modeling_realetc.py"),
              HasSubstr("class RealEtcModel("));
  const json tokenizer = json::parse(*ReadFile(out + "/tokenizer_config.json"));
  EXPECT_EQ(tokenizer["tokenizer_class"], "BertTokenizer");
  EXPECT_EQ(tokenizer["model_max_length"], 64);
  EXPECT_EQ(tokenizer["max_input_chars_per_word"], 100);
  const auto reader = TensorReader::Open(out);
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const auto& [name, tensor] : tensors_) {
    EXPECT_TRUE(torch::equal(*reader->Read(name), tensor)) << name;
  }
}

TEST_F(ExportTransformersTest, NamesATokenizerJsonAndItsPadding) {
  const std::string source = WriteClassifier(/*is_regression=*/false);
  ASSERT_TRUE(std::filesystem::remove(source + "/vocab.txt"));
  json file = json::parse(
      R"({"model": {"type": "BPE", "vocab": {"<pad>": 0}},
          "added_tokens": [{"id": 0, "content": "<pad>"}]})");
  for (int id = 1; id < 11; ++id) {
    file["model"]["vocab"][std::string(1, static_cast<char>('a' + id))] = id;
  }
  ASSERT_TRUE(
      WriteFileAtomically(source + "/tokenizer.json", file.dump()).ok());
  const std::string out = directory_.File("out");
  ASSERT_TRUE(ExportForTransformers(source, {}, out).ok());
  const json tokenizer = json::parse(*ReadFile(out + "/tokenizer_config.json"));
  EXPECT_EQ(tokenizer["tokenizer_class"], "PreTrainedTokenizerFast");
  EXPECT_EQ(tokenizer["pad_token"], "<pad>");
  EXPECT_EQ(tokenizer["model_max_length"], 4096);
}

TEST_F(ExportTransformersTest, ClassifiesTokensWithoutAPooler) {
  const std::string source = WriteClassifier(/*is_regression=*/false);
  tensors_.erase("head.pooler.weight");
  tensors_.erase("head.pooler.bias");
  ASSERT_TRUE(WriteTensors(source + "/model.safetensors", tensors_,
                           MetadataOf({.labels = {"O", "B-town", "I-town"}}))
                  .ok());
  const std::string out = directory_.File("out");
  const auto report = ExportForTransformers(source, {}, out);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->warnings, IsEmpty());
  const json config = Config(out);
  EXPECT_EQ(config["architectures"], json({"RealEtcForTokenClassification"}));
  EXPECT_EQ(config["auto_map"]["AutoModelForTokenClassification"],
            "modeling_realetc.RealEtcForTokenClassification");
  EXPECT_EQ(config["id2label"]["1"], "B-town");
  EXPECT_THAT(*ReadFile(out + "/modeling_realetc.py"),
              HasSubstr("class RealEtcForTokenClassification("));
}

TEST_F(ExportTransformersTest, IsACheckpointOfOurs) {
  const std::string source = WriteClassifier(/*is_regression=*/false);
  const std::string out = directory_.File("out");
  ASSERT_TRUE(ExportForTransformers(source, {}, out).ok());
  // As transformers saves it.
  ASSERT_TRUE(WriteTensors(out + "/model.safetensors", tensors_, {}).ok());
  // One file has the configuration, so that no other can contradict it.
  EXPECT_FALSE(std::filesystem::exists(out + "/etc_config.json"));
  const auto file = OpenWeights(out);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(EtcConfigToJson(file->source.config),
            EtcConfigToJson(model_->config()));
  EXPECT_THAT(file->source.hugging_face.labels,
              ElementsAre("owner", "retrial", "tenant"));
  EtcModel loaded(file->source.config);
  ASSERT_TRUE(LoadEncoderWeights(out, loaded).ok());
  EXPECT_TRUE(SameTensors(ModuleTensors(*loaded), ModuleTensors(*model_)));
}

TEST_F(ExportTransformersTest, RegressionPredictsTheNumbersThemselves) {
  const std::string source = WriteClassifier(/*is_regression=*/true);
  const std::string out = directory_.File("out");
  ASSERT_TRUE(ExportForTransformers(source, {}, out).ok());
  const auto file = OpenWeights(out);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->source.hugging_face.mean, 0);
  EXPECT_EQ(file->source.hugging_face.deviation, 1);
  EXPECT_EQ(Config(out)["problem_type"], "regression");
  EXPECT_TRUE(
      torch::allclose(*TensorReader(file->tensors).Read("head.classifier.bias"),
                      tensors_["head.classifier.bias"] * 2 + 10));
}

TEST_F(ExportTransformersTest, WarnsOfHeadsThatItLeavesOut) {
  const std::string source = WriteClassifier(/*is_regression=*/false);
  tensors_["head.answer_type.weight"] = torch::randn({3, 4});
  ASSERT_TRUE(WriteTensors(source + "/model.safetensors", tensors_, {}).ok());
  const auto report = ExportForTransformers(source, {}, directory_.File("out"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->warnings,
              ElementsAre(AllOf(HasSubstr("head.answer_type.weight"),
                                Not(HasSubstr("head.classifier")))));
}

TEST_F(ExportTransformersTest, RefusesADirectoryWithWeights) {
  const std::string source = WriteClassifier(/*is_regression=*/false);
  EXPECT_EQ(ExportForTransformers(source, {}, source).status().code(),
            absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace etc
