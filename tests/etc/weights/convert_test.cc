// Weights through every conversion and back. A model with random parameters is
// written in each style and format, opened by its own names and configuration,
// and computes the same as the model itself: bit for bit, because nothing but
// the place of the numbers changes. Lifting is tested by value; which tensor
// goes where is tested with weight_plan_test.
#include "etc/weights/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "etc/bert_input.h"
#include "etc/model.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/encoder_parameters.h"
#include "etc/weights/import_plan.h"
#include "etc/weights/source_config.h"
#include "etc/weights/weight_plan.h"
#include "etc/weights/weights.h"
#include "nlohmann/json.hpp"
#include "tests/etc/weights/random_model.h"
#include "tests/support/recorded_operations.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ConvertTest : public testing::Test {
 protected:
  // Our checkpoint directory of the model.
  std::string Write(const EtcModel& model, const std::string& name) {
    const std::string directory = directory_.File(name);
    WriteCheckpoint(directory, model);
    return directory;
  }

  EtcModel Load(const std::string& path) {
    auto file = OpenWeights(path);
    EXPECT_TRUE(file.ok()) << file.status();
    if (!file.ok()) {
      return nullptr;
    }
    auto encoder = ReadEncoder(*file);
    EXPECT_TRUE(encoder.ok()) << encoder.status();
    EtcModel model(file->source.config);
    model->eval();
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->named_parameters()) {
      parameter.value().copy_(encoder->at(parameter.key()));
    }
    return model;
  }

  TemporaryDirectory directory_;
};

// --- There and back ---------------------------------------------------------

TEST_F(ConvertTest, EtcComesBackToTheBitFromEveryFormat) {
  for (int flags = 0; flags < 24; ++flags) {
    EtcConfig config = ToyConfig();
    config.share_qkv_projections = (flags & 1) != 0;
    config.share_kv_projections = (flags & 2) != 0;
    config.share_feed_forward_params = (flags & 4) != 0;
    config.max_absolute_position_embeddings = flags >= 8 ? 9 : 0;
    EtcInput input = ToyInput();
    if (flags >= 16) {
      config.relative_vocab_size = std::nullopt;
      config.relative_pos_max_distance = 0;
      input.attention = AttentionInputs::Everything(/*max_distance=*/0);
    }
    EtcModel model = RandomModel(config);
    const std::string ours = Write(model, absl::StrCat("ours", flags));
    for (const ExportFormat format :
         {ExportFormat::kTensorFlow, ExportFormat::kSafetensors}) {
      const std::string there = directory_.File(
          absl::StrCat("there", flags, format == ExportFormat::kTensorFlow));
      const auto written = ExportWeights(ours, format, there);
      ASSERT_TRUE(written.ok()) << written.status();
      EtcModel loaded = Load(there);
      EXPECT_TRUE(SameTensors(ModuleTensors(*model), ModuleTensors(*loaded)));
      EXPECT_TRUE(torch::equal(model->forward(input).long_output,
                               loaded->forward(input).long_output));
      EXPECT_EQ(OpenWeights(there)->source.names.style,
                NameStyle::kOfficialEtc);

      const std::string back = there + "-back";
      const auto plan = PlanImport({.source = there});
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(plan->plan.NumFresh(), 0);
      EXPECT_THAT(plan->plan.dropped, IsEmpty());
      const absl::Status status = WriteImport(*plan, 1, back);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(*ReadFile(ours + "/etc_config.json"),
                *ReadFile(back + "/etc_config.json"));
      EXPECT_TRUE(
          SameTensors(ModuleTensors(*model), ModuleTensors(*Load(back))));
    }
  }
}

TEST_F(ConvertTest, BertComesBackToTheBitFromEveryFormat) {
  for (const char* residual : {"off", "sum", "mean"}) {
    EtcModel model = RandomModel(BertOf(residual));
    const std::string ours = Write(model, absl::StrCat("ours-", residual));
    const EtcInput input = BertInput(torch::randint(29, {2, 9}, torch::kInt64));
    for (const ExportFormat format :
         {ExportFormat::kTensorFlow, ExportFormat::kSafetensors}) {
      const bool is_tensorflow = format == ExportFormat::kTensorFlow;
      const std::string there =
          directory_.File(absl::StrCat("there-", residual, is_tensorflow));
      const auto written = ExportWeights(ours, format, there);
      ASSERT_TRUE(written.ok()) << written.status();
      const auto file = OpenWeights(there);
      ASSERT_TRUE(file.ok()) << file.status();
      EXPECT_EQ(file->source.names.style, is_tensorflow
                                              ? NameStyle::kGoogleBert
                                              : NameStyle::kHuggingFace);
      EXPECT_EQ(file->source.names.prefix, is_tensorflow ? "bert/" : "bert.");
      EXPECT_EQ(EtcConfigToJson(file->source.config),
                EtcConfigToJson(model->config()));
      EtcModel loaded = Load(there);
      EXPECT_TRUE(SameTensors(ModuleTensors(*model), ModuleTensors(*loaded)));
      EXPECT_TRUE(torch::equal(model->forward(input).global_output,
                               loaded->forward(input).global_output));
    }
  }
}

