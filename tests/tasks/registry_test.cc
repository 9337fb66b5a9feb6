// The fields of each task's options: those that its reader asks for, as its
// page has them. The names of its global tokens: those of its demo's examples.
// Files that CONTRIBUTING.md asks of each task: those of the demo.
#include "tasks/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "etc/encoder_decoder/config.h"
#include "nlohmann/json.hpp"
#include "tasks/config/field_list.h"
#include "tasks/data/example.h"
#include "tasks/data/example_source.h"
#include "tasks/runs/task_setup.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/train/open_data.h"

namespace etc {
namespace {

// The fields that a task's reader asks for, which its message about one that
// does not exist lists.
std::set<std::string> FieldsThatAreRead(const TaskEntry& task) {
  RunConfig config;
  config.source = "test";
  config.model.vocab_size = 100;
  config.train.steps = 1;
  config.task_options = {{"qqqqqqqqqqqqqqqqqqqqqqqqqqqq", 1}};
  if (task.name == "glue") {
    config.task_options["name"] = "cola";
  }
  const auto head = task.make_head(config);
  const std::string message(head.status().message());
  constexpr char kBegin[] = "its fields are ";
  const size_t begin = message.find(kBegin);
  EXPECT_NE(begin, std::string::npos) << task.name << ": " << message;
  if (begin == std::string::npos) {
    return {};
  }
  return absl::StrSplit(message.substr(begin + sizeof(kBegin) - 1), ", ");
}

void ExpectTaskHasItsFields(const TaskEntry& task) {
  SCOPED_TRACE(task.name);
  std::set<std::string> described;
  for (const FieldDescription& field : task.fields) {
    EXPECT_TRUE(
        described.insert(field.name.substr(task.name.size() + 1)).second)
        << field.name;
    EXPECT_FALSE(field.type.empty()) << field.name;
    EXPECT_FALSE(field.default_value.empty()) << field.name;
    EXPECT_FALSE(field.meaning.empty()) << field.name;
  }
  EXPECT_EQ(described, FieldsThatAreRead(task));
  const auto page =
      ReadFile(absl::StrCat(ETC_SOURCE_DIR "/tasks/", task.name, "/README.md"));
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string rows = FieldsAsMarkdown(task.fields, task.name + ".");
  EXPECT_TRUE(absl::StrContains(*page, "| --- | --- | --- |\n" + rows))
      << "The table of options should be\n"
      << rows;
}

TEST(TaskFieldsTest, AreThoseThatAreReadAndThoseOfThePage) {
  for (const TaskEntry& task : Tasks()) {
    ExpectTaskHasItsFields(task);
  }
  const auto pretraining = FindTask("pretrain");
  ASSERT_TRUE(pretraining.ok()) << pretraining.status();
  ExpectTaskHasItsFields(**pretraining);
  const auto translation = FindTask("translation");
  ASSERT_TRUE(translation.ok()) << translation.status();
  EXPECT_TRUE((*translation)->has_own_model);
  const auto page = ReadFile(ETC_SOURCE_DIR "/tasks/translation/README.md");
  ASSERT_TRUE(page.ok()) << page.status();
  for (const std::string& rows :
       {FieldsAsMarkdown((*translation)->fields, "translation."),
        FieldsAsMarkdown((*translation)->model_fields, "model.")}) {
    EXPECT_TRUE(absl::StrContains(*page, "| --- | --- | --- |\n" + rows + "\n"))
        << "A table should be\n"
        << rows;
  }
}

TEST(TaskFieldsTest, OfTheModelOfTranslationAreThoseThatAreRead) {
  const auto translation = FindTask("translation");
  ASSERT_TRUE(translation.ok()) << translation.status();
  const auto model =
      nlohmann::json::parse(EncoderDecoderConfigToJson(EncoderDecoderConfig()));
  std::set<std::string> names;
  for (const FieldDescription& field : (*translation)->model_fields) {
    names.insert(field.name);
  }
  EXPECT_EQ(names.size(), model.size());
  for (const auto& [name, value] : model.items()) {
    EXPECT_TRUE(names.contains("model." + name)) << name;
  }
}

TEST(TaskFieldsTest, NameTheTasksThatHoldOutRecords) {
  const auto field = SelectFields(AllFields(), "data.dev_fraction");
  ASSERT_TRUE(field.ok()) << field.status();
  for (const TaskEntry& entry : Tasks()) {
    EXPECT_EQ(absl::StrContains(field->front().meaning,
                                absl::StrCat("`", entry.name, "`")),
              entry.holds_out_records)
        << entry.name;
  }
}

TEST(TaskFieldsTest, HaveANameForEachTask) {
  const std::vector<FieldDescription> fields = AllFields();
  const auto task = std::find_if(
      fields.begin(), fields.end(),
      [](const FieldDescription& field) { return field.name == "task"; });
  ASSERT_NE(task, fields.end());
  std::vector<std::string> names = {"pretrain", "translation"};
  for (const TaskEntry& entry : Tasks()) {
    names.push_back(entry.name);
  }
  EXPECT_THAT(task->words, testing::UnorderedElementsAreArray(names));
  for (const std::string& name : names) {
    EXPECT_TRUE(absl::StrContains(task->bounds, "\"" + name + "\"")) << name;
  }
}

TEST(TaskFilesTest, AreThoseThatTheDemoReads) {
  for (const TaskEntry& entry : Tasks()) {
    std::multiset<std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(
             absl::StrCat(ETC_SOURCE_DIR "/tasks/", entry.name, "/sample"))) {
      const std::string name = file.path().filename();
      files.insert(name);
      files.insert(name.substr(0, name.find('.') + 1));
    }
    for (const char* name : {"demo.json", "demo.py", "vocab.txt"}) {
      EXPECT_EQ(files.count(name), 1) << entry.name << ": " << name;
    }
    // tasks/demo.sh takes all files with these names.
    for (const char* part : {"train.", "dev."}) {
      EXPECT_EQ(files.count(part), 1) << entry.name << ": " << part;
    }
  }
}

void PrefixAll(std::vector<std::string>* paths) {
  for (std::string& path : *paths) {
    path = absl::StrCat(ETC_SOURCE_DIR "/", path);
  }
}

TEST(GlobalTokenNamesTest, NameAllGlobalTokensOfTheDemos) {
  int64_t named = 0;
  for (const TaskEntry& entry : Tasks()) {
    SCOPED_TRACE(entry.name);
    auto config = ReadTaskConfig(absl::StrCat(ETC_SOURCE_DIR "/tasks/",
                                              entry.name, "/configs/demo.json"),
                                 {});
    ASSERT_TRUE(config.ok()) << config.status();
    config->tokenizer.vocabulary =
        absl::StrCat(ETC_SOURCE_DIR "/", config->tokenizer.vocabulary);
    PrefixAll(&config->data.train);
    PrefixAll(&config->data.dev);
    const auto setup = SetUpTraining(&*config);
    ASSERT_TRUE(setup.ok()) << setup.status();
    const std::vector<GlobalTokenName> names = setup->task->GlobalTokenNames();
    // BERT's global tokens are the text.
    EXPECT_EQ(names.empty(), !config->model.has_long_tokens);
    std::set<int32_t> ids = {FindSpecialIds(*setup->tokenizer).cls};
    for (const GlobalTokenName& name : names) {
      EXPECT_TRUE(ids.insert(name.id).second) << name.name;
    }
    const auto records =
        OpenRecords(*setup->task, {.patterns = config->data.dev});
    ASSERT_TRUE(records.ok()) << records.status();
    const auto examples = (*records)->Make(RequestForEvaluation(0));
    ASSERT_TRUE(examples.ok()) << examples.status();
    for (const auto& example : *examples) {
      for (const int32_t id : example->global_token_ids) {
        EXPECT_TRUE(names.empty() || ids.contains(id)) << id;
        named += names.empty() ? 0 : 1;
      }
    }
  }
  EXPECT_GT(named, 0);
}

}  // namespace
}  // namespace etc
