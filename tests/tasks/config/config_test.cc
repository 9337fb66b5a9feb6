// The fine-tuning configuration: the source of its model, changes by --set, and
// that every mistake is reported with its place, the expectation and the value
// found. Rules of each field are tested in config_fields_test.cc. The existence
// of named files is tested where they are opened, but for the model's.
#include "tasks/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/tiny_sentencepiece_model.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kSmallest[] =
    R"({"task": "wikihop", "model": {"preset": "base"}})";

absl::StatusOr<RunConfig> FromText(const std::string& text) {
  return RunConfigFromJson(
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false),
      "run.json");
}

absl::StatusOr<RunConfig> WithOverrides(
    const std::vector<std::string>& overrides) {
  TemporaryDirectory directory;
  return ReadRunConfig(directory.Write("run.json", kSmallest), overrides);
}

TEST(RunConfigTest, KeepsDefaultsForAbsentFields) {
  const absl::StatusOr<RunConfig> config = FromText(kSmallest);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->residual_attention, "off");
  EXPECT_EQ(config->data.max_long_length, 4096);
  EXPECT_EQ(config->optimizer.type, "bert_adamw");
  EXPECT_EQ(config->train.steps, std::nullopt);
  EXPECT_EQ(config->task_options, nlohmann::json::object());
  EXPECT_THAT(config->warnings, IsEmpty());
}

// A change by either field decides over both of the preset or file.
TEST(RunConfigTest, ReadsTheSublayerFromEitherField) {
  const auto sublayer = [](const std::vector<std::string>& overrides) {
    const auto config = WithOverrides(overrides);
    return config.ok() ? config->model.sublayer
                       : std::string(config.status().message());
  };
  EXPECT_EQ(sublayer({}), "post_norm");
  EXPECT_EQ(sublayer({"model.sublayer=pre_norm"}), "pre_norm");
  EXPECT_EQ(sublayer({"model.sublayer=rezero"}), "rezero");
  EXPECT_EQ(sublayer({"model.use_pre_activation_order=true"}), "pre_norm");
  EXPECT_EQ(sublayer({"model.use_pre_activation_order=true",
                      "model.sublayer=pre_norm"}),
            "pre_norm");
  EXPECT_THAT(
      sublayer({"model.use_pre_activation_order=true", "model.sublayer=admin"}),
      HasSubstr("model.use_pre_activation_order should be false where "
                "sublayer is \"admin\", but is true"));
}

// --- The tokenizer
// ------------------------------------------------------------

constexpr char kVocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nbank\n";

// A configuration whose tokenizer has these fields beside the vocabulary.
absl::StatusOr<RunConfig> WithVocabulary(const std::string& vocabulary,
                                         const std::string& fields = "") {
  return FromText(absl::StrCat(
      R"({"task": "wikihop", "model": {"preset": "base"}, "tokenizer": {)",
      fields, R"("vocabulary": ")", vocabulary, "\"}}"));
}

