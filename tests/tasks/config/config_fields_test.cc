// Every field of the configuration, by its table: what a complete file means,
// that a wrong type and a value out of bounds are refused in each, and that
// doc/configuration.md has each with its default.
#include "tasks/config/config_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tasks/config/field_list.h"
#include "tests/support/field_bounds.h"
#include "tests/support/temporary_directory.h"

namespace etc {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
           "dev_fraction": 0, "dev_seed": 5, "dev_records": "none",
           "max_long_length": 2048, "max_global_length": 100, "workers": 3,
           "cache_megabytes": 10, "max_record_megabytes": 7,
           "bucket_batches": 1, "on_bad_record": "skip",
           "sentences": "tables"},
  "optimizer": {"type": "lamb", "weight_decay": 0.1, "beta1": 0.8,
                "beta2": 0.99, "epsilon": 1e-7, "clip_norm": 0},
  "schedule": {"type": "cosine", "warmup_proportion": 0.2, "warmup_steps": 9,
               "poly_power": 2, "start_warmup_step": 5,
               "initial_learning_rate": 1e-7, "min_learning_rate": 1e-9},
  "train": {"learning_rate": 4e-5, "gate_learning_rate_factor": 10,
            "learning_rate_factors": [{"parameters": "head.*", "factor": 3}],
            "frozen": ["encoder.*"], "batch_size": 32, "micro_batch_size": 3,
            "epochs": 1.5, "steps": 100, "num_train_examples": 44000,
            "max_examples": 500, "evaluate_every": 10, "evaluate_at_start": true,
            "main_metric": "em", "main_metric_direction": "min",
            "early_stopping": 4, "early_stopping_improvement": 0.5,
            "checkpoint_every": 7, "checkpoint_minutes": 1.5, "keep_best": 2,
            "keep_last": 3,
            "evaluation_batch_size": 4, "seeds": [3, 1], "threads": 2,
            "device": "cuda:1", "precision": "fp32",
            "score_storage": "store", "memory_plan": "slices",
            "memory_gigabytes": 12.5, "memory_directory": "/scratch",
            "watch_scores": 20,
            "tensorboard": true,
            "shard_optimizer": true,
            "backend": "nccl", "timeout_s": 7.5},
  "wikihop": {"anything": 1},
  "output": "runs/x",
  "grid": {"train.epochs": [2, 3]}
})";

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

