// The heads of pre-training through every format and back, to the bit, since
// only their place changes; lifted; refused where they are damaged; and files
// with random damage. Which tensor goes where is tested with head_plan_test.
#include "etc/weights/pretraining_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "etc/weights/compare.h"
#include "etc/weights/convert.h"
#include "etc/weights/import_plan.h"
#include "etc/weights/source_config.h"
#include "nlohmann/json.hpp"
#include "tests/etc/weights/random_model.h"
#include "tests/support/mutation.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using enum PretrainingHead;

constexpr char kTable[] = "bert.embeddings.word_embeddings.weight";

// All heads, or those of `heads`.
NamedTensors RandomHeads(const EtcConfig& config,
                         const std::vector<PretrainingHead>& heads = {
                             kMlm, kPooler, kNsp, kCpc}) {
  torch::manual_seed(11);
  NamedTensors tensors;
  for (const PretrainingParameter& parameter : PretrainingParameters(config)) {
    if (std::find(heads.begin(), heads.end(), parameter.head) != heads.end()) {
      tensors[parameter.parameter.name] =
          torch::randn(parameter.parameter.shape);
    }
  }
  return tensors;
}

// The heads in a file.
NamedTensors HeadsIn(const std::string& path) {
  const auto file = OpenWeights(path);
  EXPECT_TRUE(file.ok()) << file.status();
  const auto plan = PlanHeads(file->source, file->source.config);
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto heads = ReadHeads(*file, *plan);
  EXPECT_TRUE(heads.ok()) << heads.status();
  return heads.ok() ? *std::move(heads) : NamedTensors();
}

class PretrainingHeadsTest : public testing::Test {
 protected:
  std::string Write(const EtcModel& model, const NamedTensors& heads,
                    const std::string& name = "ours") {
    WriteCheckpoint(directory_.File(name), model, heads);
    return directory_.File(name);
  }

  // A BERT with all heads in HuggingFace's form, changed by `change`.
  template <typename Change>
  std::string WriteHuggingFace(const Change& change) {
    EtcModel bert = RandomModel(BertOf());
    const std::string there = directory_.File("hugging_face");
    EXPECT_TRUE(ExportWeights(Write(bert, RandomHeads(BertOf())),
                              ExportFormat::kSafetensors, there)
                    .ok());
    NamedTensors tensors = *TensorsInStyle(ModuleTensors(*bert), bert->config(),
                                           NameStyle::kHuggingFace);
    tensors.merge(
        HeadsInStyle(RandomHeads(BertOf()), BertOf(), NameStyle::kHuggingFace));
    change(&tensors);
    EXPECT_TRUE(WriteTensors(there + "/model.safetensors", tensors, {}).ok());
    return there;
  }

  TemporaryDirectory directory_;
};

// --- There and back ---------------------------------------------------------

TEST_F(PretrainingHeadsTest, ComeBackToTheBitFromEveryFormat) {
  for (const EtcConfig& config : {BertOf(), ToyConfig()}) {
    const NamedTensors heads = RandomHeads(config);
    EtcModel model = RandomModel(config);
    const std::string ours =
        Write(model, heads, absl::StrCat("ours", config.vocab_size));
    for (const ExportFormat format :
         {ExportFormat::kTensorFlow, ExportFormat::kSafetensors}) {
      const std::string there =
          absl::StrCat(ours, format == ExportFormat::kTensorFlow);
      const auto written = ExportWeights(ours, format, there);
      ASSERT_TRUE(written.ok()) << written.status();
      EXPECT_TRUE(SameTensors(HeadsIn(there), heads));
      const auto compared = CompareWeights(there, ours);
      ASSERT_TRUE(compared.ok()) << compared.status();
      EXPECT_THAT(compared->differences, IsEmpty());

      const auto plan = PlanImport({.source = there});
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_THAT(plan->plan.dropped, IsEmpty());
      EXPECT_THAT(plan->heads.found, ElementsAre(kMlm, kPooler, kNsp, kCpc));
      ASSERT_TRUE(WriteImport(*plan, 1, there + "back").ok());
      const auto back = TensorReader::Open(there + "back");
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(back->metadata().at("task"), kPretrainingTask);
      NamedTensors all = heads;
      all.merge(ModuleTensors(*model, "encoder."));
      NamedTensors read;
      for (const std::string& name : back->Names()) {
        read[name] = *back->Read(name);
      }
      EXPECT_TRUE(SameTensors(read, all));
    }
  }
}

