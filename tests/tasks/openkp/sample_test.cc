// Checks generate.py's statements about the bundled sample for every page of
// it: the look tells which names are key phrases and nothing else does, and
// guessing finds less than 0.2.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tasks/data/record_file.h"
#include "tasks/openkp/example.h"
#include "tasks/openkp/raw.h"
#include "tasks/openkp/task.h"
#include "tasks/text/load_tokenizer.h"

namespace etc {
namespace {

std::string SamplePath(const std::string& name) {
  return absl::StrCat(ETC_SOURCE_DIR, "/tasks/openkp/sample/", name);
}

// Each file is read once.
const std::vector<OpenkpRecord>& ReadSample(const std::string& name) {
  static auto* const samples =
      new std::map<std::string, std::vector<OpenkpRecord>>();
  const auto [sample, is_new] = samples->try_emplace(name);
  std::vector<OpenkpRecord>& records = sample->second;
  if (!is_new) {
    return records;
  }
  const auto file = RecordFile::Open(SamplePath(name));
  EXPECT_TRUE(file.ok()) << file.status();
  for (int64_t i = 0; file.ok() && i < file->size(); ++i) {
    auto record = Openkp().ParseRecord(*file->Read(i), file->Where(i));
    EXPECT_TRUE(record.ok()) << record.status();
    records.push_back(*std::move(record));
  }
  return records;
}

class OpenkpSampleTest : public testing::TestWithParam<std::string> {
 protected:
  const std::vector<OpenkpRecord>& records_ = ReadSample(GetParam());
};
INSTANTIATE_TEST_SUITE_P(
    Files, OpenkpSampleTest, testing::Values("train.jsonl", "dev.jsonl"),
    [](const testing::TestParamInfo<std::string>& instance) {
      return instance.param.substr(0, instance.param.find('.'));
    });

TEST_P(OpenkpSampleTest, HasItsKeyPhrasesInBoldInTheMainColumn) {
  for (const OpenkpRecord& record : records_) {
    const std::vector<std::string> keys = EtcKeyPhrases(record);
    ASSERT_EQ(keys.size(), 3u) << record.id;
    const std::vector<PhraseText> texts = ElementTexts(record);
    for (size_t i = 0; i < texts.size(); ++i) {
      const OpenkpNode& node = record.elements[i].node;
      const bool is_key =
          !FindPhrases(keys, {texts[i]}, PhraseMatch::kWholeWords).empty();
      EXPECT_EQ(is_key, node.is_bold && node.x < 1000 && !node.in_heading)
          << record.id << ": " << texts[i].text;
    }
  }
}

TEST_P(OpenkpSampleTest, HasAChanceOfLessThanAFifth) {
  for (const OpenkpRecord& record : records_) {
    const auto named = std::count_if(
        record.elements.begin(), record.elements.end(),
        [](const OpenkpElement& element) {
          return !element.node.in_heading && !element.node.is_inline;
        });
    EXPECT_LT(3.0 / static_cast<double>(named), 0.2) << record.id;
  }
}

TEST_P(OpenkpSampleTest, HasNothingToMemorise) {
  // No word comes often among a thousand in key phrases.
  std::map<std::string, double> words;
  double total = 0;
  for (const OpenkpRecord& record : records_) {
    for (const std::vector<std::string>& phrase : *record.key_phrases) {
      for (const std::string& word : phrase) {
        ++words[word];
        ++total;
      }
    }
  }
  for (const auto& [word, count] : words) {
    EXPECT_LT(count / total, 0.06) << word;
  }
}

TEST_P(OpenkpSampleTest, HasAVocabularyForAllItsWords) {
  const auto tokenizer = LoadTokenizer(SamplePath("vocab.txt"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (const OpenkpRecord& record : records_) {
    const Openkp openkp(
        {.input = {.max_long_length = 256, .max_global_length = 32}},
        tokenizer->get());
    const auto examples = openkp.MakeExamples(record, "sample");
    ASSERT_TRUE(examples.ok()) << examples.status();
    const OpenkpExample& example = *examples->at(0);
    EXPECT_THAT(example.long_token_ids,
                testing::Not(testing::Contains((*tokenizer)->Id("[UNK]"))));
    EXPECT_EQ(example.dropped_words, 0) << record.id;
    EXPECT_EQ(example.labels.size(), 3u) << record.id;
  }
}

TEST(OpenkpSampleFilesTest, ShareNoPage) {
  std::set<std::string> texts;
  for (const OpenkpRecord& record : ReadSample("train.jsonl")) {
    EXPECT_TRUE(texts.insert(record.text).second) << record.id;
  }
  for (const OpenkpRecord& record : ReadSample("dev.jsonl")) {
    EXPECT_FALSE(texts.contains(record.text)) << record.id;
  }
}

}  // namespace
}  // namespace etc
