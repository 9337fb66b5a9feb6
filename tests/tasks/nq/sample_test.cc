// The bundled sample is what its generator says: both official formats, pages
// of which the question decides what answers it, nothing to memorise,
// annotators who disagree, held-out pages of its own, and a vocabulary for all
// of its words.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/data/record_file.h"
#include "tasks/nq/example.h"
#include "tasks/nq/metric.h"
#include "tasks/nq/raw.h"
#include "tasks/nq/task.h"
#include "tasks/text/load_tokenizer.h"

namespace etc {
namespace {

std::string SamplePath(const std::string& name) {
  return absl::StrCat(ETC_SOURCE_DIR, "/tasks/nq/sample/", name);
}

// Each file is read once.
const std::vector<NqRecord>& ReadSample(const std::string& name) {
  static auto* const samples =
      new std::map<std::string, std::vector<NqRecord>>();
  const auto [sample, is_new] = samples->try_emplace(name);
  std::vector<NqRecord>& records = sample->second;
  if (!is_new) {
    return records;
  }
  const auto file = RecordFile::Open(SamplePath(name));
  EXPECT_TRUE(file.ok()) << file.status();
  for (int64_t i = 0; file.ok() && i < file->size(); ++i) {
    const auto text = file->Read(i);
    EXPECT_TRUE(text.ok()) << text.status();
    const auto record = Nq().ParseRecord(*text, file->Where(i));
    EXPECT_TRUE(record.ok()) << record.status();
    records.push_back(*record);
  }
  return records;
}

std::string TextOf(const NqRecord& record, const NqSpan& span) {
  std::string text;
  for (int64_t t = span.start_token; t < span.end_token; ++t) {
    absl::StrAppend(&text, text.empty() ? "" : " ",
                    record.tokens[static_cast<size_t>(t)].text);
  }
  return text;
}

// Returns the most common annotation.
const NqAnnotation& MostCommon(const NqRecord& record) {
  const auto count = [&](const NqAnnotation& annotation) {
    return std::count_if(record.annotations.begin(), record.annotations.end(),
                         [&](const NqAnnotation& other) {
                           return other.long_answer == annotation.long_answer &&
                                  other.short_answers ==
                                      annotation.short_answers &&
                                  other.yes_no == annotation.yes_no;
                         });
  };
  return *std::max_element(
      record.annotations.begin(), record.annotations.end(),
      [&](const NqAnnotation& left, const NqAnnotation& right) {
        return count(left) < count(right);
      });
}

// "red lantern" of "where is the red lantern from".
std::string ThingOf(const std::string& question) {
  const size_t begin = question.find(" the ") + 5;
  return question.substr(begin, question.rfind(" from") - begin);
}

bool IsYesNo(const NqRecord& record) {
  return record.question.starts_with("is ");
}

class NqSampleTest : public testing::TestWithParam<std::string> {
 protected:
  const std::vector<NqRecord>& records_ = ReadSample(GetParam());
  const bool is_train_ = GetParam() == "train.jsonl.gz";
};

TEST_P(NqSampleTest, HasTheSizeThatTheReadmeSays) {
  EXPECT_EQ(records_.size(), is_train_ ? 4000u : 80u);
  for (const NqRecord& record : records_) {
    EXPECT_EQ(record.annotations.size(), is_train_ ? 1u : 5u);
  }
}

TEST_P(NqSampleTest, HasOneFactOfTheThingThatIsAskedFor) {
  for (const NqRecord& record : records_) {
    SCOPED_TRACE(absl::StrCat(record.example_id, ": ", record.question));
    const std::string thing =
        ThingOf(IsYesNo(record) ? record.question.substr(
                                      0, record.question.rfind(" from") + 5)
                                : record.question);
    const NqAnnotation& gold = MostCommon(record);
    int facts = 0;
    int others = 0;
    for (const NqCandidate& candidate : record.candidates) {
      const std::string text = TextOf(record, candidate.span);
      const bool is_fact = text.starts_with("<P>") ||
                           text.starts_with("<Li>") ||
                           text.starts_with("<Table>");
      const bool is_of_thing =
          is_fact &&
          text.find(absl::StrCat(" ", thing, " ")) != std::string::npos;
      facts += is_of_thing ? 1 : 0;
      others += is_fact && !is_of_thing ? 1 : 0;
      if (is_of_thing) {
        EXPECT_EQ(candidate.span, gold.long_answer) << text;
      }
    }
    EXPECT_EQ(facts, gold.long_answer.is_null() ? 0 : 1);
    // A reader who skips the question finds one in eight at best.
    EXPECT_GE(others, 7);
    EXPECT_EQ(IsYesNo(record), gold.yes_no != NqYesNo::kNone);
    for (const NqSpan& span : gold.short_answers) {
      EXPECT_LE(gold.long_answer.start_token, span.start_token);
      EXPECT_LE(span.end_token, gold.long_answer.end_token);
    }
  }
}

TEST_P(NqSampleTest, HasEveryKindOfAnswer) {
  std::map<std::string, int> kinds;
  for (const NqRecord& record : records_) {
    const NqAnnotation& gold = MostCommon(record);
    ++kinds[gold.long_answer.is_null()     ? "none"
            : gold.yes_no == NqYesNo::kYes ? "yes"
            : gold.yes_no == NqYesNo::kNo  ? "no"
            : gold.short_answers.empty()   ? "long"
                                           : "short"];
    if (!gold.long_answer.is_null()) {
      const std::string text = TextOf(record, gold.long_answer);
      ++kinds[text.substr(0, text.find(' '))];
    }
  }
  const auto size = static_cast<double>(records_.size());
  EXPECT_NEAR(kinds["none"] / size, 0.15, 0.01);
  EXPECT_NEAR(kinds["long"] / size, 0.1, 0.01);
  EXPECT_NEAR(kinds["short"] / size, 0.65, 0.01);
  EXPECT_NEAR((kinds["yes"] + kinds["no"]) / size, 0.1, 0.01);
  for (const char* kind : {"yes", "no", "<P>", "<Li>", "<Table>"}) {
    EXPECT_GT(kinds[kind], 0) << kind;
  }
}

// A reader who skips the question finds one answer in six at best, even by
// naming the thing that is asked for most.
TEST_P(NqSampleTest, AsksForNoThingTooOften) {
  std::map<std::string, int> things;
  for (const NqRecord& record : records_) {
    if (!IsYesNo(record)) {
      ++things[ThingOf(record.question)];
    }
  }
  EXPECT_GT(things.size(), 12u);
  for (const auto& [thing, count] : things) {
    EXPECT_LT(count, 0.2 * static_cast<double>(records_.size())) << thing;
  }
}

TEST_P(NqSampleTest, SpreadsAnswersOverThePage) {
  // The share of pages whose answer is the first, second, ... of the top-level
  // candidates.
  std::map<int, int> places;
  for (const NqRecord& record : records_) {
    const NqSpan gold = MostCommon(record).long_answer;
    int place = 0;
    for (const NqCandidate& candidate : record.candidates) {
      place += candidate.top_level ? 1 : 0;
      if (candidate.span == gold) {
        ++places[place];
      }
    }
  }
  for (const auto& [place, count] : places) {
    EXPECT_LT(count, 0.25 * static_cast<double>(records_.size())) << place;
  }
}

TEST_P(NqSampleTest, GivesExamplesWithoutUnknownWords) {
  const auto tokenizer = LoadTokenizer(SamplePath("vocab.txt"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto tokens = NqTokensOf(TokenizerKind::kWordPiece, **tokenizer);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->opening_tag, 107);
  const int32_t unknown = (*tokenizer)->Id("[UNK]");
  int several_windows = 0;
  for (const NqRecord& record : records_) {
    // Options as in configs/demo.json.
    const Nq nq({.input = {.max_long_length = 128, .max_global_length = 48},
                 .max_question_length = 12,
                 .stride = 64,
                 .tokens = *tokens},
                tokenizer->get());
    const auto windows = *nq.MakeExamples(record, "sample");
    several_windows += windows.size() > 1 ? 1 : 0;
    bool has_long_answer = false;
    for (const auto& window : windows) {
      EXPECT_THAT(window->long_token_ids,
                  testing::Not(testing::Contains(unknown)))
          << record.example_id;
      EXPECT_LT(window->global_length(), 48);
      EXPECT_LT(window->question_length, 12);
      has_long_answer |= !window->long_answer.is_null();
    }
    // Some window has the whole answer.
    EXPECT_EQ(has_long_answer,
              !record.annotations.front().long_answer.is_null())
        << record.example_id;
  }
  EXPECT_GE(several_windows, static_cast<int>(records_.size()) / 5);
}

INSTANTIATE_TEST_SUITE_P(
    Files, NqSampleTest, testing::Values("train.jsonl.gz", "dev.jsonl"),
    [](const testing::TestParamInfo<std::string>& instance) {
      return instance.param.substr(0, instance.param.find('.'));
    });

TEST(NqSampleFilesTest, HaveAnnotatorsWhoDisagree) {
  int overlooked = 0;
  int wider = 0;
  int alone = 0;
  for (const NqRecord& record : ReadSample("dev.jsonl")) {
    const NqAnnotation& gold = MostCommon(record);
    const auto long_answers = std::count_if(
        record.annotations.begin(), record.annotations.end(),
        [](const NqAnnotation& a) { return !a.long_answer.is_null(); });
    alone += long_answers == 1 ? 1 : 0;
    // The rule of two decides as most annotators do.
    EXPECT_EQ(long_answers >= 2, !gold.long_answer.is_null());
    for (const NqAnnotation& annotation : record.annotations) {
      overlooked +=
          annotation.long_answer.is_null() && !gold.long_answer.is_null();
      wider += !annotation.long_answer.is_null() &&
               !gold.long_answer.is_null() &&
               !NqSpanSetsMatch(annotation.short_answers, gold.short_answers);
    }
  }
  EXPECT_GT(overlooked, 5);
  EXPECT_GT(wider, 5);
  EXPECT_GT(alone, 2);
}

TEST(NqSampleFilesTest, ShareNoPageBetweenTrainAndDev) {
  const auto page = [](const NqRecord& record) {
    return TextOf(record,
                  {.start_token = 0,
                   .end_token = static_cast<int64_t>(record.tokens.size())});
  };
  std::set<std::string> pages;
  std::set<int64_t> ids;
  for (const NqRecord& record : ReadSample("train.jsonl.gz")) {
    pages.insert(page(record));
    ids.insert(record.example_id);
  }
  EXPECT_EQ(ids.size(), 4000u);
  EXPECT_LT(*ids.begin(), 0);
  for (const NqRecord& record : ReadSample("dev.jsonl")) {
    EXPECT_FALSE(pages.contains(page(record))) << record.example_id;
    EXPECT_FALSE(ids.contains(record.example_id)) << record.example_id;
  }
}

}  // namespace
}  // namespace etc