TEST_F(PretrainingHeadsTest, EmptyTensorsOfTwoTypesAreCompared) {
  const std::string here = directory_.File("here.safetensors");
  const std::string there = directory_.File("there.safetensors");
  ASSERT_TRUE(WriteTensors(
                  here,
                  {{"same", torch::zeros({0, 2})}, {"x", torch::zeros({0, 2})}},
                  {})
                  .ok());
  ASSERT_TRUE(WriteTensors(there,
                           {{"same", torch::zeros({0, 2})},
                            {"x", torch::zeros({0, 2}, torch::kInt64)}},
                           {})
                  .ok());
  const auto compared = CompareWeights(here, there);
  ASSERT_TRUE(compared.ok()) << compared.status();
  EXPECT_EQ(compared->same, 1);
  ASSERT_EQ(compared->differences.size(), 1u);
  EXPECT_EQ(compared->differences[0].name, "x");
  EXPECT_EQ(compared->differences[0].what, "empty, of another dtype");
}

TEST_F(PretrainingHeadsTest, NumbersOfTwoTypesAreNotTheSame) {
  const std::string here = directory_.File("here.safetensors");
  const std::string there = directory_.File("there.safetensors");
  const torch::Tensor numbers = torch::tensor({3.0, -4.0}, torch::kFloat32);
  ASSERT_TRUE(WriteTensors(here, {{"x", numbers}}, {}).ok());
  ASSERT_TRUE(
      WriteTensors(there, {{"x", numbers.to(torch::kBFloat16)}}, {}).ok());
  const auto compared = CompareWeights(here, there);
  ASSERT_TRUE(compared.ok()) << compared.status();
  EXPECT_EQ(compared->same, 0);
  ASSERT_EQ(compared->differences.size(), 1u);
  EXPECT_EQ(compared->differences[0].what,
            "largest difference 0, norm 5 there, 5 here");
}

TEST_F(PretrainingHeadsTest, TensorsOfOneSideAreNamed) {
  const std::string here = directory_.File("here.safetensors");
  const std::string there = directory_.File("there.safetensors");
  const torch::Tensor one = torch::ones({1});
  ASSERT_TRUE(WriteTensors(here, {{"both", one}, {"mine", one}}, {}).ok());
  ASSERT_TRUE(WriteTensors(there, {{"both", one}, {"other", one}}, {}).ok());
  const auto compared = CompareWeights(here, there);
  ASSERT_TRUE(compared.ok()) << compared.status();
  EXPECT_EQ(compared->same, 1);
  ASSERT_EQ(compared->differences.size(), 2u);
  EXPECT_EQ(compared->differences[0].name, "mine");
  EXPECT_EQ(compared->differences[0].what, "only in " + here);
  EXPECT_EQ(compared->differences[1].name, "other");
  EXPECT_EQ(compared->differences[1].what, "only in " + there);
}

// A model of HuggingFace with and without the prefix, in the older spelling of
// LayerNorms.
TEST_F(PretrainingHeadsTest, PrefixAndSpellingAreNoDifference) {
  const std::string there = WriteHuggingFace([](NamedTensors*) {});
  NamedTensors plain = *TensorsInStyle(ModuleTensors(*RandomModel(BertOf())),
                                       BertOf(), NameStyle::kHuggingFace);
  plain.merge(
      HeadsInStyle(RandomHeads(BertOf()), BertOf(), NameStyle::kHuggingFace));
  NamedTensors renamed;
  for (const auto& [name, tensor] : plain) {
    renamed[absl::StrReplaceAll(absl::StripPrefix(name, "bert."),
                                {{"LayerNorm.weight", "LayerNorm.gamma"},
                                 {"LayerNorm.bias", "LayerNorm.beta"}})] =
        tensor;
  }
  const std::string norm = "encoder.layer.1.output.LayerNorm.gamma";
  ASSERT_TRUE(renamed.contains(norm));
  const std::string here = directory_.File("here.safetensors");
  ASSERT_TRUE(WriteTensors(here, renamed, {}).ok());
  auto compared = CompareWeights(here, there);
  ASSERT_TRUE(compared.ok()) << compared.status();
  EXPECT_THAT(compared->differences, IsEmpty());
  EXPECT_EQ(compared->same, static_cast<int64_t>(plain.size()));
  renamed[norm] = renamed[norm] + 1;
  renamed["odd"] = torch::ones({1});
  ASSERT_TRUE(WriteTensors(here, renamed, {}).ok());
  compared = CompareWeights(here, there);
  ASSERT_TRUE(compared.ok()) << compared.status();
  ASSERT_EQ(compared->differences.size(), 2u);
  EXPECT_EQ(compared->differences[0].name, norm);
  EXPECT_EQ(compared->differences[1].name, "odd");
}

