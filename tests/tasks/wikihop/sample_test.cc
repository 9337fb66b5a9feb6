// Checks the README's statements about the bundled sample for every instance of
// it: two documents are needed and sufficient, and nothing else gives the
// answer away.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tasks/data/record_file.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/text/text_folding.h"
#include "tasks/wikihop/example.h"
#include "tasks/wikihop/task.h"

namespace etc {
namespace {

std::string SamplePath(const std::string& name) {
  return absl::StrCat(ETC_SOURCE_DIR, "/tasks/wikihop/sample/", name);
}

// Each file is read once.
const std::vector<WikihopRecord>& ReadSample(const std::string& name) {
  static auto* const samples =
      new std::map<std::string, std::vector<WikihopRecord>>();
  const auto [sample, is_new] = samples->try_emplace(name);
  std::vector<WikihopRecord>& records = sample->second;
  if (!is_new) {
    return records;
  }
  const auto file = RecordFile::Open(SamplePath(name));
  EXPECT_TRUE(file.ok()) << file.status();
  for (int64_t i = 0; file.ok() && i < file->size(); ++i) {
    auto record = Wikihop().ParseRecord(*file->Read(i), file->Where(i));
    EXPECT_TRUE(record.ok()) << record.status();
    records.push_back(*std::move(record));
  }
  return records;
}

class WikihopSampleTest : public testing::TestWithParam<std::string> {
 protected:
  const std::vector<WikihopRecord>& records_ = ReadSample(GetParam());
};

// Returns the text of a support after `subject` + `verb`, up to the full stop.
std::string Object(const WikihopRecord& record, const std::string& subject,
                   const std::string& verb) {
  for (const std::string& support : record.supports) {
    const std::string text = LowerCase(support);
    const std::string start = absl::StrCat(subject, verb);
    if (absl::StartsWith(text, start)) {
      return text.substr(start.size(), text.find('.') - start.size());
    }
  }
  return "";
}

TEST_P(WikihopSampleTest, IsAnsweredByTwoDocuments) {
  for (const WikihopRecord& record : records_) {
    const std::string person(absl::StripPrefix(record.query, "country_of "));
    const std::string town = Object(record, person, " lives in ");
    const std::string country = Object(record, town, " is a town in ");
    EXPECT_EQ(country, record.candidates[static_cast<size_t>(*record.label)])
        << record.id;
  }
}

TEST_P(WikihopSampleTest, IsNotAnsweredByOneDocument) {
  for (const WikihopRecord& record : records_) {
    const std::string person(absl::StripPrefix(record.query, "country_of "));
    std::map<std::string, int> documents_of;
    for (const std::string& support : record.supports) {
      const std::string text = LowerCase(support);
      int candidates = absl::StrContains(text, person) ? 1 : 0;
      for (const std::string& candidate : record.candidates) {
        if (absl::StrContains(text, candidate)) {
          ++candidates;
          ++documents_of[candidate];
        }
      }
      EXPECT_EQ(candidates, 1) << record.id << ": " << support;
    }
    for (const std::string& candidate : record.candidates) {
      EXPECT_EQ(documents_of[candidate], 1) << record.id << ": " << candidate;
    }
  }
}

TEST_P(WikihopSampleTest, HasAChanceOfAtMostAQuarter) {
  std::map<std::string, double> answers;
  std::map<int32_t, double> labels;
  for (const WikihopRecord& record : records_) {
    EXPECT_GE(record.candidates.size(), 4u);
    EXPECT_EQ(std::set<std::string>(record.candidates.begin(),
                                    record.candidates.end())
                  .size(),
              record.candidates.size());
    labels[*record.label] += 1.0 / static_cast<double>(records_.size());
    answers[record.candidates[static_cast<size_t>(*record.label)]] +=
        1.0 / static_cast<double>(records_.size());
  }
  for (const auto& [label, share] : labels) {
    EXPECT_LE(share, 0.25) << label;
  }
  for (const auto& [answer, share] : answers) {
    EXPECT_LE(share, 0.1) << answer;
  }
}

TEST_P(WikihopSampleTest, HasAVocabularyForAllItsWords) {
  const auto tokenizer = LoadTokenizer(SamplePath("vocab.txt"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const int32_t unknown = (*tokenizer)->Id("[UNK]");
  const Wikihop wikihop({}, tokenizer->get());
  for (const WikihopRecord& record : records_) {
    const auto examples = wikihop.MakeExamples(record, "sample");
    ASSERT_TRUE(examples.ok()) << examples.status();
    ASSERT_EQ(examples->size(), 1u);
    EXPECT_THAT(examples->front()->long_token_ids,
                testing::Not(testing::Contains(unknown)))
        << record.id;
    EXPECT_LE(examples->front()->long_length(), 120) << record.id;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, WikihopSampleTest, testing::Values("train.json", "dev.json"),
    [](const testing::TestParamInfo<std::string>& instance) {
      return instance.param.substr(0, instance.param.find('.'));
    });

TEST(WikihopSampleFilesTest, SharesNoWorldBetweenTrainAndDev) {
  std::set<std::vector<std::string>> worlds;
  for (const WikihopRecord& record : ReadSample("train.json")) {
    std::vector<std::string> supports = record.supports;
    std::sort(supports.begin(), supports.end());
    worlds.insert(supports);
  }
  for (const WikihopRecord& record : ReadSample("dev.json")) {
    std::vector<std::string> supports = record.supports;
    std::sort(supports.begin(), supports.end());
    EXPECT_FALSE(worlds.contains(supports)) << record.id;
  }
}

}  // namespace
}  // namespace etc