TEST(RunConfigTest, FoldsCaseAsTheFilesBesideTheVocabularySay) {
  TemporaryDirectory directory;
  const std::string vocabulary = directory.Write("words.txt", kVocabulary);
  EXPECT_TRUE(WithVocabulary(vocabulary)->tokenizer.lower_case);
  directory.Write("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_FALSE(WithVocabulary(vocabulary)->tokenizer.lower_case);
  EXPECT_TRUE(WithVocabulary(vocabulary, R"("lower_case": false, )").ok());
  EXPECT_THAT(
      WithVocabulary(vocabulary, R"("lower_case": true, )").status().message(),
      testing::AllOf(HasSubstr("run.json: tokenizer.lower_case is true"),
                     HasSubstr("do_lower_case is false")));
  directory.Write("tokenizer_config.json", R"({"do_basic_tokenize": false})");
  EXPECT_THAT(WithVocabulary(vocabulary).status().message(),
              HasSubstr("do_basic_tokenize is false"));
}

// It would be ignored: capitals became the unknown piece.
TEST(RunConfigTest, RefusesAnOptionOfAnotherTypeOfTokenizer) {
  TemporaryDirectory directory;
  const std::string words = directory.Write("words.txt", kVocabulary);
  const std::string pieces = directory.Write(
      "books.model", TinySentencePieceModel({{"\u2581bank", -1.0F}}).bytes());
  const std::string lower = R"("lower_case": true, )";
  const std::string split = R"("split_punctuation": true, )";
  EXPECT_EQ(WithVocabulary(pieces, lower).status().message(),
            "run.json: tokenizer.lower_case should be false with "
            "tokenizer.type \"sentencepiece\", which ignores it: it is for "
            "\"wordpiece\"");
  EXPECT_THAT(WithVocabulary(words, split).status().message(),
              HasSubstr("tokenizer.split_punctuation should be false with "
                        "tokenizer.type \"wordpiece\""));
  EXPECT_TRUE(WithVocabulary(words, lower).ok());
  const auto split_pieces = WithVocabulary(pieces, split);
  ASSERT_TRUE(split_pieces.ok()) << split_pieces.status();
  EXPECT_TRUE(split_pieces->tokenizer.split_punctuation);
  // Runs write all options.
  EXPECT_FALSE(split_pieces->tokenizer.lower_case);
  EXPECT_TRUE(WithVocabulary(pieces, R"("lower_case": false, )").ok());
  // The files beside a vocabulary say it, too.
  directory.Write("tokenizer_config.json", R"({"split_punctuation": true})");
  EXPECT_TRUE(WithVocabulary(words, split).ok());
}

TEST(RunConfigTest, SaysThatItTakesAVocabularyForACasedOne) {
  TemporaryDirectory directory;
  const std::string vocabulary =
      directory.Write("words.txt", absl::StrCat(kVocabulary, "Bank\n"));
  const auto config = WithVocabulary(vocabulary);
  EXPECT_FALSE(config->tokenizer.lower_case);
  EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("such as \"Bank\"")));
  EXPECT_THAT(WithVocabulary(vocabulary, R"("lower_case": false, )")->warnings,
              IsEmpty());
  const auto folded = WithVocabulary(vocabulary, R"("lower_case": true, )");
  EXPECT_TRUE(folded->tokenizer.lower_case);
  EXPECT_THAT(folded->warnings, ElementsAre(HasSubstr("never used")));
}

TEST(RunConfigTest, AVocabularyThatIsNamedHasItsOwnOptions) {
  TemporaryDirectory init;
  init.Write("vocab.txt", kVocabulary);
  init.Write("tokenizer_config.json",
             R"({"do_lower_case": false, "split_punctuation": true})");
  init.Write("etc_config.json", R"({"vocab_size": 5})");
  TemporaryDirectory directory;
  const std::string vocabulary = directory.Write("words.txt", kVocabulary);
  const auto read = [&](const std::string& tokenizer) {
    return FromText(absl::StrCat(R"({"task": "wikihop", "init": ")",
                                 init.path(), R"(", "tokenizer": {)", tokenizer,
                                 "}}"));
  };
  const std::string named =
      absl::StrCat(R"("vocabulary": ")", vocabulary, "\"");
  auto config = read("");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tokenizer.vocabulary, init.File("vocab.txt"));
  EXPECT_FALSE(config->tokenizer.lower_case);
  // Options that only the files of `init` give stay in force.
  config = read(named);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tokenizer.vocabulary, vocabulary);
  EXPECT_FALSE(config->tokenizer.lower_case);
  EXPECT_TRUE(config->tokenizer.split_punctuation);
  directory.Write("tokenizer_config.json", R"({"do_lower_case": true})");
  EXPECT_TRUE(read(named)->tokenizer.lower_case);
  // Nor need the vocabulary of `init` be usable then.
  init.Write("tokenizer_config.json", R"({"do_lower_case": "no"})");
  EXPECT_TRUE(read(named)->tokenizer.lower_case);
  EXPECT_THAT(read("").status().message(), HasSubstr("do_lower_case"));
}

TEST(RunConfigTest, RefusesAnotherTypeOfTokenizerThanThatOfInit) {
  TemporaryDirectory init;
  init.Write("etc_config.json", R"({"vocab_size": 5})");
  init.Write("vocab.txt", kVocabulary);
  const auto read = [&](const std::string& tokenizer) {
    return FromText(absl::StrCat(R"({"task": "wikihop", "init": ")",
                                 init.path(), R"(", "tokenizer": {)", tokenizer,
                                 "}}"));
  };
  EXPECT_TRUE(read(R"("type": "wordpiece")").ok());
  EXPECT_EQ(
      read(R"("type": "huggingface")").status().message(),
      absl::StrCat("run.json: tokenizer.type is \"huggingface\", but init, ",
                   init.path(),
                   ", has vocab.txt (\"wordpiece\"): leave tokenizer.type "
                   "out, or name a vocabulary"));
  // Without a vocabulary there, one is asked for when it is loaded.
  std::filesystem::remove(init.File("vocab.txt"));
  const auto none = read(R"("type": "wordpiece")");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->tokenizer.vocabulary, "");
}