TEST_F(PretrainingHeadsTest, ATensorWithAndWithoutThePrefixIsTwo) {
  const std::string here = directory_.File("here.safetensors");
  const std::string there = directory_.File("there.safetensors");
  NamedTensors tensors = {{kTable, torch::ones({2, 3})},
                          {"bert.pooler.dense.weight", torch::ones({1})},
                          {"pooler.dense.weight", torch::ones({1})}};
  ASSERT_TRUE(WriteTensors(here, tensors, {}).ok());
  tensors["pooler.dense.weight"] = torch::zeros({1});
  ASSERT_TRUE(WriteTensors(there, tensors, {}).ok());
  const auto compared = CompareWeights(here, there);
  ASSERT_TRUE(compared.ok()) << compared.status();
  EXPECT_EQ(compared->same, 2);
  ASSERT_EQ(compared->differences.size(), 1u);
  EXPECT_EQ(compared->differences[0].name, "pooler.dense.weight");
}

// The same weights may compute two functions.
TEST_F(PretrainingHeadsTest, ConfigurationsAreCompared) {
  const std::string here = Write(RandomModel(BertOf()), {}, "here");
  const std::string there = Write(RandomModel(BertOf("sum")), {}, "there");
  const auto compared = CompareWeights(here, there);
  ASSERT_TRUE(compared.ok()) << compared.status();
  EXPECT_THAT(compared->differences, IsEmpty());
  EXPECT_THAT(compared->config_differences,
              ElementsAre("residual_attention: \"sum\" there, \"off\" here"));
  EXPECT_THAT(CompareWeights(here, here)->config_differences, IsEmpty());
}

// Heads of BertForSequenceClassification and BertForQuestionAnswering, also by
// the names of Google's programs.
TEST_F(PretrainingHeadsTest, OfFineTunedModelsComeBackToTheBit) {
  constexpr int64_t kOutputs = 3;
  for (const PretrainingHead head : kTaskHeads) {
    NamedTensors heads = RandomHeads(BertOf(), {kPooler});
    for (const PretrainingParameter& parameter :
         TaskHeadParameters(BertOf(), kOutputs)) {
      if (parameter.head == head) {
        heads[parameter.parameter.name] =
            torch::randn(parameter.parameter.shape);
      }
    }
    const std::string ours =
        Write(RandomModel(BertOf()), heads,
              absl::StrCat("ours", PretrainingHeadDescription(head)));
    for (const ExportFormat format :
         {ExportFormat::kTensorFlow, ExportFormat::kSafetensors}) {
      const std::string there =
          absl::StrCat(ours, format == ExportFormat::kTensorFlow);
      const auto written = ExportWeights(ours, format, there);
      ASSERT_TRUE(written.ok()) << written.status();
      const auto plan = PlanImport({.source = there});
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_THAT(plan->heads.found, ElementsAre(kPooler, head));
      EXPECT_THAT(plan->plan.dropped, IsEmpty());
      const auto read = ReadHeads(*OpenWeights(there), plan->heads);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(SameTensors(*read, heads));
      // ETC has outputs that these heads were not trained on.
      const auto lifted = PlanImport({.source = there, .lift = true});
      ASSERT_TRUE(lifted.ok()) << lifted.status();
      EXPECT_THAT(lifted->heads.found, IsEmpty());
    }
    const auto json = nlohmann::json::parse(*ReadFile(ours + "0/config.json"));
    EXPECT_EQ(json["architectures"][0], head == kClassifier
                                            ? "BertForSequenceClassification"
                                            : "BertForQuestionAnswering");
    EXPECT_EQ(json.value("id2label", nlohmann::json::object()).size(),
              head == kClassifier ? kOutputs : 0);
  }
}