TEST_F(ConvertTest, KernelsAreTransposedForTensorFlowOnly) {
  EtcModel model = RandomModel(BertOf());
  const NamedTensors encoder = ModuleTensors(*model);
  const auto google =
      TensorsInStyle(encoder, model->config(), NameStyle::kGoogleBert);
  ASSERT_TRUE(google.ok()) << google.status();
  const std::string layer = "bert/encoder/layer_1/";
  EXPECT_TRUE(torch::equal(
      google->at(layer + "intermediate/dense/kernel"),
      encoder.at("layers.1.feed_forward.intermediate.weight").t()));
  EXPECT_TRUE(
      torch::equal(google->at(layer + "attention/self/key/kernel"),
                   encoder.at("layers.1.attention.l2l_key.weight").t()));
  EXPECT_TRUE(torch::equal(google->at("bert/embeddings/word_embeddings"),
                           encoder.at("embedding.token.weight")));
  const auto other =
      TensorsInStyle(encoder, model->config(), NameStyle::kHuggingFace);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(
      torch::equal(other->at("bert.encoder.layer.1.intermediate.dense.weight"),
                   encoder.at("layers.1.feed_forward.intermediate.weight")));
}

// --- Lifting ----------------------------------------------------------------

TEST_F(ConvertTest, LiftsBertAndKeepsWhatItHasNot) {
  EtcModel bert = RandomModel(BertOf("sum"));
  const std::string source = directory_.File("bert");
  ASSERT_TRUE(
      ExportWeights(Write(bert, "ours"), ExportFormat::kTensorFlow, source)
          .ok());
  const auto plan = PlanImport({.source = source, .lift = true});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::string lifted = directory_.File("lifted");
  ASSERT_TRUE(WriteImport(*plan, 3, lifted).ok());
  EtcModel etc = Load(lifted);
  EXPECT_EQ(etc->config().residual_attention, "sum");
  EXPECT_EQ(etc->config().max_absolute_position_embeddings, 0);
  const NamedTensors from = ModuleTensors(*bert);
  const NamedTensors to = ModuleTensors(*etc);
  const std::string p = "layers.1.attention.";
  for (const char* query : {"long_query", "global_query"}) {
    EXPECT_TRUE(torch::equal(to.at(absl::StrCat(p, query, ".weight")),
                             from.at(p + "long_query.weight")));
  }
  for (const char* piece : {"l2l", "l2g", "g2g", "g2l"}) {
    EXPECT_TRUE(torch::equal(to.at(absl::StrCat(p, piece, "_key.weight")),
                             from.at(p + "l2l_key.weight")));
    EXPECT_TRUE(torch::equal(to.at(absl::StrCat(p, piece, "_value.bias")),
                             from.at(p + "l2l_value.bias")));
  }
  for (int64_t row = 0; row < 16; ++row) {
    EXPECT_TRUE(torch::equal(to.at("embedding.segment.weight")[row],
                             from.at("embedding.segment.weight")[0]));
  }
  // Truncated normal of deviation 0.5, and zeros.
  const torch::Tensor& fresh = to.at(p + "long_relative.embedding");
  EXPECT_NEAR(fresh.std().item<double>(), 0.44, 0.05);
  EXPECT_EQ(to.at(p + "long_relative.bias").abs().max().item<double>(), 0);

  ASSERT_TRUE(WriteImport(*plan, 3, directory_.File("again")).ok());
  EXPECT_TRUE(SameTensors(to, ModuleTensors(*Load(directory_.File("again")))));
  ASSERT_TRUE(ImportWeights({.source = source, .lift = true, .seed = 3},
                            directory_.File("at once"))
                  .ok());
  EXPECT_TRUE(
      SameTensors(to, ModuleTensors(*Load(directory_.File("at once")))));
  // Another seed, other random numbers.
  ASSERT_TRUE(WriteImport(*plan, 4, directory_.File("other")).ok());
  const EtcModel other = Load(directory_.File("other"));
  EXPECT_FALSE(torch::equal(
      ModuleTensors(*other).at(p + "long_relative.embedding"), fresh));
  EXPECT_TRUE(torch::equal(ModuleTensors(*other).at(p + "l2l_key.weight"),
                           from.at(p + "l2l_key.weight")));
}