TEST(RunConfigTest, TakesTheTypeOfTheVocabularyThatIsNamed) {
  TemporaryDirectory directory;
  const TinySentencePieceModel model({{"\u2581bank", -1.0F}});
  const std::string pieces = directory.Write("books.model", model.bytes());
  const std::string words = directory.Write("words.txt", kVocabulary);
  const auto config = WithVocabulary(pieces);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tokenizer.type, "sentencepiece");
  EXPECT_THAT(config->warnings, IsEmpty());
  EXPECT_THAT(
      WithVocabulary(pieces, R"("type": "wordpiece", )").status().message(),
      HasSubstr("books.model is a SentencePiece model"));

  // The type of `init`'s tokenizer decides nothing then.
  TemporaryDirectory init;
  init.Write("tokenizer.model", model.bytes());
  init.Write("etc_config.json", R"({"vocab_size": 5})");
  const auto other = FromText(
      absl::StrCat(R"({"task": "wikihop", "init": ")", init.path(),
                   R"(", "tokenizer": {"vocabulary": ")", words, "\"}}"));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->tokenizer.type, "wordpiece");
}

// --- The model --------------------------------------------------------------

TEST(RunConfigTest, HasARowForEachPieceWhereNothingElseSaysIt) {
  TemporaryDirectory directory;
  const std::string words = directory.Write("words.txt", kVocabulary);
  directory.Write("etc_config.json", R"({"vocab_size": 70})");
  directory.Write("none.json", R"({"hidden_size": 24})");
  const auto read = [&](const std::string& model,
                        const std::string& vocabulary) {
    return FromText(absl::StrCat(R"({"task": "wikihop", "model": {)", model,
                                 R"(}, "tokenizer": {"vocabulary": ")",
                                 vocabulary, "\"}}"));
  };
  const auto path = [&](const std::string& name) {
    return absl::StrCat(R"("path": ")", directory.File(name), "\"");
  };
  const std::vector<std::pair<std::string, int64_t>> table = {
      {"", 5},
      {R"("vocab_size": null)", 5},
      {R"("preset": "base")", 5},
      {R"("preset": "large")", 5},
      {path("none.json"), 5},
      {R"("vocab_size": 7)", 7},
      {R"("preset": "base", "vocab_size": 7)", 7},
      {path("etc_config.json"), 70}};
  for (const auto& [model, rows] : table) {
    const auto config = read(model, words);
    ASSERT_TRUE(config.ok()) << model << ": " << config.status();
    EXPECT_EQ(config->model.vocab_size, rows) << model;
  }
  // `estimate` needs no vocabulary.
  const std::string nowhere = directory.File("nowhere.txt");
  EXPECT_EQ(read(R"("preset": "base")", nowhere)->model.vocab_size, 30522);
  EXPECT_THAT(read("", nowhere).status().message(), HasSubstr(nowhere));
}

TEST(RunConfigTest, LetsInlineFieldsDecideOverTheModelFile) {
  TemporaryDirectory directory;
  const std::string path = directory.Write(
      "etc_config.json",
      R"({"vocab_size": 70, "hidden_size": 48, "residual_attention": "sum"})");
  const absl::StatusOr<RunConfig> config =
      FromText(R"({"task": "wikihop", "model": {"hidden_size": 24, "path": ")" +
               path + "\"}}");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->model.vocab_size, 70);
  EXPECT_EQ(config->model.hidden_size, 24);
  EXPECT_EQ(config->residual_attention, "sum");
}

// The mode has a field beside the model, its numbers are in the model.
TEST(RunConfigTest, ReadsTheNumbersOfTheResidualModes) {
  TemporaryDirectory directory;
  directory.Write("etc_config.json",
                  R"({"vocab_size": 70, "residual_attention": "decay",
                      "residual_decay": 0.75})");
  for (const std::string& source :
       {R"("model": {"path": ")" + directory.File("etc_config.json") + "\"}",
        R"("init": ")" + directory.path() + "\""}) {
    const auto config = FromText(R"({"task": "wikihop", )" + source + "}");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->residual_attention, "decay");
    EXPECT_EQ(config->model.residual_attention, "decay");
    EXPECT_EQ(config->model.residual_decay, 0.75);
    const auto gate = FromText(
        R"({"task": "wikihop", "residual_attention": "gate", )" + source + "}");
    ASSERT_TRUE(gate.ok()) << gate.status();
    EXPECT_EQ(gate->model.residual_attention, "gate");
    EXPECT_EQ(gate->model.residual_gate_init, 0);
  }
  const auto preset = FromText(
      R"({"task": "wikihop", "residual_attention": "gate",
          "model": {"preset": "base", "residual_gate_init": 0.5}})");
  ASSERT_TRUE(preset.ok()) << preset.status();
  EXPECT_EQ(preset->model.residual_attention, "gate");
  EXPECT_EQ(preset->model.residual_gate_init, 0.5);
  EXPECT_EQ(preset->model.residual_decay, 0.9);
}

