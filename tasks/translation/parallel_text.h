#ifndef ETC_TASKS_TRANSLATION_PARALLEL_TEXT_H_
#define ETC_TASKS_TRANSLATION_PARALLEL_TEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "tasks/data/example.h"
#include "tasks/data/example_source.h"
#include "tasks/data/record_gate.h"
#include "tasks/data/record_source.h"
#include "tasks/translation/vocabulary.h"

namespace etc {

// A sentence and its translation, each with the end (kEndId).
struct TranslationExample final : Example {
  std::vector<int32_t> source;
  std::vector<int32_t> target;

  int64_t TaskBytes() const override {
    return static_cast<int64_t>(sizeof(TranslationExample) +
                                sizeof(int32_t) *
                                    (source.size() + target.size()));
  }
  int64_t num_tokens() const override {
    return static_cast<int64_t>(source.size() + target.size());
  }
};

// Lengths of a pair, the ends counted.
struct PairLengths {
  int64_t source = 0;
  int64_t target = 0;

  int64_t longest() const { return source > target ? source : target; }
};

// Limits of the pairs that are used.
struct ParallelTextOptions {
  // Longer sentences, the end counted, are left out and counted.
  int64_t max_source_length = 1024;
  int64_t max_target_length = 1024;
  // A longer one is an error, or is skipped; 0: no limit.
  int64_t max_tokens = 0;
  OnBadRecord on_bad_record = OnBadRecord::kError;
};

// All pairs of pairs of files, as ids in memory.
class ParallelText final : public ExampleSource {
 public:
  // Reads the files that `request.patterns` name: sources and targets in turns,
  // UTF-8, plain or packed by gzip, lines that LF ends (tasks/data/text_file.h)
  // and of which line i is the translation of line i. Encodes them on all
  // cores. With OnBadRecord::kSkip lines that are empty or longer than
  // max_tokens are skipped and counted.
  //   kInvalidArgument  an odd number of patterns, or two that name different
  //                     numbers of files; two files with other numbers of
  //                     lines, both of which the message says; a line that is
  //                     not UTF-8, is empty, or is longer than max_tokens, by
  //                     its file and number
  //   kCancelled        `request.listener` said so
  // and the errors of reading a file.
  static absl::StatusOr<std::unique_ptr<ParallelText>> Open(
      const DataRequest& request, const TranslationVocabulary& vocabulary,
      const ParallelTextOptions& options);

  int64_t size() const override {
    return static_cast<int64_t>(ends_.size()) - 1;
  }
  absl::StatusOr<Examples> Make(RecordRequest request) const override;
  std::string Where(int64_t record) const override;

  // The descriptions of the files of which some pairs are not used.
  std::string LeftOut() const override {
    return absl::StrJoin(left_out_, "; ");
  }
  // Warns of files with many unknown tokens (UnknownTokens::Warning).
  std::vector<std::string> Warnings() const override {
    return unknown_warnings_;
  }

  // The targets of all pairs as they stand in their files, which are read
  // again as `request` said.
  //   kFailedPrecondition  a file has changed
  // and the errors of reading a file.
  absl::StatusOr<std::vector<std::string>> ReadTargets(
      const DataRequest& request) const;

  // Lines about the files, the pairs that are not used, and the shares of
  // unknown tokens in sources and in targets, if there are any.
  const std::vector<std::string>& descriptions() const { return descriptions_; }

 private:
  struct Files {
    std::string source;
    std::string target;
  };
  // A line of either file and its pair of files.
  struct Place {
    int32_t files = 0;
    int64_t line = 0;
  };
  struct Reading;

  ParallelText() = default;
  // Adds the pairs of two files that are used, and counts the others.
  absl::Status AddAll(const std::vector<std::vector<int32_t>>& sources,
                      const std::vector<std::vector<int32_t>>& targets,
                      Reading* reading);
  void Add(const Place& place, absl::Span<const int32_t> source,
           absl::Span<const int32_t> target);

  std::vector<Files> files_;
  // Sources and targets in turns: pair i is in [ends_[i], ends_[i + 1]), its
  // target from middles_[i] on.
  std::vector<int32_t> ids_;
  std::vector<int64_t> ends_ = {0};
  std::vector<int64_t> middles_;
  std::vector<Place> places_;
  std::vector<std::string> descriptions_;
  std::vector<std::string> left_out_;  // those of files with unused pairs
  std::vector<std::string> unknown_warnings_;
};

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_PARALLEL_TEXT_H_
