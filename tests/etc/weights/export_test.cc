// Exports and imports of HuggingFace's models beside BERT's encoder: RoBERTa by
// its own names, positions and heads; classifiers of texts, tokens and choices;
// labels and other fields. Models that cannot be expressed there are refused,
// as are weights that are infinite or not a number, and a dry run refuses the
// same. tests/hugging_face_exports.py holds the outputs against HuggingFace's
// code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "etc/weights/byte_level_files.h"
#include "etc/weights/compare.h"
#include "etc/weights/convert.h"
#include "etc/weights/import_plan.h"
#include "etc/weights/pretraining_heads.h"
#include "etc/weights/pretraining_parameters.h"
#include "etc/weights/roberta_vocabulary.h"
#include "nlohmann/json.hpp"
#include "tests/etc/weights/random_model.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;

using enum PretrainingHead;

NamedTensors RandomHeads(const EtcConfig& config,
                         const std::vector<PretrainingHead>& heads,
                         int64_t outputs = 3) {
  torch::manual_seed(5);
  NamedTensors tensors;
  for (const auto& parameters :
       {PretrainingParameters(config), TaskHeadParameters(config, outputs)}) {
    for (const PretrainingParameter& parameter : parameters) {
      if (std::find(heads.begin(), heads.end(), parameter.head) !=
          heads.end()) {
        tensors[parameter.parameter.name] =
            torch::randn(parameter.parameter.shape);
      }
    }
  }
  return tensors;
}

EtcConfig ExactBert() {
  EtcConfig config = BertOf();
  config.hidden_act = "gelu_erf";
  return config;
}

NamedTensors TensorsIn(const std::string& directory) {
  const auto reader = TensorReader::Open(directory);
  EXPECT_TRUE(reader.ok()) << reader.status();
  NamedTensors tensors;
  for (const std::string& name : reader->Names()) {
    tensors[name] = *reader->Read(name);
  }
  return tensors;
}

nlohmann::json ConfigIn(const std::string& directory) {
  return nlohmann::json::parse(*ReadFile(directory + "/config.json"));
}

class ExportTest : public testing::Test {
 protected:
  // Our checkpoint directory of a random model.
  std::string WriteOurs(const EtcConfig& config, const NamedTensors& heads,
                        const HuggingFaceFields& fields,
                        const std::string& name = "ours") {
    const std::string directory = directory_.File(name);
    EtcModel model = RandomModel(config);
    WriteCheckpoint(directory, model);
    NamedTensors tensors = ModuleTensors(*model, "encoder.");
    tensors.insert(heads.begin(), heads.end());
    EXPECT_TRUE(WriteTensors(directory + "/model.safetensors", tensors,
                             MetadataOf(fields))
                    .ok());
    return directory;
  }

  // The same, exported to HuggingFace.
  std::string WriteTheirs(const EtcConfig& config, const NamedTensors& heads,
                          const HuggingFaceFields& fields) {
    const std::string there = directory_.File("there");
    const auto written = ExportWeights(WriteOurs(config, heads, fields),
                                       ExportFormat::kSafetensors, there);
    EXPECT_TRUE(written.ok()) << written.status();
    return there;
  }

  void ChangeConfig(const std::string& directory,
                    const nlohmann::json& changes) {
    nlohmann::json config = ConfigIn(directory);
    config.update(changes);
    ASSERT_TRUE(
        WriteFileAtomically(directory + "/config.json", config.dump()).ok());
  }
  void ChangeTensors(const std::string& directory, const NamedTensors& changes,
                     const std::vector<std::string>& removed = {}) {
    NamedTensors tensors = TensorsIn(directory);
    for (const auto& [name, tensor] : changes) {
      tensors[name] = tensor;
    }
    for (const std::string& name : removed) {
      tensors.erase(name);
    }
    ASSERT_TRUE(
        WriteTensors(directory + "/model.safetensors", tensors, {}).ok());
  }

  // Imports, which must take all tensors, and exports again.
  std::string ThereAndBack(const std::string& there) {
    const std::string ours = directory_.File("imported");
    const auto plan = PlanImport({.source = there});
    EXPECT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(plan->plan.dropped.empty());
    const absl::Status written = WriteImport(*plan, 1, ours);
    EXPECT_TRUE(written.ok()) << written;
    const std::string back = directory_.File("back");
    const auto exported = ExportWeights(ours, ExportFormat::kSafetensors, back);
    EXPECT_TRUE(exported.ok()) << exported.status();
    return back;
  }