// A program's own random numbers do not begin anew with an import.
TEST_F(ConvertTest, LeavesTheGeneratorAsItWas) {
  const std::string source = Write(RandomModel(BertOf()), "ours");
  torch::manual_seed(5);
  const torch::Tensor expected = torch::rand({2});
  torch::manual_seed(5);
  ASSERT_TRUE(
      ImportWeights({.source = source, .lift = true}, directory_.File("lifted"))
          .ok());
  EXPECT_TRUE(torch::equal(torch::rand({2}), expected));
}

TEST_F(ConvertTest, FillsAModelAndSaysWith) {
  EtcModel bert = RandomModel(BertOf());
  const std::string source = directory_.File("bert");
  ASSERT_TRUE(
      ExportWeights(Write(bert, "ours"), ExportFormat::kTensorFlow, source)
          .ok());
  EtcModel same(bert->config());
  auto report = LoadEncoderWeights(source, same);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(SameTensors(ModuleTensors(*same), ModuleTensors(*bert)));
  EXPECT_EQ(report->loaded.size(), ModuleTensors(*bert).size());
  EXPECT_THAT(report->missing, IsEmpty());
  EXPECT_THAT(report->unexpected, IsEmpty());
  EXPECT_THAT(report->converted, IsEmpty());

  EtcModel lifted(LiftedConfig(bert->config()));
  report = LoadEncoderWeights(source, lifted);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(torch::equal(
      ModuleTensors(*lifted).at("layers.1.attention.g2l_key.weight"),
      ModuleTensors(*bert).at("layers.1.attention.l2l_key.weight")));
  EXPECT_THAT(report->missing,
              Contains("layers.0.attention.long_relative.embedding"));
  EXPECT_THAT(report->unexpected,
              ElementsAre("bert/embeddings/position_embeddings"));
  EXPECT_EQ(LoadEncoderWeights(directory_.File("none"), same).status().code(),
            absl::StatusCode::kNotFound);
}

// A lifted BERT whose tokens are all global, with relative positions of no
// effect, is BERT without positions.
TEST_F(ConvertTest, LiftedBertComputesWhatBertComputesWithoutPositions) {
  EtcModel bert = RandomModel(BertOf());
  {
    const torch::NoGradGuard no_grad;
    bert->named_parameters()["embedding.global_position.weight"].zero_();
    // Both rows the same: lifting takes row 0 for every segment.
    torch::Tensor segments =
        bert->named_parameters()["embedding.segment.weight"];
    segments[1].copy_(segments[0]);
  }
  const auto plan = PlanImport({.source = Write(bert, "ours"), .lift = true});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(WriteImport(*plan, 3, directory_.File("lifted")).ok());
  EtcModel etc = Load(directory_.File("lifted"));
  const EtcInput input = BertInput(torch::randint(29, {2, 9}, torch::kInt64));
  EXPECT_TRUE(IsClose(etc->forward(input).global_output,
                      bert->forward(input).global_output, 1e-6));
}

// --- Dtypes and rows --------------------------------------------------------

TEST_F(ConvertTest, ReadsHalfPrecision) {
  EtcModel model = RandomModel(ToyConfig());
  const std::string ours = Write(model, "ours");
  NamedTensors halves;
  for (const auto& [name, tensor] : ModuleTensors(*model, "encoder.")) {
    halves[name] = tensor.to(torch::kBFloat16);
  }
  ASSERT_TRUE(WriteTensors(ours + "/model.safetensors", halves, {}).ok());
  EtcModel loaded = Load(ours);
  for (const auto& [name, tensor] : ModuleTensors(*loaded, "encoder.")) {
    EXPECT_TRUE(torch::equal(tensor, halves.at(name).to(torch::kFloat32)));
  }
}