TEST(ConfigFieldsTest, ReadsEveryField) {
  const absl::StatusOr<RunConfig> config = FromText(kComplete);
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
  EXPECT_EQ(config->data.dev_fraction, 0);
  EXPECT_EQ(config->data.dev_seed, 5);
  EXPECT_EQ(config->data.dev_records, "none");
  EXPECT_EQ(config->data.max_long_length, 2048);
  EXPECT_EQ(config->data.max_global_length, 100);
  EXPECT_EQ(config->data.workers, 3);
  EXPECT_EQ(config->data.cache_megabytes, 10);
  EXPECT_EQ(config->data.max_record_megabytes, 7);
  EXPECT_EQ(config->data.bucket_batches, 1);
  EXPECT_EQ(config->data.on_bad_record, "skip");
  EXPECT_EQ(config->optimizer.type, "lamb");
  EXPECT_EQ(config->optimizer.weight_decay, 0.1);
  EXPECT_EQ(config->optimizer.beta1, 0.8);
  EXPECT_EQ(config->optimizer.beta2, 0.99);
  EXPECT_EQ(config->optimizer.epsilon, 1e-7);
  EXPECT_EQ(config->optimizer.clip_norm, 0);
  EXPECT_EQ(config->schedule.type, "cosine");
  EXPECT_EQ(config->schedule.warmup_proportion, 0.2);
  EXPECT_EQ(config->schedule.warmup_steps, 9);
  EXPECT_EQ(config->schedule.poly_power, 2);
  EXPECT_EQ(config->schedule.start_warmup_step, 5);
  EXPECT_EQ(config->schedule.initial_learning_rate, 1e-7);
  EXPECT_EQ(config->schedule.min_learning_rate, 1e-9);
  EXPECT_EQ(config->train.learning_rate, 4e-5);
  EXPECT_EQ(config->train.gate_learning_rate_factor, 10);
  EXPECT_THAT(config->train.learning_rate_factors,
              ElementsAre(LearningRateFactor{"head.*", 3}));
  EXPECT_THAT(config->train.frozen, ElementsAre("encoder.*"));
  EXPECT_EQ(config->train.batch_size, 32);
  EXPECT_EQ(config->train.micro_batch_size, 3);
  EXPECT_EQ(config->train.epochs, 1.5);
  EXPECT_EQ(config->train.steps, 100);
  EXPECT_EQ(config->train.num_train_examples, 44000);
  EXPECT_EQ(config->train.max_examples, 500);
  EXPECT_EQ(config->train.evaluate_every, 10);
  EXPECT_TRUE(config->train.evaluate_at_start);
  EXPECT_EQ(config->train.main_metric, "em");
  EXPECT_EQ(config->train.main_metric_direction, "min");
  EXPECT_EQ(config->train.early_stopping, 4);
  EXPECT_EQ(config->train.early_stopping_improvement, 0.5);
  EXPECT_EQ(config->train.checkpoint_every, 7);
  EXPECT_EQ(config->train.checkpoint_minutes, 1.5);
  EXPECT_EQ(config->train.keep_best, 2);
  EXPECT_EQ(config->train.keep_last, 3);
  EXPECT_EQ(config->train.evaluation_batch_size, 4);
  EXPECT_THAT(config->train.seeds, ElementsAre(3, 1));
  EXPECT_EQ(config->train.threads, 2);
  EXPECT_EQ(config->train.device, "cuda:1");
  EXPECT_EQ(config->train.precision, "fp32");
  EXPECT_EQ(config->train.score_storage, "store");
  EXPECT_EQ(config->train.memory_plan, "slices");
  EXPECT_EQ(config->train.memory_gigabytes, 12.5);
  EXPECT_EQ(config->train.memory_directory, "/scratch");
  EXPECT_EQ(config->train.watch_scores, 20);
  EXPECT_TRUE(config->train.tensorboard);
  EXPECT_TRUE(config->train.shard_optimizer);
  EXPECT_EQ(config->train.backend, "nccl");
  EXPECT_EQ(config->train.timeout_s, 7.5);
  EXPECT_EQ(config->task_options.dump(), R"({"anything":1})");
  EXPECT_EQ(config->output, "runs/x");
  EXPECT_EQ(config->grid.dump(), R"({"train.epochs":[2,3]})");
  EXPECT_EQ(config->json.dump(), nlohmann::json::parse(kComplete).dump());
}

// The values of all fields, by their names.
std::map<std::string, nlohmann::json> Values(const RunConfig& config) {
  std::map<std::string, nlohmann::json> values;
  ForEachConfigField(
      config, [&](const std::string& name, const auto&, const auto& value) {
        if constexpr (requires { value.has_value(); }) {
          values[name] = value.has_value() ? nlohmann::json(*value) : "absent";
        } else {
          values[name] = value;
        }
      });
  return values;
}

TEST(ConfigFieldsTest, TheTablesHaveWhatTheFileHas) {
  const absl::StatusOr<RunConfig> config = FromText(kComplete);
  ASSERT_TRUE(config.ok()) << config.status();
  const nlohmann::json file = nlohmann::json::parse(kComplete);
  for (const auto& [name, value] : Values(*config)) {
    const std::vector<std::string> path = absl::StrSplit(name, '.');
    nlohmann::json in_file = file;
    for (const std::string& step : path) {
      ASSERT_TRUE(in_file.contains(step)) << name;
      in_file = nlohmann::json(in_file.at(step));
    }
    EXPECT_EQ(value, in_file) << name;
  }
}

TEST(ConfigFieldsTest, RejectsAWrongTypeInEveryField) {
  for (const auto& [name, ignored] : Values(RunConfig())) {
    const auto config = WithOverrides({name + "={}"});
    EXPECT_THAT(std::string(config.status().message()),
                testing::AllOf(HasSubstr(name + " should be "),
                               HasSubstr("an object")));
  }
}

TEST(ConfigFieldsTest, NamesTheMistakeInAFactor) {
  const auto refusal = [](const std::string& value) {
    return std::string(WithOverrides({"train.learning_rate_factors=" + value})
                           .status()
                           .message());
  };
  EXPECT_THAT(refusal(R"([{"parameters": "head.*"}])"),
              testing::AllOf(HasSubstr("train.learning_rate_factors should be"),
                             HasSubstr("factors[0].factor")));
  EXPECT_THAT(refusal(R"([{"parameters": "head.*", "factor": 0}])"),
              HasSubstr("more than 0"));
  EXPECT_THAT(refusal(R"([{"parametres": "head.*", "factor": 1}])"),
              HasSubstr("parametres"));
  EXPECT_THAT(refusal("3"), HasSubstr("a list of objects"));
}