  std::string ExportError(const std::string& source, ExportFormat format) {
    return ExportWeights(source, format, directory_.File("refused"))
        .status()
        .ToString();
  }

  void Remove(const std::string& name) {
    std::filesystem::remove_all(directory_.File(name));
  }

  TemporaryDirectory directory_;
};

// --- RoBERTa ----------------------------------------------------------------

TEST_F(ExportTest, WritesRobertaByItsOwnNames) {
  const NamedTensors heads = RandomHeads(BertOf(), {kMlm, kPooler});
  const std::string there =
      WriteTheirs(ExactBert(), heads, {.model_type = "roberta"});
  const nlohmann::json config = ConfigIn(there);
  EXPECT_EQ(config["model_type"], "roberta");
  EXPECT_EQ(config["architectures"][0], "RobertaForMaskedLM");
  EXPECT_EQ(config["pad_token_id"], 1);
  EXPECT_EQ(config["max_position_embeddings"], 18);
  EXPECT_EQ(config["hidden_act"], "gelu");
  const NamedTensors tensors = TensorsIn(there);
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(absl::StartsWith(name, "roberta.") ||
                absl::StartsWith(name, "lm_head."))
        << name;
  }
  for (const char* name :
       {"lm_head.dense.weight", "lm_head.layer_norm.bias", "lm_head.bias",
        "roberta.pooler.dense.weight",
        "roberta.encoder.layer.1.attention.output.LayerNorm.weight"}) {
    EXPECT_THAT(tensors, Contains(Key(name)));
  }
  const torch::Tensor& positions =
      tensors.at("roberta.embeddings.position_embeddings.weight");
  EXPECT_TRUE(
      torch::equal(positions.slice(0, 2),
                   TensorsIn(directory_.File("ours"))
                       .at("encoder.embedding.global_position.weight")));
  const std::string back = ThereAndBack(there);
  EXPECT_TRUE(SameTensors(TensorsIn(back), tensors));
  EXPECT_EQ(ConfigIn(back), config);
}

TEST_F(ExportTest, WritesRobertaUnderTheNameThatItCameWith) {
  for (const auto& [type, prefix] : {std::pair("xlm-roberta", "XLMRoberta"),
                                     std::pair("camembert", "Camembert")}) {
    const std::string there = WriteTheirs(
        ExactBert(), RandomHeads(BertOf(), {kMlm}), {.model_type = type});
    const nlohmann::json config = ConfigIn(there);
    EXPECT_EQ(config["model_type"], std::string(type));
    EXPECT_EQ(config["architectures"][0], absl::StrCat(prefix, "ForMaskedLM"));
    EXPECT_EQ(config["max_position_embeddings"], 18);
    EXPECT_THAT(TensorsIn(there), Contains(Key("lm_head.dense.weight")));
    EXPECT_EQ(ConfigIn(ThereAndBack(there)), config);
    for (const char* name : {"there", "ours", "imported", "back"}) {
      Remove(name);
    }
  }
}

TEST_F(ExportTest, RobertasClassifierHasThePoolerInside) {
  const std::string there = WriteTheirs(
      ExactBert(), RandomHeads(BertOf(), {kPooler, kClassifier}),
      {.model_type = "roberta", .pad_token_id = 3, .labels = {"x", "y", "z"}});
  const nlohmann::json config = ConfigIn(there);
  EXPECT_EQ(config["architectures"][0], "RobertaForSequenceClassification");
  EXPECT_EQ(config["id2label"]["2"], "z");
  EXPECT_EQ(config["label2id"]["y"], 1);
  EXPECT_EQ(config["max_position_embeddings"], 20);
  const NamedTensors tensors = TensorsIn(there);
  const NamedTensors ours = TensorsIn(directory_.File("ours"));
  EXPECT_TRUE(torch::equal(tensors.at("classifier.dense.weight"),
                           ours.at("head.pooler.weight")));
  EXPECT_TRUE(torch::equal(tensors.at("classifier.out_proj.bias"),
                           ours.at("head.classifier.bias")));
  EXPECT_THAT(tensors, Not(Contains(Key("roberta.pooler.dense.weight"))));
  // Older files have a pooler that nothing reads.
  ChangeTensors(there, {{"roberta.pooler.dense.weight", torch::ones({12, 12})},
                        {"roberta.pooler.dense.bias", torch::ones({12})}});
  const auto plan = PlanImport({.source = there});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->heads.found, ElementsAre(kPooler, kClassifier));
  const auto read = ReadImport(*plan, 1, "");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(
      torch::equal(read->at("head.pooler.bias"), ours.at("head.pooler.bias")));
}