TEST(RunConfigTest, TakesTheModelOfTheInitialCheckpoint) {
  TemporaryDirectory directory;
  directory.Write("etc_config.json",
                  R"({"vocab_size": 70, "pooler": 1,
                      "residual_attention": "sum"})");
  for (const std::string& init :
       {directory.path(), directory.Write("model.safetensors", "")}) {
    const absl::StatusOr<RunConfig> config = FromText(
        R"({"task": "wikihop", "residual_attention": "off", "init": ")" + init +
        "\"}");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->model.vocab_size, 70);
    EXPECT_EQ(config->residual_attention, "off");
    EXPECT_EQ(config->model.residual_attention, "off");
    EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("\"pooler\"")));
  }
}

TEST(RunConfigTest, TakesWhatAPresetGuessesFromInit) {
  TemporaryDirectory directory;
  directory.Write("etc_config.json",
                  R"({"vocab_size": 50358, "relative_pos_max_distance": 24,
                      "relative_vocab_size": 52})");
  using Sizes = std::pair<int64_t, int64_t>;
  const auto sizes = [](const std::string& init, const std::string& model) {
    const auto config =
        FromText(absl::StrCat(R"({"task": "wikihop", "init": ")", init,
                              R"(", "model": )", model, "}"));
    EXPECT_TRUE(config.ok()) << config.status();
    return Sizes(config->model.vocab_size,
                 config->model.relative_vocab_size.value_or(0));
  };
  EXPECT_EQ(sizes(directory.path(), R"({"preset": "large"})"),
            Sizes(50358, 52));
  EXPECT_EQ(sizes(directory.path(),
                  R"({"preset": "large", "vocab_size": 50300,
                      "relative_vocab_size": 60})"),
            Sizes(50300, 60));
  EXPECT_EQ(sizes(directory.path(), R"({"preset": "base"})"), Sizes(30522, 32));
  EXPECT_EQ(sizes("/nowhere", R"({"preset": "large"})"), Sizes(50265, 64));
}

// config.json of HuggingFace's BERT.
std::string WriteBert(TemporaryDirectory* directory) {
  directory->Write("vocab.txt", kVocabulary);
  return directory->Write(
      "config.json",
      R"({"model_type": "bert", "vocab_size": 5, "hidden_size": 8,
          "num_hidden_layers": 2, "num_attention_heads": 2,
          "intermediate_size": 16, "max_position_embeddings": 32,
          "type_vocab_size": 2})");
}

TEST(RunConfigTest, KeepsBertWithoutLongTokens) {
  TemporaryDirectory directory;
  WriteBert(&directory);
  const std::string init =
      R"({"task": "wikihop", "init": ")" + directory.path() + "\"";
  const auto lifted = FromText(init + "}");
  ASSERT_TRUE(lifted.ok()) << lifted.status();
  EXPECT_TRUE(lifted->model.has_long_tokens);
  EXPECT_EQ(lifted->model.max_absolute_position_embeddings, 0);
  const auto kept = FromText(
      init +
      R"(, "model": {"has_long_tokens": false, "hidden_dropout_prob": 0}})");
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_FALSE(kept->model.has_long_tokens);
  EXPECT_EQ(kept->model.max_absolute_position_embeddings, 32);
  EXPECT_EQ(kept->model.segment_vocab_size, 2);
  EXPECT_EQ(kept->model.hidden_act, "gelu_erf");
  EXPECT_EQ(kept->model.hidden_dropout_prob, 0);
}

TEST(RunConfigTest, ReadsAModelFileOfBert) {
  TemporaryDirectory directory;
  const std::string path = WriteBert(&directory);
  const std::string text =
      R"({"task": "wikihop", "model": {"path": ")" + path + "\"}}";
  const auto config = FromText(text);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->warnings, IsEmpty());
  EXPECT_FALSE(config->model.has_long_tokens);
  EXPECT_EQ(config->model.max_absolute_position_embeddings, 32);
  directory.Write("config.json", R"({"model_type": "bert", "vocab_size": 5,
                                     "type_vocab_size": 2})");
  EXPECT_THAT(FromText(text).status().message(), HasSubstr(path));
}

// --- Overrides --------------------------------------------------------------