TEST_F(ConvertTest, SkipsTheRowsOfRobertasPadding) {
  EtcModel model = RandomModel(BertOf());
  const std::string source = directory_.File("roberta");
  ASSERT_TRUE(
      ExportWeights(Write(model, "ours"), ExportFormat::kSafetensors, source)
          .ok());
  NamedTensors tensors = *TensorsInStyle(ModuleTensors(*model), model->config(),
                                         NameStyle::kHuggingFace);
  torch::Tensor& positions =
      tensors.at("bert.embeddings.position_embeddings.weight");
  positions = torch::cat({torch::full({2, 12}, 99.0), positions});
  ASSERT_TRUE(WriteTensors(source + "/model.safetensors", tensors, {}).ok());
  nlohmann::json json =
      nlohmann::json::parse(*ReadFile(source + "/config.json"));
  json["model_type"] = "roberta";
  json["max_position_embeddings"] = 18;
  json["pad_token_id"] = 1;
  ASSERT_TRUE(WriteFileAtomically(source + "/config.json", json.dump()).ok());
  EXPECT_TRUE(SameTensors(ModuleTensors(*model), ModuleTensors(*Load(source))));
}

// --- Refusals ---------------------------------------------------------------

TEST_F(ConvertTest, LeavesTheModelAsItWasWhenAFileIsDamaged) {
  EtcModel model = RandomModel(ToyConfig());
  const std::string there = directory_.File("there");
  ASSERT_TRUE(
      ExportWeights(Write(model, "ours"), ExportFormat::kTensorFlow, there)
          .ok());
  const std::string data = there + "/model.ckpt.data-00000-of-00001";
  std::string bytes = *ReadFile(data);
  bytes[bytes.size() - 1] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(data, bytes).ok());
  const auto file = OpenWeights(there);
  ASSERT_TRUE(file.ok()) << file.status();
  EtcModel other(ToyConfig());
  const NamedTensors encoder = ModuleTensors(*other);
  NamedTensors before;
  for (const auto& [name, tensor] : encoder) {
    before[name] = tensor.detach().clone();
  }
  const auto plan = PlanWeights(file->source, ToyConfig());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(
      CopyTensors(TensorReader(file->tensors), plan->Copies(), encoder).ok());
  EXPECT_TRUE(SameTensors(before, encoder));
}