TEST_F(PretrainingHeadsTest, OfFineTunedModelsAreComparedAcrossStyles) {
  NamedTensors heads = RandomHeads(BertOf(), {kPooler});
  heads["head.classifier.weight"] = torch::randn({3, 12});
  heads["head.classifier.bias"] = torch::randn({3});
  const std::string there = directory_.File("there");
  ASSERT_TRUE(ExportWeights(Write(RandomModel(BertOf()), heads),
                            ExportFormat::kSafetensors, there)
                  .ok());
  heads["head.classifier.bias"] = heads["head.classifier.bias"] + 1;
  const auto compared =
      CompareWeights(Write(RandomModel(BertOf()), heads, "other"), there);
  ASSERT_TRUE(compared.ok()) << compared.status();
  ASSERT_EQ(compared->differences.size(), 1u);
  EXPECT_EQ(compared->differences[0].name, "head.classifier.bias");
}

TEST_F(PretrainingHeadsTest, HaveTheLayoutOfOtherCodes) {
  const NamedTensors heads = RandomHeads(ToyConfig());
  const NamedTensors google =
      HeadsInStyle(heads, ToyConfig(), NameStyle::kGoogleBert);
  const NamedTensors other =
      HeadsInStyle(heads, ToyConfig(), NameStyle::kHuggingFace);
  EXPECT_EQ(google.size(), heads.size());
  EXPECT_EQ(other.size(), heads.size());
  // [3, 4], as embeddings are narrower than the encoder.
  const torch::Tensor& transform = heads.at("head.mlm.transform.weight");
  EXPECT_TRUE(
      google.at("cls/predictions/transform/dense/kernel").equal(transform.t()));
  EXPECT_TRUE(
      other.at("cls.predictions.transform.dense.weight").equal(transform));
  EXPECT_TRUE(google.at("bert/pooler/dense/kernel")
                  .equal(heads.at("head.pooler.weight").t()));
  EXPECT_TRUE(google.at("cls/seq_relationship/output_weights")
                  .equal(heads.at("head.nsp.weight")));
  EXPECT_TRUE(google.at("cpc/kernel").equal(heads.at("head.cpc.kernel")));
}

TEST_F(PretrainingHeadsTest, SayOfWhichClassAModelIs) {
  const std::pair<std::vector<PretrainingHead>, const char*> kCases[] = {
      {{}, "BertModel"},
      {{kPooler}, "BertModel"},
      {{kMlm}, "BertForMaskedLM"},
      {{kMlm, kPooler, kNsp}, "BertForPreTraining"}};
  for (const auto& [heads, architecture] : kCases) {
    const std::string name = absl::StrCat("ours", heads.size(), architecture);
    const std::string ours =
        Write(RandomModel(BertOf()), RandomHeads(BertOf(), heads), name);
    ASSERT_TRUE(
        ExportWeights(ours, ExportFormat::kSafetensors, ours + "there").ok());
    const auto json =
        nlohmann::json::parse(*ReadFile(ours + "there/config.json"));
    EXPECT_EQ(json["architectures"], nlohmann::json::array({architecture}));
  }
}

// --- Into a model -----------------------------------------------------------

TEST_F(PretrainingHeadsTest, FillThoseThatAModelHas) {
  const NamedTensors heads = RandomHeads(BertOf(), {kMlm, kPooler});
  const std::string ours = Write(RandomModel(BertOf()), heads);
  const auto file = OpenWeights(ours);
  ASSERT_TRUE(file.ok()) << file.status();
  NamedTensors mine;
  for (const auto& [name, tensor] :
       RandomHeads(BertOf(), {kMlm, kPooler, kNsp})) {
    mine[name] = torch::full_like(tensor, 7);
  }
  const auto plan = FillHeads(*file, BertOf(), mine);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->Messages(),
              ElementsAre("MLM head: found", "pooler: found",
                          "NSP head: not in the file, starts at random"));
  for (const auto& [name, tensor] : mine) {
    EXPECT_TRUE(heads.contains(name) ? tensor.equal(heads.at(name))
                                     : tensor.eq(7).all().item<bool>())
        << name;
  }
}