TEST(RunConfigTest, OverridesDecideOverTheFileInTheirOrder) {
  const absl::StatusOr<RunConfig> config = WithOverrides(
      {"train.learning_rate=3e-5", "train.learning_rate=2e-5",
       "train.seeds=[1, 2]", "model.hidden_size=12", "output=a=b.c",
       "data.train=[\"x.json\"]", "train.steps=null", "wikihop.margin=1.5"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->train.learning_rate, 2e-5);
  EXPECT_THAT(config->train.seeds, ElementsAre(1, 2));
  EXPECT_EQ(config->model.hidden_size, 12);
  EXPECT_EQ(config->output, "a=b.c");
  EXPECT_THAT(config->data.train, ElementsAre("x.json"));
  EXPECT_EQ(config->task_options.dump(), R"({"margin":1.5})");
  EXPECT_EQ(config->json.at("train").at("learning_rate"), 2e-5);
}

TEST(RunConfigTest, TakesANumberForATextAsItIsWritten) {
  TemporaryDirectory directory;
  const auto config = ReadRunConfig(
      directory.Write("run.json", kSmallest),
      {"output=2024", "data.train=1e3", "wikihop.version=2.0",
       "wikihop.margin=2.0", "wikihop.weights=5", "train.steps=5"},
      /*check_task=*/nullptr,
      {{"output", "text"},
       {"data.train", "list of texts"},
       {"wikihop.version", "text or null"},
       {"wikihop.margin", "number"},
       {"wikihop.weights", "object of numbers or text"},
       {"train.steps", "whole number or null"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->output, "2024");
  EXPECT_THAT(config->data.train, ElementsAre("1e3"));
  EXPECT_EQ(config->task_options.dump(),
            R"({"margin":2.0,"version":"2.0","weights":5})");
  EXPECT_EQ(config->train.steps, 5);
}

TEST(RunConfigTest, TakesAFieldOutByNull) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("run.json", R"({
      "task": "wikihop", "model": {"preset": "base"}, "train": {"epochs": 7},
      "wikihop": {"weights": "balanced", "x": 1},
      "grid": {"train.steps": [1, 2]}})");
  const auto read = [&](const std::vector<std::string>& overrides) {
    return ReadRunConfig(path, overrides, /*check_task=*/nullptr,
                         {{"train.epochs", "number"},
                          {"train.frozen", "list of texts"},
                          {"wikihop.weights", "text"},
                          {"grid", ""}});
  };
  // In a model it is a value, of which the preset has another.
  const auto config =
      read({"train.epochs=null", "train.frozen=null", "wikihop.weights=null",
            "grid=null", "model.relative_vocab_size=null",
            "model.relative_pos_max_distance=0"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->train.epochs, 3);
  EXPECT_EQ(config->task_options.dump(), R"({"x":1})");
  EXPECT_TRUE(config->grid.empty());
  EXPECT_EQ(config->model.relative_vocab_size, std::nullopt);
  const auto unset = read({"model.preset=null", "model.vocab_size=7"});
  ASSERT_TRUE(unset.ok()) << unset.status();
  EXPECT_EQ(unset->model.vocab_size, 7);
  EXPECT_FALSE(unset->json["model"].contains("preset"));
  EXPECT_EQ(read({"train.epcohs=null"}).status().message(),
            "--set train.epcohs=null: there is no such field; did you mean "
            "\"train.epochs\"?");
}

TEST(RunConfigTest, TakesASingleValueForAList) {
  const absl::StatusOr<RunConfig> config = WithOverrides(
      {"data.train=x.json", "data.dev=a b.json", "train.seeds=7"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->data.train, ElementsAre("x.json"));
  EXPECT_THAT(config->data.dev, ElementsAre("a b.json"));
  EXPECT_THAT(config->train.seeds, ElementsAre(7));
}

struct BadOverride {
  std::string text;
  std::vector<std::string> message_parts;
};

TEST(RunConfigTest, RejectsBadOverrides) {
  const std::vector<BadOverride> table = {
      {"train.learning_rate", {"--set train.learning_rate", "field and its"}},
      {"=3", {"--set =3", "field and its value"}},
      {"train..steps=3", {"field and its value"}},
      {"task.name=3", {"no object", "\"wikihop\""}},
      {"train.learning_rte=3",
       {"with --set", "\"learning_rte\"", "learning_rate"}},
      {"trian.steps=3", {"\"trian\"", "\"train\""}},
      {"model.hiden_size=3", {"\"hiden_size\"", "\"hidden_size\""}},
      {"output=3", {"output", "string", "3"}},
      {"hotpotqa.x=3", {"\"hotpotqa\""}},
  };
  for (const BadOverride& bad : table) {
    const absl::StatusOr<RunConfig> config = WithOverrides({bad.text});
    ASSERT_FALSE(config.ok()) << bad.text;
    EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
    for (const std::string& part : bad.message_parts) {
      EXPECT_THAT(config.status().message(), HasSubstr(part)) << bad.text;
    }
  }
}

// --- Mistakes ---------------------------------------------------------------

struct BadConfig {
  // The fields of the file beside the smallest configuration's.
  std::string fields;
  std::vector<std::string> message_parts;
};

void PrintTo(const BadConfig& bad, std::ostream* stream) {
  *stream << bad.fields;
}

class BadConfigTest : public testing::TestWithParam<BadConfig> {};

TEST_P(BadConfigTest, IsRejectedWithPlaceExpectedAndFound) {
  nlohmann::json json = nlohmann::json::parse(kSmallest);
  json.update(nlohmann::json::parse(GetParam().fields));
  const absl::StatusOr<RunConfig> config = RunConfigFromJson(json, "run.json");
  ASSERT_FALSE(config.ok()) << GetParam().fields;
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(config.status().message(), HasSubstr("run.json"));
  for (const std::string& part : GetParam().message_parts) {
    EXPECT_THAT(config.status().message(), HasSubstr(part));
  }
}

INSTANTIATE_TEST_SUITE_P(
    UnexpandedPaths, BadConfigTest,
    testing::Values(
        BadConfig{R"({"output": "~/runs/y"})",
                  {"output should be a whole path, but is \"~/runs/y\", whose "
                   "~ is not expanded"}},
        BadConfig{R"({"output": "~"})", {"output should be a whole path"}},
        BadConfig{R"({"init": "~/bert"})", {"init should be a whole path"}},
        BadConfig{R"({"model": {"path": "~/etc_config.json"}})",
                  {"model.path should be a whole path"}},
        BadConfig{R"({"tokenizer": {"vocabulary": "~/vocab.txt"}})",
                  {"tokenizer.vocabulary should be a whole path"}},
        BadConfig{R"({"data": {"train": ["a.json", "~/b.json"]}})",
                  {"data.train should be a whole path"}},
        BadConfig{R"({"data": {"dev": "~/b.json"}})",
                  {"data.dev should be a whole path"}},
        BadConfig{R"({"data": {"sentences": "~/punkt"}})",
                  {"data.sentences should be a whole path"}},
        BadConfig{R"({"train": {"memory_directory": "~/disk"}})",
                  {"train.memory_directory should be a whole path"}}));

INSTANTIATE_TEST_SUITE_P(
    UnknownFields, BadConfigTest,
    testing::Values(
        BadConfig{R"({"optimiser": {}})", {"\"optimiser\"", "\"optimizer\""}},
        BadConfig{R"({"model": {"preset": "base", "num_layers": 2}})",
                  {"model", "\"num_layers\""}},
        BadConfig{R"({"model": {"presett": "base"}})",
                  {"\"presett\"", "\"preset\""}},
        BadConfig{R"({"tokenizer": {"lowercase": true}})",
                  {"tokenizer", "\"lowercase\"", "\"lower_case\""}},
        BadConfig{R"({"data": {"worker": 1}})", {"data", "\"workers\""}},
        BadConfig{R"({"optimizer": {"beta_1": 0.9}})", {"\"beta1\""}},
        BadConfig{R"({"schedule": {"power": 1}})", {"schedule", "\"power\""}},
        BadConfig{R"({"train": {"seed": [1]}})", {"train", "\"seeds\""}}));

INSTANTIATE_TEST_SUITE_P(
    WrongTypes, BadConfigTest,
    testing::Values(
        BadConfig{R"({"task": 3})", {"task", "string", "3"}},
        BadConfig{R"({"task": null})", {"task", "string", "null"}},
        BadConfig{R"({"train": []})", {"train", "object"}},
        BadConfig{R"({"model": "base"})", {"model", "object"}},
        BadConfig{R"({"model": {"hidden_size": "768"}})", {"hidden_size"}},
        BadConfig{R"({"train": {"steps": 1.5}})", {"train.steps", "1.5"}},
        BadConfig{R"({"train": {"learning_rate": "fast"}})",
                  {"train.learning_rate", "number", "\"fast\""}},
        BadConfig{R"({"train": {"seeds": "1"}})",
                  {"train.seeds", "integer or an array of such", "\"1\""}},
        BadConfig{R"({"data": {"dev": ["a.json", 3]}})", {"data.dev[1]", "3"}},
        BadConfig{R"({"data": {"train": 3}})",
                  {"data.train", "string or an array of such", "3"}}));

INSTANTIATE_TEST_SUITE_P(
    OutOfRange, BadConfigTest,
    testing::Values(
        BadConfig{R"({"residual_attention": "on"})",
                  {"residual_attention",
                   "\"off\" or \"sum\" or \"mean\" or \"decay\" or \"gate\"",
                   "\"on\""}},
        BadConfig{R"({"residual_attention": "decay=0.5"})",
                  {"residual_attention", "\"decay=0.5\""}},
        BadConfig{
            R"({"residual_attention": "decay",
                "model": {"preset": "base", "residual_decay": 0.4}})",
            {"model.residual_decay", "above 0.43", "12 layers", "0.4"}},
        BadConfig{
            R"({"model": {"preset": "base", "residual_attention": "decay",
                          "residual_decay": 0.4}})",
            {"model.residual_decay", "12 layers", "0.4"}},
        BadConfig{R"({"model": {"preset": "base", "residual_decay": 1}})",
                  {"model.residual_decay", "in (0, 1)", "1"}},
        BadConfig{R"({"model": {"preset": "base", "residual_gate_init": "x"}})",
                  {"model.residual_gate_init", "number", "\"x\""}},
        BadConfig{R"({"train": {"gate_learning_rate_factor": 0}})",
                  {"train.gate_learning_rate_factor", "more than 0", "0"}},
        BadConfig{R"({"model": {"preset": "bas"}})",
                  {"model.preset", "\"bas\"", "did you mean \"base\"?"}},
        BadConfig{R"({"model": {"preset": "base", "path": "x"}})",
                  {"path", "preset"}},
        BadConfig{R"({"model": {"preset": "base", "hidden_size": 0}})",
                  {"model.hidden_size should be at least 1, but is 0"}},
        BadConfig{R"({"model": {"preset": "base",
                                "residual_attention": "sume"}})",
                  {"model.residual_attention should be \"off\" or \"sum\"",
                   "\"sume\"; did you mean \"sum\"?"}},
        BadConfig{R"({"model": {}})", {"model.vocab_size", "absent"}},
        BadConfig{R"({"tokenizer": {"type": "word_piece"}})",
                  {"tokenizer.type", "did you mean \"wordpiece\""}},
        BadConfig{R"({"tokenizer": {"type": "dictionary"}})",
                  {"tokenizer.type", "\"huggingface\"", "\"dictionary\""}},
        BadConfig{R"({"data": {"train": ""}})",
                  {"data.train should name files, but has an empty name"}},
        BadConfig{R"({"data": {"dev": ["a.json", ""]}})",
                  {"data.dev should name files, but has an empty name"}},
        BadConfig{R"({"data": {"max_long_length": 0}})",
                  {"data.max_long_length", "at least 1", "0"}},
        BadConfig{R"({"data": {"max_global_length": 0}})",
                  {"data.max_global_length"}},
        BadConfig{R"({"data": {"workers": 0}})", {"data.workers"}},
        BadConfig{R"({"data": {"workers": 1000000}})",
                  {"data.workers", "at most 1024"}},
        BadConfig{R"({"data": {"max_long_length": 100000000000}})",
                  {"data.max_long_length", "at most 1048576"}},
        BadConfig{R"({"data": {"max_record_megabytes": 0}})",
                  {"data.max_record_megabytes", "at least 1"}},
        BadConfig{R"({"train": {"batch_size": 100000000000}})",
                  {"train.batch_size", "at most 1000000000"}},
        BadConfig{R"({"train": {"threads": 1000000}})",
                  {"train.threads", "at most 1024"}},
        // Sums of numbers of updates would be too large for an int64_t.
        BadConfig{R"({"train": {"evaluate_every": 9223372036854775807}})",
                  {"train.evaluate_every", "at most 1000000000000"}},
        BadConfig{R"({"train": {"checkpoint_every": 9223372036854775807}})",
                  {"train.checkpoint_every", "at most 1000000000000"}},
        BadConfig{R"({"schedule": {"start_warmup_step": 9223372036854775807}})",
                  {"schedule.start_warmup_step", "at most 1000000000000"}},
        BadConfig{R"({"data": {"cache_megabytes": -1}})",
                  {"data.cache_megabytes"}},
        BadConfig{R"({"data": {"bucket_batches": 0}})",
                  {"data.bucket_batches"}},
        BadConfig{R"({"data": {"on_bad_record": "ignore"}})",
                  {"data.on_bad_record", "\"ignore\""}},
        BadConfig{R"({"optimizer": {"type": "sgd"}})",
                  {"optimizer.type", "\"sgd\""}},
        BadConfig{R"({"optimizer": {"weight_decay": -1}})",
                  {"optimizer.weight_decay"}},
        BadConfig{R"({"optimizer": {"beta1": 1}})",
                  {"optimizer.beta1", "[0, 1)"}},
        BadConfig{R"({"optimizer": {"beta2": -0.1}})", {"optimizer.beta2"}},
        BadConfig{R"({"optimizer": {"epsilon": 0}})", {"optimizer.epsilon"}},
        BadConfig{R"({"optimizer": {"clip_norm": -1}})",
                  {"optimizer.clip_norm"}},
        BadConfig{R"({"schedule": {"warmup_proportion": 1.1}})",
                  {"schedule.warmup_proportion", "[0, 1]"}},
        BadConfig{R"({"schedule": {"poly_power": -1}})",
                  {"schedule.poly_power"}},
        BadConfig{R"({"schedule": {"start_warmup_step": -1}})",
                  {"schedule.start_warmup_step"}},
        BadConfig{R"({"train": {"learning_rate": 0}})",
                  {"train.learning_rate", "more than 0"}},
        BadConfig{R"({"train": {"batch_size": 0}})", {"train.batch_size"}},
        BadConfig{R"({"train": {"micro_batch_size": 0}})",
                  {"train.micro_batch_size"}},
        BadConfig{R"({"train": {"batch_size": 2, "micro_batch_size": 3}})",
                  {"train.micro_batch_size", "batch_size (2)", "3"}},
        BadConfig{R"({"train": {"epochs": 0}})", {"train.epochs"}},
        BadConfig{R"({"train": {"steps": -1}})", {"train.steps"}},
        BadConfig{R"({"train": {"num_train_examples": 0}})",
                  {"train.num_train_examples"}},
        BadConfig{R"({"train": {"max_examples": -1}})", {"train.max_examples"}},
        BadConfig{R"({"train": {"watch_scores": -1}})", {"train.watch_scores"}},
        BadConfig{R"({"train": {"evaluate_every": -1}})",
                  {"train.evaluate_every"}},
        BadConfig{R"({"train": {"checkpoint_every": -1}})",
                  {"train.checkpoint_every"}},
        BadConfig{R"({"train": {"evaluation_batch_size": 0}})",
                  {"train.evaluation_batch_size"}},
        BadConfig{R"({"train": {"seeds": []}})", {"train.seeds", "empty"}},
        BadConfig{R"({"train": {"seeds": [1, 1]}})", {"train.seeds", "twice"}},
        BadConfig{R"({"train": {"seeds": [-1]}})", {"train.seeds"}},
        BadConfig{R"({"train": {"threads": -1}})", {"train.threads"}},
        BadConfig{R"({"train": {"precision": "fp16"}})",
                  {"train.precision", "bf16"}},
        BadConfig{R"({"train": {"score_storage": "keep"}})",
                  {"train.score_storage", "reverse"}}));