TEST_F(ConvertTest, RefusesToOverwrite) {
  const std::string ours = Write(RandomModel(ToyConfig()), "ours");
  const auto plan = PlanImport({.source = ours});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(WriteImport(*plan, 1, ours).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(
      ExportWeights(ours, ExportFormat::kSafetensors, ours).status().code(),
      absl::StatusCode::kAlreadyExists);
  for (const EtcConfig& config : {BertOf(), ToyConfig()}) {
    const std::string other =
        directory_.File(absl::StrCat("other", config.vocab_size));
    const std::string source =
        Write(RandomModel(config), absl::StrCat("source", config.vocab_size));
    ASSERT_TRUE(ExportWeights(source, ExportFormat::kTensorFlow, other).ok());
    EXPECT_EQ(
        ExportWeights(source, ExportFormat::kTensorFlow, other).status().code(),
        absl::StatusCode::kAlreadyExists);
  }
}

// They would be replaced, or read in the place of what is written.
TEST_F(ConvertTest, RefusesADirectoryWithFilesThatReadersLookFor) {
  const std::string ours = Write(RandomModel(BertOf()), "ours");
  int64_t number = 0;
  for (const char* name :
       {"vocab.txt", "tokenizer.json", "tokenizer_config.json", "merges.txt",
        "spiece.model", "dict.de.txt", "config.json", "etc_config.json",
        "pytorch_model.bin", "bert_model.ckpt.index", "1_Pooling/config.json",
        "run_config.json", "encoder_decoder.json"}) {
    const std::string target =
        directory_.File(absl::StrCat("target", ++number));
    std::filesystem::create_directories(target + "/1_Pooling");
    const std::string path = absl::StrCat(target, "/", name);
    ASSERT_TRUE(WriteFileAtomically(path, "mine").ok());
    for (const absl::Status& status :
         {ImportWeights({.source = ours}, target),
          ExportWeights(ours, ExportFormat::kTensorFlow, target).status(),
          ExportWeights(ours, ExportFormat::kSafetensors, target).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << name;
      EXPECT_THAT(status.message(),
                  AllOf(HasSubstr(path + " is there already"),
                        HasSubstr("command that was stopped has left")));
    }
    EXPECT_EQ(*ReadFile(path), "mine");
    EXPECT_FALSE(std::filesystem::exists(target + "/model.safetensors"));
  }
  const std::string free = directory_.File("free");
  std::filesystem::create_directory(free);
  directory_.Write("free/README.md", "mine");
  EXPECT_TRUE(ImportWeights({.source = ours}, free).ok());
  EXPECT_EQ(*ReadFile(free + "/README.md"), "mine");
}

TEST_F(ConvertTest, AnImportThatWasStoppedIsRepeatedInAnEmptyDirectory) {
  const std::string ours = Write(RandomModel(BertOf()), "ours");
  std::string pieces;
  for (int i = 0; i < 29; ++i) {
    absl::StrAppend(&pieces, "w", i, "\n");
  }
  directory_.Write("ours/vocab.txt", pieces);
  const std::string target = directory_.File("target");
  RecordedOperations operations(directory_.path());
  operations.failing_call = "rename to target/etc_config.json";
  {
    const ScopedFileOperations scope(&operations);
    EXPECT_FALSE(ImportWeights({.source = ours}, target).ok());
  }
  EXPECT_THAT(ImportWeights({.source = ours}, target).message(),
              HasSubstr("is there already: name a new directory, or remove"));
  std::filesystem::remove_all(target);
  const absl::Status again = ImportWeights({.source = ours}, target);
  EXPECT_TRUE(again.ok()) << again;
}

TEST_F(ConvertTest, TakesTheVocabularyThatIsNamed) {
  const std::string source = Write(RandomModel(BertOf()), "source");
  std::string pieces;
  std::string others;
  for (int i = 0; i < 29; ++i) {
    absl::StrAppend(&pieces, "w", i, "\n");
    absl::StrAppend(&others, "v", i, "\n");
  }
  directory_.Write("source/vocab.txt", pieces);
  directory_.Write("source/tokenizer_config.json",
                   R"({"do_lower_case": true, "strip_accents": false})");
  const std::string target = directory_.File("target");
  const std::string named = directory_.Write("words.txt", others);
  const absl::Status imported =
      ImportWeights({.source = source, .vocabulary = named}, target);
  ASSERT_TRUE(imported.ok()) << imported;
  EXPECT_EQ(*ReadFile(target + "/vocab.txt"), others);
  EXPECT_EQ(FindTokenizer(target)->wordpiece,
            (WordPieceOptions{.strip_accents = false}));
  // The tokenizer of the source need not be usable then.
  directory_.Write("source/tokenizer_config.json",
                   R"({"do_lower_case": "no"})");
  EXPECT_FALSE(PlanImport({.source = source}).ok());
  EXPECT_TRUE(PlanImport({.source = source, .vocabulary = named}).ok());
  EXPECT_EQ(
      PlanImport({.source = source, .vocabulary = named + "x"}).status().code(),
      absl::StatusCode::kNotFound);
}

// Weights come last: a directory that has them is whole.
TEST_F(ConvertTest, LeavesNoWeightsWhereAnImportFailed) {
  const std::string ours = Write(RandomModel(ToyConfig()), "ours");
  const std::string target = directory_.File("target");
  RecordedOperations operations(directory_.path());
  operations.failing_call = "rename to target/etc_config.json";
  {
    const ScopedFileOperations scope(&operations);
    const absl::Status status = ImportWeights({.source = ours}, target);
    EXPECT_THAT(status.message(), HasSubstr("Input/output error"));
  }
  EXPECT_FALSE(std::filesystem::exists(target + "/model.safetensors"));
  const absl::Status again = ImportWeights({.source = ours}, target);
  EXPECT_TRUE(again.ok()) << again;
  EXPECT_TRUE(std::filesystem::exists(target + "/model.safetensors"));
}

TEST_F(ConvertTest, RefusesWhatOthersCannotCompute) {
  EtcConfig config = BertOf();
  config.hidden_act = "gelu_erf";
  const std::string ours = Write(RandomModel(config), "ours");
  EXPECT_THAT(
      ExportWeights(ours, ExportFormat::kTensorFlow, directory_.File("a"))
          .status()
          .ToString(),
      AllOf(HasSubstr("gelu_erf"), HasSubstr("--format safetensors")));
  // Like a BERT of HuggingFace once it is lifted.
  ASSERT_TRUE(
      ImportWeights({.source = ours, .lift = true}, directory_.File("lifted"))
          .ok());
  EXPECT_THAT(ExportWeights(directory_.File("lifted"),
                            ExportFormat::kTensorFlow, directory_.File("c"))
                  .status()
                  .ToString(),
              AllOf(HasSubstr("gelu_erf"), HasSubstr("Google's files"),
                    HasSubstr("--format huggingface writes it")));
  EXPECT_TRUE(
      ExportWeights(ours, ExportFormat::kSafetensors, directory_.File("b"))
          .ok());
}

TEST_F(ConvertTest, RefusesPreLayerNormInBertsFormats) {
  EtcConfig config = BertOf();
  config.sublayer = "pre_norm";
  for (const bool has_final_norm : {false, true}) {
    config.final_layer_norm = has_final_norm;
    const std::string name = absl::StrCat("ours", has_final_norm);
    const std::string ours = Write(RandomModel(config), name);
    for (const ExportFormat format :
         {ExportFormat::kTensorFlow, ExportFormat::kSafetensors}) {
      EXPECT_THAT(ExportWeights(ours, format, directory_.File(name + "-there"))
                      .status()
                      .ToString(),
                  HasSubstr("has LayerNorm behind each block only, but this "
                            "model has sublayer \"pre_norm\"; --format "
                            "huggingface writes it"));
    }
  }
}

TEST_F(ConvertTest, RefusesToExportAlphasAndOmegas) {
  for (const char* sublayer : {"rezero", "admin"}) {
    for (const bool is_bert : {false, true}) {
      EtcConfig config = is_bert ? BertOf() : ToyConfig();
      config.sublayer = sublayer;
      const std::string name = absl::StrCat(sublayer, is_bert);
      const std::string ours = Write(RandomModel(config), name);
      for (const ExportFormat format :
           {ExportFormat::kTensorFlow, ExportFormat::kSafetensors}) {
        const absl::Status status =
            ExportWeights(ours, format, directory_.File(name + "-there"))
                .status();
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(
            std::string(status.message()),
            AllOf(HasSubstr(is_bert ? " has LayerNorm behind each block only"
                                    : "official ETC has LayerNorm before or "
                                      "behind each block only"),
                  HasSubstr(absl::StrCat("this model has sublayer \"", sublayer,
                                         "\""))));
      }
      // Ours hold them.
      const EtcModel again = EtcModel(config);
      const auto report = LoadEncoderWeights(ours, again);
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_TRUE(report->missing.empty());
      EXPECT_TRUE(report->unexpected.empty());
    }
  }
}

TEST_F(ConvertTest, RefusesBertWhoseStreamsDiffer) {
  EtcConfig config = BertOf();
  config.has_long_tokens = true;
  EtcModel model = RandomModel(config);
  {
    const torch::NoGradGuard no_grad;
    model->named_parameters()["layers.0.long_attention_norm.bias"].add_(1);
  }
  EXPECT_THAT(TensorsInStyle(ModuleTensors(*model), model->config(),
                             NameStyle::kHuggingFace)
                  .status()
                  .ToString(),
              AllOf(HasSubstr("attention.output.LayerNorm.bias"),
                    HasSubstr("differs")));
}

TEST_F(ConvertTest, RefusesToLiftEtc) {
  EXPECT_THAT(PlanImport({.source = Write(RandomModel(ToyConfig()), "ours"),
                          .lift = true})
                  .status()
                  .ToString(),
              HasSubstr("is ETC already"));
}

TEST_F(ConvertTest, RefusesAVocabularyThatItCannotUse) {
  const std::string source = Write(RandomModel(ToyConfig()), "source");
  const std::string target = directory_.File("target");
  directory_.Write("source/vocab.txt", "[PAD]\n");
  directory_.Write("source/tokenizer_config.json",
                   R"({"do_basic_tokenize": false})");
  const absl::Status status = ImportWeights({.source = source}, target);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("do_basic_tokenize is false"));
  EXPECT_FALSE(std::filesystem::exists(target));
}

TEST_F(ConvertTest, NeedsAConfiguration) {
  const std::string ours = Write(RandomModel(ToyConfig()), "ours");
  std::filesystem::remove(ours + "/etc_config.json");
  EXPECT_THAT(OpenWeights(ours).status().ToString(),
              AllOf(HasSubstr(ours), HasSubstr("no etc_config.json")));
  const EtcConfig config = ToyConfig();
  EXPECT_TRUE(OpenWeights(ours, &config).ok());
}

// --- The residual mode ------------------------------------------------------

TEST_F(ConvertTest, TakesTheResidualModeThatTheUserKnows) {
  const auto plan = PlanImport({.source = Write(RandomModel(BertOf()), "ours"),
                                .residual_attention = "mean"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.residual_attention, "mean");
}

// --- Gates -------------------------------------------------------------------

EtcConfig InMode(EtcConfig config, const std::string& mode,
                 double gate_init = 0) {
  config.residual_attention = mode;
  config.residual_gate_init = gate_init;
  return config;
}

void SetGates(const EtcModel& model, double value) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->named_parameters()) {
    if (IsGate(parameter.key())) {
      parameter.value().fill_(value);
    }
  }
}

