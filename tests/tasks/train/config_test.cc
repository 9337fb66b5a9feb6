// The fine-tuning configuration: what a complete one means, what each field
// defaults to, how --set changes it, and that every mistake is reported with
// its place, what was expected and what was found. Whether the files that it
// names exist is tested where they are opened, but for the model's.
#include "tasks/train/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "attention/kernels/bfloat16.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kSmallest[] =
    R"({"task": "wikihop", "model": {"preset": "base"}})";

constexpr char kComplete[] = R"({
  "task": "wikihop",
  "model": {"preset": "base", "num_hidden_layers": 2, "embedding_size": 64},
  "init": "",
  "residual_attention": "mean",
  "tokenizer": {"type": "sentencepiece", "vocabulary": "a.model",
                "lower_case": false, "split_punctuation": true},
  "data": {"train": ["a.json", "b.json"], "dev": ["c.json"],
           "max_long_length": 2048, "max_global_length": 100, "workers": 3,
           "cache_megabytes": 10, "bucket_batches": 1,
           "on_bad_record": "skip"},
  "optimizer": {"type": "lamb", "weight_decay": 0.1, "beta1": 0.8,
                "beta2": 0.99, "epsilon": 1e-7, "clip_norm": 0},
  "schedule": {"warmup_proportion": 0.2, "poly_power": 2,
               "start_warmup_step": 5},
  "train": {"learning_rate": 4e-5, "batch_size": 32, "micro_batch_size": 3,
            "epochs": 1.5, "steps": 100, "num_train_examples": 44000,
            "evaluate_every": 10, "checkpoint_every": 7,
            "evaluation_batch_size": 4, "seeds": [3, 1], "threads": 2,
            "precision": "fp32",
            "score_storage": "store"},
  "wikihop": {"anything": 1},
  "output": "runs/x"
})";

absl::StatusOr<FinetuneConfig> FromText(const std::string& text) {
  return FinetuneConfigFromJson(
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false),
      "run.json");
}

absl::StatusOr<FinetuneConfig> WithOverrides(
    const std::vector<std::string>& overrides) {
  TemporaryDirectory directory;
  return ReadFinetuneConfig(directory.Write("run.json", kSmallest), overrides);
}

TEST(FinetuneConfigTest, ReadsEveryField) {
  const absl::StatusOr<FinetuneConfig> config = FromText(kComplete);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->task, "wikihop");
  EXPECT_EQ(config->model.hidden_size, 768);
  EXPECT_EQ(config->model.num_hidden_layers, 2);
  EXPECT_EQ(config->model.embedding_size, 64);
  EXPECT_EQ(config->model.residual_attention, "mean");
  EXPECT_EQ(config->residual_attention, "mean");
  EXPECT_EQ(config->tokenizer.type, "sentencepiece");
  EXPECT_EQ(config->tokenizer.vocabulary, "a.model");
  EXPECT_FALSE(config->tokenizer.lower_case);
  EXPECT_TRUE(config->tokenizer.split_punctuation);
  EXPECT_THAT(config->data.train, ElementsAre("a.json", "b.json"));
  EXPECT_THAT(config->data.dev, ElementsAre("c.json"));
  EXPECT_EQ(config->data.max_long_length, 2048);
  EXPECT_EQ(config->data.max_global_length, 100);
  EXPECT_EQ(config->data.workers, 3);
  EXPECT_EQ(config->data.cache_megabytes, 10);
  EXPECT_EQ(config->data.bucket_batches, 1);
  EXPECT_EQ(config->data.on_bad_record, "skip");
  EXPECT_EQ(config->optimizer.type, "lamb");
  EXPECT_EQ(config->optimizer.weight_decay, 0.1);
  EXPECT_EQ(config->optimizer.beta1, 0.8);
  EXPECT_EQ(config->optimizer.beta2, 0.99);
  EXPECT_EQ(config->optimizer.epsilon, 1e-7);
  EXPECT_EQ(config->optimizer.clip_norm, 0);
  EXPECT_EQ(config->schedule.warmup_proportion, 0.2);
  EXPECT_EQ(config->schedule.poly_power, 2);
  EXPECT_EQ(config->schedule.start_warmup_step, 5);
  EXPECT_EQ(config->train.learning_rate, 4e-5);
  EXPECT_EQ(config->train.batch_size, 32);
  EXPECT_EQ(config->train.micro_batch_size, 3);
  EXPECT_EQ(config->train.epochs, 1.5);
  EXPECT_EQ(config->train.steps, 100);
  EXPECT_EQ(config->train.num_train_examples, 44000);
  EXPECT_EQ(config->train.evaluate_every, 10);
  EXPECT_EQ(config->train.checkpoint_every, 7);
  EXPECT_EQ(config->train.evaluation_batch_size, 4);
  EXPECT_THAT(config->train.seeds, ElementsAre(3, 1));
  EXPECT_EQ(config->train.threads, 2);
  EXPECT_EQ(config->train.precision, "fp32");
  EXPECT_EQ(config->train.score_storage, "store");
  EXPECT_EQ(config->task_options.dump(), R"({"anything":1})");
  EXPECT_EQ(config->output, "runs/x");
  EXPECT_EQ(config->json.dump(), nlohmann::json::parse(kComplete).dump());
}