TEST(RunConfigTest, RejectsWhatIsNoObject) {
  for (const char* text : {"[]", "3", "null"}) {
    EXPECT_EQ(FromText(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(RunConfigTest, NeedsATaskAndAModel) {
  EXPECT_THAT(FromText(R"({"model": {"preset": "base"}})").status().message(),
              HasSubstr("task"));
  EXPECT_THAT(FromText(R"({"task": "wikihop"})").status().message(),
              HasSubstr("model"));
}

// With a misspelt task, the object of the task's options is an unknown field:
// the message has to name the misspelt one, not the right one.
TEST(RunConfigTest, SaysThatThereIsNoSuchTask) {
  const auto config = RunConfigFromJson(
      nlohmann::json::parse(R"({"task": "wikihopp", "wikihop": {},
                                "model": {"preset": "base"}})"),
      "run.json", [](const std::string& name) {
        return absl::NotFoundError(absl::StrCat("no task ", name));
      });
  EXPECT_EQ(config.status(),
            absl::InvalidArgumentError("run.json: task: no task wikihopp"));
}

TEST(RunConfigTest, NamesTheFileThatIsAbsent) {
  EXPECT_THAT(ReadRunConfig("/nowhere/run.json", {}).status().message(),
              HasSubstr("/nowhere/run.json"));
  EXPECT_THAT(
      FromText(R"({"task": "wikihop", "init": "/nowhere"})").status().message(),
      HasSubstr("/nowhere: there is no such file or directory"));
}

TEST(RunConfigTest, NamesTheLineOfBrokenJson) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("run.json", "{\n\"task\": \n}");
  EXPECT_THAT(ReadRunConfig(path, {}).status().message(),
              HasSubstr("run.json:3"));
}

}  // namespace
}  // namespace etc
