#ifndef ETC_TESTS_TASKS_HOTPOTQA_SPEC_RECORD_H_
#define ETC_TESTS_TASKS_HOTPOTQA_SPEC_RECORD_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tasks/hotpotqa/example.h"
#include "tasks/hotpotqa/raw.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/text/tokenizer.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {

// The instance of doc/hotpotqa.md 1.2.
inline constexpr char kHotpotqaSpecJson[] =
    R"({"_id":"hp1","question":"Who founded Acme?","answer":"Jane Roe",)"
    R"("type":"bridge","level":"medium",)"
    R"("supporting_facts":[["Acme",0],["Jane Roe",1]],"context":[)"
    R"(["Jane Roe",["Jane Roe is a writer."," She founded Acme."]],)"
    R"(["Acme",["Acme was started by Jane Roe."]],)"
    R"(["Other",["Nothing here."]]]})";

inline HotpotqaRecord HotpotqaSpecRecord() {
  const auto record = Hotpotqa().ParseRecord(kHotpotqaSpecJson, "spec");
  return record.value();
}

// Whole words as pieces, with [CLS] at 101 as in BERT's vocabulary; the words
// of the spec's instance have ids of their own.
inline WordTokenizer HotpotqaSpecTokenizer() {
  std::vector<std::string> words = {
      "who", "founded", "acme",    "?",    "jane",   "roe",
      "is",  "a",       "writer",  ".",    "she",    "was",
      "by",  "other",   "nothing", "here", "started"};
  while (words.size() < 91) {
    words.push_back("[unused" + std::to_string(words.size()) + "]");
  }
  words.push_back("[CLS]");
  return WordTokenizer(words);
}

// The one example of a record.
inline std::shared_ptr<const HotpotqaExample> MakeHotpotqaExample(
    HotpotqaRecord record, const Tokenizer& tokenizer,
    const HotpotqaOptions& options = {}) {
  const auto examples =
      Hotpotqa(options, &tokenizer).MakeExamples(std::move(record), "record");
  EXPECT_EQ(examples.value().size(), 1u);
  return examples->front();
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_HOTPOTQA_SPEC_RECORD_H_