TEST(FinetuneConfigTest, KeepsDefaultsForAbsentFields) {
  const absl::StatusOr<FinetuneConfig> config = FromText(kSmallest);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->residual_attention, "off");
  EXPECT_EQ(config->data.max_long_length, 4096);
  EXPECT_EQ(config->optimizer.type, "bert_adamw");
  EXPECT_EQ(config->train.steps, std::nullopt);
  EXPECT_EQ(config->task_options, nlohmann::json::object());
  EXPECT_THAT(config->warnings, IsEmpty());
}

// --- README.md ---------------------------------------------------------------

struct DocumentedField {
  std::string name;
  std::string default_value;  // JSON, or "required"
};

// " `3` " -> "3"
std::string WithoutMarks(const std::string& cell) {
  const size_t first = cell.find_first_not_of(" `");
  return cell.substr(first, cell.find_last_not_of(" `") + 1 - first);
}

// The rows "| `train.epochs` | `3` | ..." under "## Configuration".
std::vector<DocumentedField> DocumentedFields() {
  std::ifstream stream(ETC_SOURCE_DIR "/README.md");
  std::vector<DocumentedField> fields;
  bool in_section = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("## ")) {
      in_section = line == "## Configuration";
    }
    // "", name, default, meaning, ""
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (in_section && cells.size() == 5 && line.starts_with("| `")) {
      fields.push_back({WithoutMarks(cells[1]), WithoutMarks(cells[2])});
    }
  }
  return fields;
}

TEST(FinetuneConfigTest, ReadmeHasEveryField) {
  std::vector<std::string> expected = {"model.path", "model.preset"};
  const nlohmann::json complete = nlohmann::json::parse(kComplete);
  for (const auto& [name, value] : complete.items()) {
    if (name == "model" || name == complete.at("task")) {
      continue;  // documented with the model and with the task
    }
    if (!value.is_object()) {
      expected.push_back(name);
      continue;
    }
    for (const auto& [field, ignored] : value.items()) {
      expected.push_back(name + "." + field);
    }
  }
  std::vector<std::string> documented;
  for (const DocumentedField& field : DocumentedFields()) {
    documented.push_back(field.name);
  }
  EXPECT_THAT(documented, testing::UnorderedElementsAreArray(expected));
}

TEST(FinetuneConfigTest, ReadmeHasTheDefaults) {
  const absl::StatusOr<FinetuneConfig> defaults = FromText(kSmallest);
  ASSERT_TRUE(defaults.ok()) << defaults.status();
  for (const DocumentedField& field : DocumentedFields()) {
    if (field.default_value == "required" || field.name == "model.preset") {
      continue;  // kSmallest has them
    }
    const absl::StatusOr<FinetuneConfig> config =
        WithOverrides({field.name + "=" + field.default_value});
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->init, defaults->init) << field.name;
    EXPECT_EQ(config->residual_attention, defaults->residual_attention);
    EXPECT_EQ(config->tokenizer, defaults->tokenizer) << field.name;
    EXPECT_EQ(config->data, defaults->data) << field.name;
    EXPECT_EQ(config->optimizer, defaults->optimizer) << field.name;
    EXPECT_EQ(config->schedule, defaults->schedule) << field.name;
    EXPECT_EQ(config->train, defaults->train) << field.name;
    EXPECT_EQ(config->output, defaults->output) << field.name;
  }
}

// --- The model --------------------------------------------------------------

TEST(FinetuneConfigTest, LetsInlineFieldsDecideOverTheModelFile) {
  TemporaryDirectory directory;
  const std::string path = directory.Write(
      "etc_config.json",
      R"({"vocab_size": 70, "hidden_size": 48, "residual_attention": "sum"})");
  const absl::StatusOr<FinetuneConfig> config =
      FromText(R"({"task": "wikihop", "model": {"hidden_size": 24, "path": ")" +
               path + "\"}}");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->model.vocab_size, 70);
  EXPECT_EQ(config->model.hidden_size, 24);
  EXPECT_EQ(config->residual_attention, "sum");
}