TEST_F(PretrainingHeadsTest, FillAllOrNothing) {
  const std::string there = WriteHuggingFace([](NamedTensors* tensors) {
    (*tensors)["cls.predictions.decoder.weight"] = tensors->at(kTable) + 1;
  });
  const auto file = OpenWeights(there);
  ASSERT_TRUE(file.ok()) << file.status();
  NamedTensors mine;
  for (const auto& [name, tensor] : RandomHeads(BertOf())) {
    mine[name] = torch::full_like(tensor, 7);
  }
  EXPECT_FALSE(FillHeads(*file, BertOf(), mine).ok());
  for (const auto& [name, tensor] : mine) {
    EXPECT_TRUE(tensor.eq(7).all().item<bool>()) << name;
  }
  mine.erase("head.mlm.norm.bias");
  EXPECT_THROW(
      (void)FillHeads(*OpenWeights(Write(RandomModel(BertOf()),
                                         RandomHeads(BertOf()), "whole")),
                      BertOf(), mine),
      c10::Error);
}

// --- Lifting ----------------------------------------------------------------

TEST_F(PretrainingHeadsTest, LiftingKeepsTheHeadOfMaskedTokens) {
  const NamedTensors heads = RandomHeads(BertOf(), {kMlm, kPooler, kNsp});
  const std::string ours = Write(RandomModel(BertOf()), heads);
  const auto plan = PlanImport({.source = ours, .lift = true});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->heads.found, ElementsAre(kMlm));
  std::vector<std::string> left_out;
  for (const DroppedTensor& tensor : plan->plan.dropped) {
    if (!tensor.head.empty()) {
      left_out.push_back(tensor.name);
    }
  }
  EXPECT_THAT(left_out, ElementsAre("head.nsp.bias", "head.nsp.weight",
                                    "head.pooler.bias", "head.pooler.weight"));
  ASSERT_TRUE(WriteImport(*plan, 1, directory_.File("lifted")).ok());
  EXPECT_TRUE(SameTensors(HeadsIn(directory_.File("lifted")),
                          RandomHeads(BertOf(), {kMlm})));
}

TEST_F(PretrainingHeadsTest, TakeBiasesOfAnotherVocabularyByPiece) {
  const NamedTensors heads = RandomHeads(BertOf(), {kMlm});
  const std::string ours = Write(RandomModel(BertOf()), heads);
  const std::string lifted = directory_.File("lifted");
  directory_.Write("ours/tokenizer.json",
                   R"({"pre_tokenizer": {"type": "ByteLevel"}, "model":
                       {"type": "BPE", "vocab": {"a": 5, "b": 28, "c": 0}}})");
  const absl::Status imported = ImportWeights(
      {.source = ours,
       .lift = true,
       .vocabulary = directory_.Write(
           "x.model", SentencePieceModelOf({"a", "x", "b", "y", "c"}))},
      lifted);
  ASSERT_TRUE(imported.ok()) << imported;
  const torch::Tensor bias = HeadsIn(lifted).at("head.mlm.output_bias");
  const torch::Tensor& from = heads.at("head.mlm.output_bias");
  ASSERT_EQ(bias.size(0), 5);
  EXPECT_EQ(bias[0].item<float>(), from[5].item<float>());
  EXPECT_EQ(bias[1].item<float>(), 0);
  EXPECT_EQ(bias[2].item<float>(), from[28].item<float>());
  EXPECT_EQ(bias[4].item<float>(), from[0].item<float>());
}