// A model of this configuration with the weights at `path`, and its notices.
std::pair<EtcModel, std::vector<std::string>> Filled(const std::string& path,
                                                     const EtcConfig& config) {
  torch::manual_seed(3);
  EtcModel model(config);
  model->eval();
  const auto report = LoadEncoderWeights(path, model);
  EXPECT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->missing, IsEmpty());
  return {model, report->notices};
}

// Gates at 0 compute what off does, and at 1 what sum does, to the bit.
TEST_F(ConvertTest, GatesBeginAsAModeThatTheWeightsWereTrainedWith) {
  for (const auto& [mode, initial] :
       {std::pair("off", 0.0), std::pair("sum", 1.0)}) {
    EtcModel model = RandomModel(InMode(ToyConfig(), mode));
    const std::string ours = Write(model, absl::StrCat("etc-", mode));
    const std::string official = directory_.File(absl::StrCat("tf-", mode));
    ASSERT_TRUE(ExportWeights(ours, ExportFormat::kTensorFlow, official).ok());
    for (const std::string& path : {ours, official}) {
      auto [gated, notices] =
          Filled(path, InMode(ToyConfig(), "gate", initial));
      EXPECT_THAT(notices, ElementsAre(HasSubstr("have no gates")));
      EXPECT_EQ(ModuleTensors(*gated)
                    .at("layers.1.attention.l2l_gate")[0]
                    .item<double>(),
                initial);
      const EtcOutput expected = model->forward(ToyInput());
      const EtcOutput output = gated->forward(ToyInput());
      EXPECT_TRUE(torch::equal(output.long_output, expected.long_output));
      EXPECT_TRUE(torch::equal(output.global_output, expected.global_output));
    }

    EtcModel bert = RandomModel(BertOf(mode));
    const std::string source = Write(bert, absl::StrCat("bert-", mode));
    auto [gated, notices] = Filled(source, InMode(BertOf(), "gate", initial));
    const EtcInput input = BertInput(torch::randint(29, {2, 9}, torch::kInt64));
    EXPECT_TRUE(torch::equal(gated->forward(input).global_output,
                             bert->forward(input).global_output));
  }
}