// As safetensors' save_model, which stores what is tied once, under the first
// name, and gives the others in the metadata.
TEST_F(ExportTest, ImportsATiedTableByEitherName) {
  const std::string there = WriteTheirs(
      ExactBert(), RandomHeads(BertOf(), {kMlm}), {.model_type = "roberta"});
  const NamedTensors expected = TensorsIn(directory_.File("ours"));
  const std::string table = "roberta.embeddings.word_embeddings.weight";
  const std::string decoder = "lm_head.decoder.weight";
  for (const auto& [stored, dropped] :
       {std::pair(table, decoder), std::pair(decoder, table)}) {
    NamedTensors tensors = TensorsIn(there);
    tensors.try_emplace(stored, tensors[dropped]);
    tensors.erase(dropped);
    ASSERT_TRUE(WriteTensors(there + "/model.safetensors", tensors,
                             {{"format", "pt"}, {dropped, stored}})
                    .ok());
    const auto plan = PlanImport({.source = there});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(plan->plan.dropped.empty());
    const auto read = ReadImport(*plan, 1, "");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(SameTensors(*read, expected));
  }
}

TEST_F(ExportTest, RefusesHeadsThatRobertaHasOtherwise) {
  EtcConfig relu = BertOf();
  relu.hidden_act = "relu";
  const HuggingFaceFields roberta = {.model_type = "roberta"};
  EXPECT_THAT(
      ExportError(WriteOurs(relu, RandomHeads(relu, {kMlm}), roberta, "relu"),
                  ExportFormat::kSafetensors),
      AllOf(HasSubstr("exact gelu in RoBERTa's MLM head"), HasSubstr("relu"),
            HasSubstr("--no-heads")));
  EXPECT_THAT(
      ExportError(WriteOurs(ExactBert(), RandomHeads(BertOf(), {kPooler, kNsp}),
                            roberta, "nsp"),
                  ExportFormat::kSafetensors),
      HasSubstr("next-sentence"));
}

TEST_F(ExportTest, LeavesOutAnMlmHeadThatOursWouldComputeOtherwise) {
  const std::string there = WriteTheirs(
      ExactBert(), RandomHeads(BertOf(), {kMlm}), {.model_type = "roberta"});
  ChangeConfig(there, {{"hidden_act", "relu"}});
  const auto plan = PlanImport({.source = there});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->heads.found.empty());
  EXPECT_THAT(plan->plan.notices,
              Contains(HasSubstr("RoBERTa's has the exact gelu")));
}

// --- Classifiers ------------------------------------------------------------

TEST_F(ExportTest, ClassifiersOfTokensAndChoicesStayWhatTheyAre) {
  for (const char* type : {"bert", "roberta"}) {
    const std::string there =
        WriteTheirs(ExactBert(), RandomHeads(BertOf(), {kPooler, kClassifier}),
                    {.model_type = "bert", .labels = {"O", "B", "I"}});
    const std::string pooler = "bert.pooler.dense.";
    ChangeTensors(there, {}, {pooler + "weight", pooler + "bias"});
    // Also where config.json does not say it: texts have a pooler.
    for (const bool is_said : {true, false}) {
      nlohmann::json changes = {{"model_type", type}};
      changes["architectures"] = nlohmann::json::array();
      if (is_said) {
        changes["architectures"] = {"XForTokenClassification"};
      }
      if (std::string(type) == "roberta") {
        changes["max_position_embeddings"] = 18;
        changes["pad_token_id"] = 1;
        ChangeTensors(there, {{"bert.embeddings.position_embeddings.weight",
                               torch::ones({18, 12})}});
      }
      ChangeConfig(there, changes);
      const std::string back = ThereAndBack(there);
      EXPECT_EQ(ConfigIn(back)["architectures"][0],
                absl::StrCat(type == std::string("bert") ? "Bert" : "Roberta",
                             "ForTokenClassification"));
      EXPECT_EQ(ConfigIn(back)["id2label"]["1"], "B");
      EXPECT_THAT(TensorsIn(back), Contains(Key("classifier.weight")));
      EXPECT_THAT(
          ExportError(directory_.File("imported"), ExportFormat::kTensorFlow),
          testing::AnyOf(HasSubstr("no classifier of tokens"),
                         HasSubstr("gelu_erf")));
      Remove("imported");
      Remove("back");
    }
    Remove("there");
  }
  const std::string there = WriteTheirs(
      BertOf(), RandomHeads(BertOf(), {kPooler, kClassifier}, /*outputs=*/1),
      {.architecture = "BertForMultipleChoice"});
  EXPECT_EQ(ConfigIn(ThereAndBack(there))["architectures"][0],
            "BertForMultipleChoice");
  EXPECT_THAT(
      ExportError(directory_.File("imported"), ExportFormat::kTensorFlow),
      HasSubstr("no classifier of tokens or choices"));
}

