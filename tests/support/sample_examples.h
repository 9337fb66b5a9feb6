#ifndef ETC_TESTS_SUPPORT_SAMPLE_EXAMPLES_H_
#define ETC_TESTS_SUPPORT_SAMPLE_EXAMPLES_H_

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tasks/data/record_file.h"
#include "tasks/task/benchmark_task.h"
#include "tests/support/sanitizers.h"

namespace etc {

// True if a program that links LibTorch can use SentencePiece: not under
// AddressSanitizer (tasks/text/sentencepiece_module.h). Tests of tokenizers,
// which link no LibTorch, run there.
inline constexpr bool kSentencePieceBesideTorch = !kAddressSanitized;

// Returns the kind of a vocabulary by its path: WordPiece has a list of words,
// SentencePiece a model.
inline bool IsWordPiece(const std::string& vocabulary) {
  return vocabulary.ends_with(".txt");
}

// The examples of all records of a file; fails the test on a record that cannot
// become any, or gives another number than `for_each_record`.
inline std::vector<std::shared_ptr<const Example>> ReadExamples(
    const Task& task, const std::string& path,
    std::optional<size_t> for_each_record = 1) {
  std::vector<std::shared_ptr<const Example>> all;
  const auto file = RecordFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  for (int64_t i = 0; file.ok() && i < file->size(); ++i) {
    const auto text = file->Read(i);
    EXPECT_TRUE(text.ok()) << text.status();
    const auto examples = dynamic_cast<const RecordTask&>(task).MakeExamples(
        *text, file->Where(i));
    EXPECT_TRUE(examples.ok()) << examples.status();
    EXPECT_EQ(examples->size(), for_each_record.value_or(examples->size()));
    all.insert(all.end(), examples->begin(), examples->end());
  }
  EXPECT_FALSE(all.empty()) << path;
  return all;
}

}  // namespace etc

// Skips the test if `vocabulary` is one that this program cannot use.
#define ETC_SKIP_IF_TOKENIZER_IS_REFUSED(vocabulary)                      \
  if (!etc::IsWordPiece(vocabulary) && !etc::kSentencePieceBesideTorch)   \
  GTEST_SKIP() << "AddressSanitizer keeps SentencePiece out of programs " \
                  "that link LibTorch"

#endif  // ETC_TESTS_SUPPORT_SAMPLE_EXAMPLES_H_