TEST_F(ConvertTest, OurFilesKeepGates) {
  EtcModel model = RandomModel(InMode(ToyConfig(), "gate", 0.25));
  const std::string ours = Write(model, "ours");
  const std::string copy = directory_.File("copy");
  ASSERT_TRUE(ImportWeights({.source = ours}, copy).ok());
  EXPECT_TRUE(SameTensors(ModuleTensors(*model), ModuleTensors(*Load(copy))));
  EXPECT_EQ(*ReadFile(ours + "/etc_config.json"),
            *ReadFile(copy + "/etc_config.json"));
  const auto [loaded, notices] = Filled(copy, model->config());
  EXPECT_TRUE(SameTensors(ModuleTensors(*model), ModuleTensors(*loaded)));
  EXPECT_THAT(notices, IsEmpty());

  // Another mode, also where only the configuration says so.
  EtcModel sum(InMode(ToyConfig(), "sum"));
  const auto report = LoadEncoderWeights(ours, sum);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->unexpected.size(), 4u);
  EXPECT_THAT(report->notices, ElementsAre(HasSubstr("are left out")));
  ASSERT_TRUE(WriteFileAtomically(ours + "/etc_config.json",
                                  EtcConfigToJson(InMode(ToyConfig(), "sum")))
                  .ok());
  const auto plan = PlanImport({.source = ours});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.residual_attention, "sum");
  EXPECT_EQ(plan->plan.dropped.size(), 4u);
  EXPECT_THAT(plan->plan.notices, ElementsAre(HasSubstr("are left out")));
  EXPECT_TRUE(SameTensors(ModuleTensors(*Load(ours)), ModuleTensors(*sum)));
}