TEST_F(ExportTest, KeepsWhatHuggingFaceSays) {
  const std::string there =
      WriteTheirs(BertOf(), RandomHeads(BertOf(), {kPooler, kClassifier}),
                  {.pad_token_id = 5,
                   .classifier_dropout = 0.25,
                   .problem_type = "multi_label_classification",
                   .labels = {"x", "y", "z"}});
  const nlohmann::json config = ConfigIn(there);
  EXPECT_EQ(config["pad_token_id"], 5);
  EXPECT_EQ(config["classifier_dropout"], 0.25);
  EXPECT_EQ(config["problem_type"], "multi_label_classification");
  EXPECT_EQ(ConfigIn(ThereAndBack(there)), config);
  // Google's code has no labels, but takes a configuration that has them.
  const std::string google = directory_.File("google");
  ASSERT_TRUE(ExportWeights(there, ExportFormat::kTensorFlow, google).ok());
  const auto plan = PlanImport({.source = google});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->hugging_face.labels, ElementsAre("x", "y", "z"));
}

TEST_F(ExportTest, FindsPaddingInTheVocabulary) {
  const std::string ours = WriteOurs(BertOf(), {}, {});
  std::string words;
  for (int i = 2; i < 29; ++i) {
    absl::StrAppend(&words, "w", i, "\n");
  }
  const std::string there = directory_.File("there");
  for (const auto& [beginning, row] :
       {std::pair("[UNK]\n[PAD]\n", 1), std::pair("\uFEFF[PAD]\n[UNK]\n", 0)}) {
    ASSERT_TRUE(
        WriteFileAtomically(ours + "/vocab.txt", beginning + words).ok());
    ASSERT_TRUE(ExportWeights(ours, ExportFormat::kSafetensors, there).ok());
    EXPECT_EQ(ConfigIn(there)["pad_token_id"], row);
    Remove("there");
  }
}

