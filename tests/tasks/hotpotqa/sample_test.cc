// The bundled sample is what its generator says: the official format, answers
// that need both supporting facts, nothing to memorise, held-out worlds of its
// own, and a vocabulary for all of its words.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tasks/data/record_file.h"
#include "tasks/hotpotqa/answer_text.h"
#include "tasks/hotpotqa/example.h"
#include "tasks/hotpotqa/raw.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/text/load_tokenizer.h"
#include "tests/tasks/hotpotqa/spec_record.h"

namespace etc {
namespace {

std::string SamplePath(const std::string& name) {
  return absl::StrCat(ETC_SOURCE_DIR, "/tasks/hotpotqa/sample/", name);
}

// Each file is read once.
const std::vector<HotpotqaRecord>& ReadSample(const std::string& name) {
  static auto* const samples =
      new std::map<std::string, std::vector<HotpotqaRecord>>();
  const auto [sample, is_new] = samples->try_emplace(name);
  std::vector<HotpotqaRecord>& records = sample->second;
  if (!is_new) {
    return records;
  }
  const auto file = RecordFile::Open(SamplePath(name));
  EXPECT_TRUE(file.ok()) << file.status();
  for (int64_t i = 0; file.ok() && i < file->size(); ++i) {
    const auto text = file->Read(i);
    EXPECT_TRUE(text.ok()) << text.status();
    const auto record = Hotpotqa().ParseRecord(*text, file->Where(i));
    EXPECT_TRUE(record.ok()) << record.status();
    records.push_back(*record);
  }
  return records;
}

// The sentence that a fact names.
std::string SentenceOf(const HotpotqaRecord& record, const HotpotqaFact& fact) {
  for (const HotpotqaParagraph& paragraph : record.context) {
    if (paragraph.title == fact.title) {
      return paragraph.sentences.at(static_cast<size_t>(fact.sentence));
    }
  }
  return "";
}

class HotpotqaSampleTest : public testing::TestWithParam<std::string> {
 protected:
  const std::vector<HotpotqaRecord>& records_ = ReadSample(GetParam());
};

TEST_P(HotpotqaSampleTest, HasTheSizeThatTheReadmeSays) {
  EXPECT_EQ(records_.size(), GetParam() == "train.json" ? 1000u : 200u);
}

TEST_P(HotpotqaSampleTest, NeedsBothFactsForEveryAnswer) {
  for (const HotpotqaRecord& record : records_) {
    ASSERT_EQ(record.supporting_facts.size(), 2u) << record.id;
    const std::string home = SentenceOf(record, record.supporting_facts[0]);
    const std::string town = SentenceOf(record, record.supporting_facts[1]);
    const std::string& name = record.supporting_facts[0].title;
    EXPECT_TRUE(absl::StrContains(record.question, name)) << record.id;
    EXPECT_EQ(home.substr(home.find(name)),
              absl::StrCat(name, " lives in ", record.supporting_facts[1].title,
                           "."));
    const size_t in = town.find(" is a town in ");
    ASSERT_NE(in, std::string::npos) << record.id;
    std::string country = town.substr(in + 14);
    country.pop_back();
    if (record.type == "bridge") {
      EXPECT_EQ(*record.answer, country);
    } else {
      EXPECT_EQ(*record.answer == "yes",
                absl::StrContains(record.question, country))
          << record.id;
    }
  }
}

TEST_P(HotpotqaSampleTest, NamesFiveOtherTownsInTheSameWords) {
  for (const HotpotqaRecord& record : records_) {
    std::set<std::string> countries;
    for (const HotpotqaParagraph& paragraph : record.context) {
      for (const std::string& sentence : paragraph.sentences) {
        const size_t in = sentence.find(" is a town in ");
        if (in != std::string::npos) {
          countries.insert(sentence.substr(in));
        }
      }
    }
    EXPECT_EQ(countries.size(), 6u) << record.id;
    EXPECT_EQ(record.context.size(), 7u) << record.id;
  }
}

TEST_P(HotpotqaSampleTest, SpreadsAnswersEvenly) {
  std::map<std::string, int> counts;
  int yes_no = 0;
  for (const HotpotqaRecord& record : records_) {
    if (record.type == "bridge") {
      ++counts[*record.answer];
    } else {
      ++yes_no;
    }
  }
  EXPECT_EQ(counts.size(), 12u);
  const auto size = static_cast<int>(records_.size());
  for (const auto& [country, count] : counts) {
    EXPECT_NEAR(count, size * 0.9 / 12, size * 0.02 + 2) << country;
  }
  EXPECT_EQ(yes_no, size / 10);
}

TEST_P(HotpotqaSampleTest, GivesExamplesWithoutUnknownWords) {
  const auto tokenizer = LoadTokenizer(SamplePath("vocab.txt"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Id("[CLS]"), 101);
  const int32_t unknown = (*tokenizer)->Id("[UNK]");
  for (const HotpotqaRecord& record : records_) {
    const auto example = MakeHotpotqaExample(record, **tokenizer);
    EXPECT_THAT(example->long_token_ids,
                testing::Not(testing::Contains(unknown)))
        << record.id;
    EXPECT_EQ(example->left_out, "") << record.id;
    EXPECT_LE(example->long_length(), 256) << record.id;
    EXPECT_LE(example->global_length(), 64) << record.id;
    if (example->answer_type == HotpotqaAnswerType::kSpan) {
      EXPECT_EQ(OriginalAnswerText(*example, example->target_span()),
                *record.answer);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, HotpotqaSampleTest, testing::Values("train.json", "dev.json"),
    [](const testing::TestParamInfo<std::string>& instance) {
      return instance.param.substr(0, instance.param.find('.'));
    });

TEST(HotpotqaSampleFilesTest, SharesNoWorldBetweenTrainAndDev) {
  const auto world = [](const HotpotqaRecord& record) {
    std::vector<std::string> sentences = {record.question};
    for (const HotpotqaParagraph& paragraph : record.context) {
      sentences.insert(sentences.end(), paragraph.sentences.begin(),
                       paragraph.sentences.end());
    }
    std::sort(sentences.begin(), sentences.end());
    return sentences;
  };
  std::set<std::vector<std::string>> worlds;
  for (const HotpotqaRecord& record : ReadSample("train.json")) {
    worlds.insert(world(record));
  }
  for (const HotpotqaRecord& record : ReadSample("dev.json")) {
    EXPECT_FALSE(worlds.contains(world(record))) << record.id;
  }
}

}  // namespace
}  // namespace etc
