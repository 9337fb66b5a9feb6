// The fields of a configuration for people: doc/configuration.md has them as
// `realetc fields --format markdown` prints them, and the ways to choose some.
#include "tasks/config/field_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "etc/config.h"
#include "nlohmann/json.hpp"
#include "tests/support/row_options.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> NamesOf(const std::vector<FieldDescription>& fields) {
  std::vector<std::string> names;
  for (const FieldDescription& field : fields) {
    names.push_back(field.name);
  }
  return names;
}

std::vector<std::string> Selected(const std::string& pattern) {
  const auto selected = SelectFields(ConfigFields(), pattern);
  EXPECT_TRUE(selected.ok()) << selected.status();
  return selected.ok() ? NamesOf(*selected) : std::vector<std::string>();
}

TEST(FieldListTest, ThePageHasTheTable) {
  const auto page = ReadFile(ETC_SOURCE_DIR "/doc/configuration.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string table =
      "| field | default | meaning |\n| --- | --- | --- |\n" +
      FieldsAsMarkdown(ConfigFields()) + "\n";
  EXPECT_TRUE(absl::StrContains(*page, table))
      << "The table of doc/configuration.md should be\n"
      << table;
}

TEST(FieldListTest, EveryFieldHasASentence) {
  for (const FieldDescription& field : ConfigFields()) {
    EXPECT_FALSE(field.meaning.empty()) << field.name;
    EXPECT_EQ(field.meaning.find('|'), std::string::npos) << field.name;
    EXPECT_FALSE(field.type.empty()) << field.name;
  }
}

TEST(FieldListTest, BoundsAreExact) {
  const auto fields = SelectFields(ConfigFields(), "data.max_long_length");
  ASSERT_TRUE(fields.ok()) << fields.status();
  EXPECT_THAT(fields->front().bounds, HasSubstr("at most 1048576"));
}

TEST(FieldListTest, HasEveryFieldOfTheModel) {
  std::set<std::string> expected = {"model.preset", "model.path"};
  const auto defaults = nlohmann::json::parse(EtcConfigToJson(EtcConfig()));
  for (const auto& [name, value] : defaults.items()) {
    expected.insert("model." + name);
  }
  std::set<std::string> names;
  for (const std::string& name : NamesOf(ConfigFields())) {
    if (name.starts_with("model.")) {
      EXPECT_TRUE(names.insert(name).second) << name;
    }
  }
  EXPECT_EQ(names, expected);
}

TEST(FieldListTest, DescribesEachKindOfRow) {
  std::vector<std::string> rows;
  for (const FieldDescription& field : DescribeTable<RowOptions>("rows")) {
    rows.push_back(absl::StrCat(field.name, "; ", field.type, "; ",
                                field.default_value, "; ", field.bounds));
  }
  EXPECT_THAT(
      rows, ElementsAre(
                "rows.shape; text; `\"flat\"`; \"round\" or \"flat\"",
                "rows.other_shape; text; by its mark; \"round\" or \"flat\"",
                "rows.width; whole number; `3`; at least 1, at most 2147483647",
                "rows.share; number; that of the data; more than 0, less "
                "than 1",
                "rows.rows; whole number; `null`; at least 1, at most 9",
                "rows.color; text; `\"red\"`; \"red\" or \"green\" or "
                "\"blue\"",
                "rows.mark; text; `\",\"`; one character"));
}

TEST(FieldListTest, SelectsByNameObjectPatternAndPart) {
  EXPECT_THAT(Selected("train.steps"), ElementsAre("train.steps"));
  EXPECT_THAT(Selected("optimizer"),
              ElementsAre("optimizer.type", "optimizer.weight_decay",
                          "optimizer.beta1", "optimizer.beta2",
                          "optimizer.epsilon", "optimizer.clip_norm"));
  EXPECT_THAT(Selected("*.beta?"),
              ElementsAre("optimizer.beta1", "optimizer.beta2"));
  EXPECT_THAT(Selected("core_stor"), ElementsAre("train.score_storage"));
}

TEST(FieldListTest, NamesTheNearestFieldWhereThereIsNone) {
  const auto message = [](const std::string& pattern) {
    const auto selected = SelectFields(ConfigFields(), pattern);
    EXPECT_EQ(selected.status().code(), absl::StatusCode::kNotFound);
    return std::string(selected.status().message());
  };
  EXPECT_THAT(message("train.learning_rte"),
              HasSubstr("did you mean \"train.learning_rate\"?"));
  EXPECT_THAT(message("learning_rte"),
              HasSubstr("did you mean \"learning_rate\"?"));
  EXPECT_THAT(message("zzzzzzzzzz"), HasSubstr("`realetc fields` lists all"));
}

TEST(FieldListTest, PrintsLinesForATerminal) {
  const std::vector<FieldDescription> fields = {
      {.name = "a.b",
       .type = "number",
       .default_value = "`5e-5`",
       .bounds = "more than 0",
       .meaning = "uses `x[0]` as [the page](cost.md#way) says: of words that "
                  "are many enough to need a second line"}};
  EXPECT_EQ(FieldsAsText(fields),
            "a.b  (number; default 5e-5; more than 0)\n"
            "    uses x[0] as the page (doc/cost.md) says: of words that are "
            "many enough to\n"
            "    need a second line\n");
  EXPECT_EQ(FieldsAsMarkdown(fields, "a."),
            "| `b` | `5e-5` | uses `x[0]` as [the page](cost.md#way) says: of "
            "words that are many enough to need a second line |\n");
  const auto json = nlohmann::json::parse(FieldsAsJson(fields));
  EXPECT_EQ(json[0]["default"], "5e-5");
  EXPECT_EQ(json[0]["bounds"], "more than 0");
}

TEST(FieldListTest, SaysTheFilesOfLinks) {
  const auto text_of = [](const std::string& meaning) {
    const std::string text =
        FieldsAsText({{.name = "a", .type = "t", .meaning = meaning}});
    return text.substr(text.find('\n') + 5);
  };
  EXPECT_EQ(text_of("how ([formulas](model.md#41-residualblock))"),
            "how (formulas (doc/model.md))\n");
  EXPECT_EQ(text_of("[a run each](#a-grid-of-settings)"),
            "a run each (doc/configuration.md)\n");
  EXPECT_EQ(text_of("labels, [tasks/tokens](../tasks/tokens/README.md)"),
            "labels, tasks/tokens/README.md\n");
}

TEST(FieldListTest, TellsFieldsOfOneNameApart) {
  const std::vector<FieldDescription> fields = {{.name = "model.layers",
                                                 .type = "number",
                                                 .default_value = "`6`",
                                                 .meaning = "layers",
                                                 .task = "translation"}};
  EXPECT_THAT(FieldsAsText(fields),
              HasSubstr("model.layers of translation  (number; default 6)"));
  EXPECT_EQ(FieldsAsMarkdown(fields),
            "| `model.layers` of `translation` | `6` | layers |\n");
  EXPECT_EQ(nlohmann::json::parse(FieldsAsJson(fields))[0]["task"],
            "translation");
}

TEST(FieldListTest, SaysTypesDefaultsAndBounds) {
  const auto text_of = [](const std::string& name) {
    return FieldsAsText(*SelectFields(ConfigFields(), name));
  };
  EXPECT_THAT(text_of("train.learning_rate"),
              HasSubstr("(number; default 5e-5; more than 0)"));
  EXPECT_THAT(text_of("train.steps"),
              HasSubstr("(whole number or null; default null; at least 0, at "
                        "most 1e12)"));
  EXPECT_THAT(text_of("train.precision"),
              HasSubstr("default \"fp32\"; \"fp32\" or \"bf16\")"));
  EXPECT_THAT(text_of("task"), HasSubstr("(text; required)"));
  EXPECT_THAT(text_of("model.local_radius"),
              HasSubstr("(whole number; default 84; at least 1, at most "
                        "1048576)"));
  EXPECT_THAT(text_of("model.vocab_size"),
              HasSubstr("(whole number; default null; at least 1, at most "
                        "16777216)"));
  EXPECT_THAT(text_of("model.embedding_size"),
              HasSubstr("(whole number or null; default null; at least 1, "));
  EXPECT_THAT(text_of("model.use_pre_activation_order"),
              HasSubstr("(true or false; default false)"));
  EXPECT_THAT(text_of("model.residual_attention"),
              HasSubstr("default \"off\"; \"off\" or \"sum\" or "));
}

}  // namespace
}  // namespace etc