// Rows for a SentencePiece vocabulary are found by the pieces of RoBERTa's,
// whichever file has them.
TEST_F(ExportTest, MatchesRobertasRowsByPiece) {
  EtcConfig config = ExactBert();
  config.vocab_size = 261;
  const std::string there = WriteTheirs(config, {}, {.model_type = "roberta"});
  const std::string model = directory_.Write(
      "x.model", SentencePieceModelOf({"\u2581", "ab", "no", "<s>"}));
  const auto import = [&](const std::string& name) {
    return ImportWeights({.source = there, .lift = true, .vocabulary = model},
                         directory_.File(name));
  };
  EXPECT_THAT(import("refused").ToString(),
              AllOf(HasSubstr(there), HasSubstr("pieces are not known")));
  nlohmann::json vocabulary = {
      {"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}, {"ab", 260}};
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[ByteCharacter(static_cast<uint8_t>(byte))] = 4 + byte;
  }
  directory_.Write("there/vocab.json", vocabulary.dump());
  directory_.Write("there/merges.txt", "#version: 0.2\na b\n");
  const absl::Status by_vocab_json = import("by_vocab_json");
  ASSERT_TRUE(by_vocab_json.ok()) << by_vocab_json;
  const auto equivalent = ReadTokenizerJsonOrByteLevel(there + "/vocab.json");
  ASSERT_TRUE(equivalent.ok()) << equivalent.status();
  Remove("there/vocab.json");
  Remove("there/merges.txt");
  directory_.Write("there/tokenizer.json", equivalent->dump());
  const absl::Status by_tokenizer_json = import("by_tokenizer_json");
  ASSERT_TRUE(by_tokenizer_json.ok()) << by_tokenizer_json;

  const std::string table = "encoder.embedding.token.weight";
  const torch::Tensor from = TensorsIn(directory_.File("ours")).at(table);
  for (const char* name : {"by_vocab_json", "by_tokenizer_json"}) {
    const std::string directory = directory_.File(name);
    const torch::Tensor rows = TensorsIn(directory).at(table);
    ASSERT_EQ(rows.size(0), 4);
    EXPECT_TRUE(torch::equal(rows[0], from[4 + ' '])) << name;
    EXPECT_TRUE(torch::equal(rows[1], from[260])) << name;
    EXPECT_TRUE(torch::equal(rows[3], from[0])) << name;
    EXPECT_EQ(*ReadFile(directory + "/tokenizer.model"), *ReadFile(model));
    EXPECT_FALSE(std::filesystem::exists(directory + "/tokenizer.json"));
  }
}

// transformers would choose a tokenizer by the kind of the model.
TEST_F(ExportTest, NamesTheTokenizerAndItsInputs) {
  const auto options_of = [this](const EtcConfig& config, const char* type,
                                 const char* vocabulary,
                                 const std::string& contents) {
    const std::string ours = WriteOurs(config, {}, {.model_type = type}, type);
    EXPECT_TRUE(
        WriteFileAtomically(absl::StrCat(ours, "/", vocabulary), contents)
            .ok());
    const std::string there = absl::StrCat(ours, "-there");
    const auto written = ExportWeights(ours, ExportFormat::kSafetensors, there);
    EXPECT_TRUE(written.ok()) << written.status();
    EXPECT_EQ(FindTokenizer(there)->type, FindTokenizer(ours)->type);
    return nlohmann::json::parse(*ReadFile(there + "/tokenizer_config.json"));
  };
  EtcConfig one_type = ExactBert();
  one_type.segment_vocab_size = 1;
  EXPECT_EQ(
      options_of(one_type, "roberta", "tokenizer.json",
                 R"({"model": {"type": "BPE", "vocab": {"<pad>": 0}},
                     "added_tokens": [{"id": 0, "content": "<pad>"}]})"),
      nlohmann::json({{"tokenizer_class", "PreTrainedTokenizerFast"},
                      {"pad_token", "<pad>"},
                      {"model_max_length", 16},
                      {"model_input_names", {"input_ids", "attention_mask"}}}));
  EXPECT_EQ(
      options_of(one_type, "camembert", "tokenizer.json",
                 R"({"model": {"type": "BPE", "vocab": {
                         "<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3,
                         "<mask>": 4}},
                     "added_tokens": [{"id": 0, "content": "<s>"},
                                      {"id": 1, "content": "<pad>"},
                                      {"id": 2, "content": "</s>"},
                                      {"id": 3, "content": "<unk>"},
                                      {"id": 4, "content": "<mask>"}]})"),
      nlohmann::json({{"tokenizer_class", "PreTrainedTokenizerFast"},
                      {"bos_token", "<s>"},
                      {"eos_token", "</s>"},
                      {"cls_token", "<s>"},
                      {"sep_token", "</s>"},
                      {"unk_token", "<unk>"},
                      {"pad_token", "<pad>"},
                      {"mask_token", "<mask>"},
                      {"model_max_length", 16},
                      {"model_input_names", {"input_ids", "attention_mask"}}}));
  EXPECT_FALSE(options_of(one_type, "xlm-roberta", "tokenizer.json",
                          R"({"model": {"type": "BPE", "vocab": {"a": 0}}})")
                   .contains("pad_token"));
  const nlohmann::json wordpiece =
      options_of(ExactBert(), "bert", "vocab.txt", "[PAD]\n[UNK]\n");
  EXPECT_EQ(wordpiece["tokenizer_class"], "BertTokenizer");
  EXPECT_EQ(wordpiece["max_input_chars_per_word"], 200);
  EXPECT_EQ(wordpiece["model_input_names"].size(), 3u);
}