TEST_F(PretrainingHeadsTest, StayBehindIfNobodyWantsThem) {
  const std::string ours = Write(RandomModel(BertOf()), RandomHeads(BertOf()));
  const auto plan = PlanImport({.source = ours, .heads = false});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(WriteImport(*plan, 1, directory_.File("bare")).ok());
  const auto reader = TensorReader::Open(directory_.File("bare"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_FALSE(reader->metadata().contains("task"));
  for (const std::string& name : reader->Names()) {
    EXPECT_TRUE(absl::StartsWith(name, "encoder.")) << name;
  }
}

// --- Files of HuggingFace ---------------------------------------------------

TEST_F(PretrainingHeadsTest, TakeWhatIsTiedOnce) {
  const NamedTensors heads = RandomHeads(BertOf());
  const std::string there = WriteHuggingFace([](NamedTensors* tensors) {
    (*tensors)["cls.predictions.decoder.weight"] = tensors->at(kTable);
    (*tensors)["cls.predictions.decoder.bias"] =
        tensors->at("cls.predictions.bias");
    // Older files spell it so.
    for (const auto& [ours, theirs] :
         {std::pair("weight", "gamma"), std::pair("bias", "beta")}) {
      auto norm = tensors->extract(
          absl::StrCat("cls.predictions.transform.LayerNorm.", ours));
      norm.key() = absl::StrCat("cls.predictions.transform.LayerNorm.", theirs);
      tensors->insert(std::move(norm));
    }
  });
  const auto plan = PlanImport({.source = there});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->plan.dropped, IsEmpty());
  ASSERT_TRUE(WriteImport(*plan, 1, directory_.File("back")).ok());
  EXPECT_TRUE(SameTensors(HeadsIn(directory_.File("back")), heads));
}

TEST_F(PretrainingHeadsTest, RefuseADecoderThatIsNotTied) {
  const std::string there = WriteHuggingFace([](NamedTensors* tensors) {
    (*tensors)["cls.predictions.decoder.weight"] = tensors->at(kTable).clone();
    (*tensors)["cls.predictions.decoder.weight"][3][2] += 1e-3;
  });
  const absl::Status status =
      ImportWeights({.source = there}, directory_.File("back"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      status.ToString(),
      AllOf(HasSubstr(there), HasSubstr("cls.predictions.decoder.weight"),
            HasSubstr(kTable), HasSubstr("differs")));
  EXPECT_FALSE(std::filesystem::exists(directory_.File("back")));
  EXPECT_FALSE(
      ExportWeights(there, ExportFormat::kTensorFlow, directory_.File("tf"))
          .ok());
  // The encoder can be had all the same.
  EXPECT_TRUE(
      ImportWeights({.source = there, .heads = false}, directory_.File("back"))
          .ok());
}

TEST_F(PretrainingHeadsTest, RefuseHalfAHead) {
  const std::string there = WriteHuggingFace([](NamedTensors* tensors) {
    tensors->erase("cls.predictions.transform.dense.bias");
  });
  EXPECT_THAT(
      ImportWeights({.source = there}, directory_.File("back")).ToString(),
      AllOf(HasSubstr("its MLM head is incomplete"),
            HasSubstr("\"cls.predictions.transform.dense.bias\"")));
}

// --- Damage -----------------------------------------------------------------

// Random changes of the header and the numbers: a status, or tensors of the
// shapes of the configuration.
TEST_F(PretrainingHeadsTest, AnswerWhateverTheFileIs) {
  const std::string ours = Write(RandomModel(BertOf()), RandomHeads(BertOf()));
  const std::string path = ours + "/model.safetensors";
  const std::string whole = *ReadFile(path);
  Mutator mutator(5);
  int read = 0;
  int refused = 0;
  constexpr int kFiles = 400;
  for (int i = 0; i < kFiles; ++i) {
    // Mostly the header, which is but a part of the file.
    const size_t header = i % 4 == 0 ? whole.size() : size_t{6000};
    std::string bytes =
        mutator.Mutate(whole.substr(0, header), {"head.mlm.", "decoder"}) +
        whole.substr(std::min(header, whole.size()));
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
    const auto file = OpenWeights(ours);
    if (!file.ok()) {
      ++refused;
      continue;
    }
    const auto plan = PlanHeads(file->source, file->source.config);
    if (!plan.ok()) {
      EXPECT_THAT(plan.status().ToString(), HasSubstr(ours));
      ++refused;
      continue;
    }
    const auto heads = ReadHeads(*file, *plan);
    ASSERT_TRUE(heads.ok()) << heads.status();
    EXPECT_EQ(heads->size(), plan->steps.size());
    ++read;
  }
  EXPECT_GT(read, kFiles / 50);
  EXPECT_GT(refused, kFiles / 10);
}

}  // namespace
}  // namespace etc