// Each bound of the tables, just missed.
TEST(ConfigFieldsTest, HoldsEveryFieldToItsBounds) {
  int64_t bounds = 0;
  const auto expect_refused = [&](const std::string& name, double value) {
    ++bounds;
    // All digits: the limits of whole numbers have many.
    const auto config =
        WithOverrides({absl::StrFormat("%s=%.17g", name, value)});
    EXPECT_THAT(std::string(config.status().message()),
                HasSubstr(name + " should be "))
        << value;
  };
  const RunConfig defaults;
  ForEachConfigField(
      defaults, [&](const std::string& name, const auto& field, const auto&) {
        ForEachBadValue(field.rule,
                        [&](double value) { expect_refused(name, value); });
        if (!field.rule.one_of.empty()) {
          const auto config = WithOverrides({name + "=nonsense"});
          EXPECT_THAT(std::string(config.status().message()),
                      testing::AllOf(HasSubstr(name + " should be "),
                                     HasSubstr("\"nonsense\"")));
        }
      });
  EXPECT_GT(bounds, 20);
}

// --- doc/configuration.md ----------------------------------------------------

struct DocumentedField {
  std::string name;
  std::string default_value;  // JSON, or "required"
};

// " `3` " -> "3"
std::string WithoutMarks(const std::string& cell) {
  const size_t first = cell.find_first_not_of(" `");
  return cell.substr(first, cell.find_last_not_of(" `") + 1 - first);
}

// The rows "| `train.epochs` | `3` | ..." under "## Fields".
std::vector<DocumentedField> DocumentedFields() {
  std::ifstream stream(ETC_SOURCE_DIR "/doc/configuration.md");
  std::vector<DocumentedField> fields;
  bool in_section = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("## ")) {
      in_section = line == "## Fields";
    }
    // "", name, default, meaning, ""
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (in_section && cells.size() == 5 && line.starts_with("| `")) {
      fields.push_back({WithoutMarks(cells[1]), WithoutMarks(cells[2])});
    }
  }
  return fields;
}

TEST(ConfigFieldsTest, ThePageHasEveryField) {
  // The grid has no table, and those of the model are in field_list_test.cc.
  std::vector<std::string> expected = {"grid"};
  const RunConfig config;
  ForEachConfigField(config, [&](const std::string& name, const auto&,
                                 const auto&) { expected.push_back(name); });
  std::vector<std::string> documented;
  for (const DocumentedField& field : DocumentedFields()) {
    if (!field.name.starts_with("model.")) {
      documented.push_back(field.name);
    }
  }
  EXPECT_THAT(documented, testing::UnorderedElementsAreArray(expected));
}

TEST(ConfigFieldsTest, ThePageHasTheDefaults) {
  const absl::StatusOr<RunConfig> defaults = FromText(kSmallest);
  ASSERT_TRUE(defaults.ok()) << defaults.status();
  for (const DocumentedField& field : DocumentedFields()) {
    SCOPED_TRACE(field.name);
    // kSmallest has a task and a preset, which sets the model.
    if (field.default_value == "required" || field.name.starts_with("model.")) {
      continue;
    }
    const absl::StatusOr<RunConfig> config =
        WithOverrides({field.name + "=" + field.default_value});
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(Values(*config), Values(*defaults));
  }
}

// "Every field is compared but `output`, ... ."
TEST(ConfigFieldsTest, ThePageHasTheFieldsThatMayChange) {
  std::ifstream stream(ETC_SOURCE_DIR "/doc/configuration.md");
  const std::string text((std::istreambuf_iterator<char>(stream)),
                         std::istreambuf_iterator<char>());
  const size_t begin = text.find("field is compared but ");
  ASSERT_NE(begin, std::string::npos);
  const std::string sentence =
      text.substr(begin, text.find("`. ", begin) + 1 - begin);
  const RunConfig config;
  ForEachConfigField(
      config, [&](const std::string& name, const auto& field, const auto&) {
        EXPECT_EQ(sentence.find("`" + name + "`") != std::string::npos,
                  !field.rule.may_change.empty())
            << name;
      });
}

}  // namespace
}  // namespace etc