// Other programs put no special pieces around texts where a tokenizer.json has
// none; tasks take those of the usual names. tests/hugging_face_exports.py
// compares the ids.
TEST_F(ExportTest, WritesThePiecesThatTasksPutAroundTexts) {
  using nlohmann::json;
  const std::string ours = WriteOurs(ExactBert(), {}, {});
  const std::string there = directory_.File("there");
  const auto exported = [&](const json& file) {
    EXPECT_TRUE(
        WriteFileAtomically(ours + "/tokenizer.json", file.dump()).ok());
    Remove("there");
    EXPECT_TRUE(ExportWeights(ours, ExportFormat::kSafetensors, there).ok());
    return *ReadFile(there + "/tokenizer.json");
  };
  const json byte_level = json::parse(R"({
      "truncation": null,
      "added_tokens": [{"id": 2, "content": "</s>"}],
      "pre_tokenizer": {"type": "Sequence",
                        "pretokenizers": [{"type": "ByteLevel"}]},
      "model": {"type": "BPE", "vocab": {"<s>": 0, "a": 1}, "merges": []}})");
  json marks = json::parse(R"({
      "type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                 {"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "</s>", "type_id": 0}}],
      "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "</s>", "type_id": 0}},
               {"SpecialToken": {"id": "</s>", "type_id": 0}},
               {"Sequence": {"id": "B", "type_id": 1}},
               {"SpecialToken": {"id": "</s>", "type_id": 1}}],
      "special_tokens": {
          "<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]},
          "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}})");
  const auto with = [&byte_level](const json& processor) {
    json file = byte_level;
    file["post_processor"] = processor;
    return file;
  };
  EXPECT_EQ(json::parse(exported(byte_level)), with(marks));
  EXPECT_EQ(json::parse(exported(with(nullptr))), with(marks));
  const json bare = {{"type", "ByteLevel"}, {"trim_offsets", false}};
  EXPECT_EQ(json::parse(exported(with(bare))),
            with({{"type", "Sequence"}, {"processors", {bare, marks}}}));
  EXPECT_EQ(json::parse(exported(with(json::parse(R"({
                "type": "TemplateProcessing",
                "single": [{"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                         {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {}})")))),
            with(marks));
  // One separator, unless the pieces are byte-level.
  json unigram = json::parse(R"({
      "model": {"type": "Unigram",
                "vocab": [["<s>", 0], ["a", -1.5], ["</s>", 0]]}})");
  json expected = unigram;
  expected["post_processor"] = marks;
  expected["post_processor"]["pair"].erase(2);
  EXPECT_EQ(json::parse(exported(unigram)), expected);
  // The same as where a template leaves out the pair.
  marks["pair"] = json::array();
  EXPECT_EQ(json::parse(exported(with(marks)))["post_processor"],
            expected["post_processor"]);
  // Files that have all, or no pieces of these names, stay as they are.
  unigram["model"]["vocab"].erase(0);
  for (const json& file :
       {unigram, expected, with({{"type", "RobertaProcessing"}})}) {
    EXPECT_EQ(exported(file), file.dump());
  }
}

TEST_F(ExportTest, RefusesLabelsThatContradict) {
  const std::string there =
      WriteTheirs(BertOf(), RandomHeads(BertOf(), {kPooler, kClassifier}),
                  {.labels = {"x", "y", "z"}});
  ChangeConfig(there, {{"label2id", {{"x", 0}, {"y", 1}}},
                       {"id2label", {{"0", "x"}, {"1", "y"}}}});
  EXPECT_THAT(PlanImport({.source = there}).status().ToString(),
              AllOf(HasSubstr(there), HasSubstr("the 3 outputs"),
                    HasSubstr("names 2")));
  ChangeConfig(there, {{"label2id", {{"x", 1}, {"y", 0}}}});
  EXPECT_THAT(PlanImport({.source = there}).status().ToString(),
              HasSubstr("contradict"));
}