TEST(FinetuneConfigTest, TakesTheModelOfTheInitialCheckpoint) {
  TemporaryDirectory directory;
  directory.Write("etc_config.json",
                  R"({"vocab_size": 70, "pooler": 1,
                      "residual_attention": "sum"})");
  for (const std::string& init :
       {directory.path(), directory.Write("model.safetensors", "")}) {
    const absl::StatusOr<FinetuneConfig> config = FromText(
        R"({"task": "wikihop", "residual_attention": "off", "init": ")" + init +
        "\"}");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->model.vocab_size, 70);
    EXPECT_EQ(config->residual_attention, "off");
    EXPECT_EQ(config->model.residual_attention, "off");
    EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("\"pooler\"")));
  }
}

// --- Overrides --------------------------------------------------------------

TEST(FinetuneConfigTest, OverridesDecideOverTheFileInTheirOrder) {
  const absl::StatusOr<FinetuneConfig> config = WithOverrides(
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

struct BadOverride {
  std::string text;
  std::vector<std::string> message_parts;
};

TEST(FinetuneConfigTest, RejectsBadOverrides) {
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
    const absl::StatusOr<FinetuneConfig> config = WithOverrides({bad.text});
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
  const absl::StatusOr<FinetuneConfig> config =
      FinetuneConfigFromJson(json, "run.json");
  ASSERT_FALSE(config.ok()) << GetParam().fields;
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(config.status().message(), HasSubstr("run.json"));
  for (const std::string& part : GetParam().message_parts) {
    EXPECT_THAT(config.status().message(), HasSubstr(part));
  }
}

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
        BadConfig{R"({"train": {"seeds": 1}})", {"train.seeds"}},
        BadConfig{R"({"data": {"train": "a.json"}})", {"data.train"}}));

INSTANTIATE_TEST_SUITE_P(
    OutOfRange, BadConfigTest,
    testing::Values(
        BadConfig{
            R"({"residual_attention": "on"})",
            {"residual_attention", "\"off\" or \"sum\" or \"mean\"", "\"on\""}},
        BadConfig{R"({"model": {"preset": "bas"}})", {"preset", "\"bas\""}},
        BadConfig{R"({"model": {"preset": "base", "path": "x"}})",
                  {"path", "preset"}},
        BadConfig{R"({"model": {"preset": "base", "hidden_size": 0}})",
                  {"hidden_size"}},
        BadConfig{R"({"model": {}})", {"model.vocab_size", "absent"}},
        BadConfig{R"({"tokenizer": {"type": "word_piece"}})",
                  {"tokenizer.type", "did you mean \"wordpiece\""}},
        BadConfig{R"({"data": {"max_long_length": 0}})",
                  {"data.max_long_length", "at least 1", "0"}},
        BadConfig{R"({"data": {"max_global_length": 0}})",
                  {"data.max_global_length"}},
        BadConfig{R"({"data": {"workers": 0}})", {"data.workers"}},
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
        BadConfig{R"({"train": {"steps": 0}})", {"train.steps"}},
        BadConfig{R"({"train": {"num_train_examples": 0}})",
                  {"train.num_train_examples"}},
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

TEST(FinetuneConfigTest, WarnsOfBfloat16WhereItIsNotFast) {
  const auto config =
      FinetuneConfigFromJson(nlohmann::json::parse(
                                 R"({"task": "toy", "model": {"vocab_size": 5},
              "train": {"precision": "bf16"}})"),
                             "test");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->train.precision, "bf16");
  if (kernels::Bfloat16ProductsOfThisCpu() ==
      kernels::Bfloat16Products::kFast) {
    EXPECT_THAT(config->warnings, IsEmpty());
  } else {
    EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("train.precision")));
  }
}

TEST(FinetuneConfigTest, RejectsWhatIsNoObject) {
  for (const char* text : {"[]", "3", "null"}) {
    EXPECT_EQ(FromText(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(FinetuneConfigTest, NeedsATaskAndAModel) {
  EXPECT_THAT(FromText(R"({"model": {"preset": "base"}})").status().message(),
              HasSubstr("task"));
  EXPECT_THAT(FromText(R"({"task": "wikihop"})").status().message(),
              HasSubstr("model"));
}

TEST(FinetuneConfigTest, NamesTheFileThatIsAbsent) {
  EXPECT_THAT(ReadFinetuneConfig("/nowhere/run.json", {}).status().message(),
              HasSubstr("/nowhere/run.json"));
  EXPECT_THAT(
      FromText(R"({"task": "wikihop", "init": "/nowhere"})").status().message(),
      HasSubstr("/nowhere: there is no etc_config.json"));
}

TEST(FinetuneConfigTest, NamesTheLineOfBrokenJson) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("run.json", "{\n\"task\": \n}");
  EXPECT_THAT(ReadFinetuneConfig(path, {}).status().message(),
              HasSubstr("run.json:3"));
}

}  // namespace
}  // namespace etc