TEST_F(ConvertTest, ImportsIntoAModeWithItsNumber) {
  const std::string ours = Write(RandomModel(ToyConfig()), "ours");
  auto plan = PlanImport({.source = ours, .residual_attention = "gate=0.5"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->plan.NumNewGates(), 4);
  EXPECT_EQ(plan->plan.NumFresh(), 0);
  const std::string gated = directory_.File("gated");
  ASSERT_TRUE(WriteImport(*plan, 1, gated).ok());
  EtcModel loaded = Load(gated);
  EXPECT_EQ(loaded->config().residual_gate_init, 0.5);
  EXPECT_TRUE(
      torch::equal(ModuleTensors(*loaded).at("layers.1.attention.g2l_gate"),
                   torch::full({2}, 0.5)));

  plan = PlanImport({.source = ours, .residual_attention = "decay=0.95"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.residual_decay, 0.95);
  EXPECT_THAT(PlanImport({.source = ours, .residual_attention = "gate=x"})
                  .status()
                  .ToString(),
              HasSubstr("\"gate=x\""));
  EXPECT_THAT(PlanImport({.source = ours, .residual_attention = "decay=1e-5"})
                  .status()
                  .ToString(),
              AllOf(HasSubstr(ours), HasSubstr("residual_decay"),
                    HasSubstr("2 layers")));
}

TEST_F(ConvertTest, LiftsGatesOfBert) {
  EtcModel bert = RandomModel(BertOf("gate"));
  const std::string lifted = directory_.File("lifted");
  ASSERT_TRUE(
      ImportWeights({.source = Write(bert, "ours"), .lift = true}, lifted)
          .ok());
  EtcModel etc = Load(lifted);
  EXPECT_EQ(etc->config().residual_attention, "gate");
  const std::string layer = "layers.1.attention.";
  for (const char* block : {"g2g", "g2l", "l2g", "l2l"}) {
    EXPECT_TRUE(torch::equal(
        ModuleTensors(*etc).at(absl::StrCat(layer, block, "_gate")),
        ModuleTensors(*bert).at(layer + "g2g_gate")));
  }
}

// Other forms have no place for gates, but modes that compute the same.
TEST_F(ConvertTest, ExportsGatesAsTheModeThatTheyCompute) {
  for (const bool is_bert : {false, true}) {
    EtcModel model =
        RandomModel(InMode(is_bert ? BertOf() : ToyConfig(), "gate"));
    const std::string kind = is_bert ? "bert" : "etc";
    for (const ExportFormat format :
         {ExportFormat::kTensorFlow, ExportFormat::kSafetensors}) {
      const std::string there =
          absl::StrCat(kind, format == ExportFormat::kTensorFlow);
      const auto refused = ExportWeights(Write(model, kind), format,
                                         directory_.File(there + "-refused"));
      EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(refused.status().message()),
                  AllOf(HasSubstr("only files of RealETC have gates"),
                        HasSubstr("--format huggingface writes it")));
      EXPECT_FALSE(
          std::filesystem::exists(directory_.File(there + "-refused")));
      for (const auto& [value, mode] :
           {std::pair(0.0, "off"), std::pair(1.0, "sum")}) {
        EtcModel plain =
            RandomModel(InMode(is_bert ? BertOf() : ToyConfig(), "gate"));
        SetGates(plain, value);
        const std::string source = Write(plain, absl::StrCat(kind, mode));
        const std::string target = directory_.File(absl::StrCat(there, mode));
        const auto written = ExportWeights(source, format, target);
        ASSERT_TRUE(written.ok()) << written.status();
        EtcModel loaded = Load(target);
        EXPECT_EQ(loaded->config().residual_attention, mode);
        const EtcInput input =
            is_bert ? BertInput(torch::arange(9).unsqueeze(0)) : ToyInput();
        EXPECT_TRUE(torch::equal(plain->forward(input).global_output,
                                 loaded->forward(input).global_output));
      }
    }
  }
}

// BERT's configuration has fields of ours for it.
TEST_F(ConvertTest, ExportsDecayWithItsNumber) {
  for (EtcConfig config : {InMode(ToyConfig(), "decay"), BertOf("decay")}) {
    config.residual_decay = 0.75;
    const std::string kind = IsBert(config) ? "bert" : "etc";
    const std::string ours = Write(RandomModel(config), kind);
    for (const ExportFormat format :
         {ExportFormat::kTensorFlow, ExportFormat::kSafetensors}) {
      const std::string there = directory_.File(
          absl::StrCat(kind, "-there", format == ExportFormat::kTensorFlow));
      ASSERT_TRUE(ExportWeights(ours, format, there).ok());
      EXPECT_EQ(Load(there)->config().residual_attention, "decay");
      EXPECT_EQ(Load(there)->config().residual_decay, 0.75);
    }
  }
}

}  // namespace
}  // namespace etc