TEST_F(ExportTest, ARegressionPredictsNumbersThere) {
  const NamedTensors heads =
      RandomHeads(BertOf(), {kPooler, kClassifier}, /*outputs=*/1);
  const NamedTensors tensors = TensorsIn(
      WriteTheirs(BertOf(), heads,
                  {.problem_type = "regression", .mean = 3, .deviation = 2}));
  EXPECT_TRUE(torch::allclose(tensors.at("classifier.weight"),
                              2 * heads.at("head.classifier.weight")));
  EXPECT_TRUE(torch::allclose(tensors.at("classifier.bias"),
                              2 * heads.at("head.classifier.bias") + 3));
  const auto compared =
      CompareWeights(directory_.File("there"), directory_.File("ours"));
  ASSERT_TRUE(compared.ok()) << compared.status();
  EXPECT_THAT(compared->differences, IsEmpty());
}

// --- Parts that stay behind --------------------------------------------------

TEST_F(ExportTest, RefusesHeadsThatTheOfficialEtcLacks) {
  for (const auto& [head, name] : {std::pair(kClassifier, "no classifier"),
                                   std::pair(kAnswerSpan, "no answer span")}) {
    const std::string ours =
        WriteOurs(ToyConfig(), RandomHeads(ToyConfig(), {kPooler, head}), {},
                  PretrainingHeadDescription(head));
    for (const ExportFormat format :
         {ExportFormat::kSafetensors, ExportFormat::kTensorFlow}) {
      EXPECT_THAT(ExportError(ours, format),
                  AllOf(HasSubstr(name), HasSubstr("--format huggingface"),
                        HasSubstr("--no-heads")));
    }
  }
}

TEST_F(ExportTest, WarnsOfHeadsThatNoOtherCodeHas) {
  NamedTensors heads = RandomHeads(BertOf(), {kPooler});
  heads["head.answer_type.bias"] = torch::zeros({3});
  const std::string ours = WriteOurs(BertOf(), heads, {});
  for (const ExportFormat format :
       {ExportFormat::kSafetensors, ExportFormat::kTensorFlow}) {
    const auto report = ExportWeights(
        ours, format,
        directory_.File(absl::StrCat("there", static_cast<int>(format))));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(report->warnings,
                ElementsAre(AllOf(HasSubstr("head.answer_type.bias"),
                                  Not(HasSubstr("pooler")))));
  }
}

TEST_F(ExportTest, WarnsOfAVocabularyThatItLeavesOut) {
  const std::string ours = WriteOurs(BertOf(), {}, {});
  ASSERT_TRUE(WriteFileAtomically(ours + "/vocab.txt", "[UNK]\n").ok());
  ASSERT_TRUE(
      WriteFileAtomically(ours + "/tokenizer_config.json",
                          R"({"tokenizer_class": "BertJapaneseTokenizer"})")
          .ok());
  const auto report =
      ExportWeights(ours, ExportFormat::kSafetensors, directory_.File("there"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->warnings,
              ElementsAre(AllOf(HasSubstr("BertJapaneseTokenizer"),
                                HasSubstr("the vocabulary is left out"))));
  EXPECT_FALSE(std::filesystem::exists(directory_.File("there/vocab.txt")));
}

// --- Configurations beside HuggingFace's tensors -----------------------------

TEST_F(ExportTest, TensorsSayWhoseConfigurationItIs) {
  for (const char* type : {"bert", "roberta"}) {
    SCOPED_TRACE(type);
    const std::string there =
        WriteTheirs(ExactBert(), {}, {.model_type = type});
    nlohmann::json config = ConfigIn(there);
    for (const char* field : {"model_type", "architectures", "layer_norm_eps",
                              "transformers_version", "pad_token_id"}) {
      config.erase(field);
    }
    ASSERT_TRUE(
        WriteFileAtomically(there + "/config.json", config.dump()).ok());
    ASSERT_TRUE(
        WriteFileAtomically(there + "/bert_config.json", "unread").ok());
    const auto file = OpenWeights(there);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->source.config.hidden_act, "gelu_erf");
    EXPECT_EQ(file->source.hugging_face.model_type, type);
    EXPECT_EQ(file->source.first_position,
              type == std::string("roberta") ? 2 : 0);
    EXPECT_EQ(file->source.config.max_absolute_position_embeddings, 16);
    const auto alone = ReadSourceConfig(there);
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_EQ(EtcConfigToJson(alone->config),
              EtcConfigToJson(file->source.config));
    Remove("there");
    Remove("ours");
  }
}

// Rows before that of the first position are not taken for positions.
TEST_F(ExportTest, TensorsAloneSayThatTheyAreRobertas) {
  const std::string there =
      WriteTheirs(ExactBert(), {}, {.model_type = "roberta"});
  ASSERT_TRUE(std::filesystem::remove(there + "/config.json"));
  EtcModel model(ExactBert());
  const auto report = LoadEncoderWeights(there, model);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(SameTensors(ModuleTensors(*model),
                          ModuleTensors(*RandomModel(ExactBert()))));
}

// --- Refusals ---------------------------------------------------------------

TEST_F(ExportTest, RefusesHeadsOfAnotherSizeThanBerts) {
  EtcConfig config = BertOf();
  config.att_size_per_head = 5;
  const std::string ours = WriteOurs(config, {}, {});
  for (const ExportFormat format :
       {ExportFormat::kSafetensors, ExportFormat::kTensorFlow}) {
    EXPECT_THAT(
        ExportError(ours, format),
        AllOf(HasSubstr("hidden_size 12"), HasSubstr("att_size_per_head 5"),
              HasSubstr("--format huggingface writes it")));
  }
}

TEST_F(ExportTest, RefusesWhatIsNotFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string name = "bert.encoder.layer.0.output.dense.bias";
  for (const torch::Tensor& bad :
       {torch::full({12}, std::nan("")), torch::full({12}, -kInfinity),
        torch::full({12}, 1e300, torch::kFloat64),
        torch::full({12}, kInfinity, torch::kFloat16)}) {
    const std::string there = WriteTheirs(BertOf(), {}, {});
    ChangeTensors(there, {{name, bad}});
    const auto names_it =
        AllOf(HasSubstr(there), HasSubstr(name),
              testing::AnyOf(HasSubstr("infinite"), HasSubstr("finite")));
    EXPECT_THAT(
        ImportWeights({.source = there}, directory_.File("to")).ToString(),
        names_it);
    EXPECT_FALSE(ReadFile(directory_.File("to/etc_config.json")).ok());
    const auto plan = PlanImport({.source = there});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_THAT(ReadImport(*plan, 1, "").status().ToString(), names_it);
    EXPECT_THAT(ExportError(there, ExportFormat::kTensorFlow), names_it);
    EXPECT_THAT(ExportError(there, ExportFormat::kSafetensors), names_it);
    EtcModel model(BertOf());
    EXPECT_THAT(LoadEncoderWeights(there, model).status().ToString(), names_it);
    Remove("there");
  }
}

TEST_F(ExportTest, ADryRunRefusesWhatTheImportRefuses) {
  const std::string ours = WriteOurs(BertOf(), {}, {});
  const auto plan = PlanImport({.source = ours});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(ReadImport(*plan, 1, "").ok());
  EXPECT_EQ(ReadImport(*plan, 1, ours).status().code(),
            absl::StatusCode::kAlreadyExists);
  const std::string file = directory_.Write("file", "");
  for (const std::string& impossible : {file, file + "/a/b"}) {
    EXPECT_THAT(ReadImport(*plan, 1, impossible).status().ToString(),
                HasSubstr("is no directory"));
    EXPECT_FALSE(WriteImport(*plan, 1, impossible).ok());
  }
  // A vocabulary that does not fit, with a line too many or far too few.
  for (const int pieces : {30, 2}) {
    EtcConfig config = BertOf();
    config.vocab_size = pieces == 2 ? 200 : 29;
    const std::string other =
        WriteOurs(config, {}, {}, absl::StrCat("other", pieces));
    std::string vocabulary;
    for (int i = 0; i < pieces; ++i) {
      absl::StrAppend(&vocabulary, "w", i, "\n");
    }
    ASSERT_TRUE(WriteFileAtomically(other + "/vocab.txt", vocabulary).ok());
    const auto with_vocabulary = PlanImport({.source = other});
    ASSERT_TRUE(with_vocabulary.ok()) << with_vocabulary.status();
    const auto says_so =
        HasSubstr(absl::StrCat("vocab.txt has ", pieces, " pieces"));
    EXPECT_THAT(ReadImport(*with_vocabulary, 1, "").status().ToString(),
                says_so);
    EXPECT_THAT(
        ImportWeights({.source = other}, directory_.File("to")).ToString(),
        says_so);
  }
}

}  // namespace
}  // namespace etc
