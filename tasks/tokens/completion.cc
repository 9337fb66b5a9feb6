// Labels and statistics of the data of a run.

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/task/label_table.h"
#include "tasks/tokens/task.h"
#include "tasks/tokens/words.h"

namespace etc {
namespace {

// Statistics of a set of documents.
struct TokensSummary {
  int64_t documents = 0;
  int64_t without_answer = 0;
  int64_t words = 0;
  int64_t spans = 0;
  std::map<std::string, int64_t> spans_of_label;

  void Add(const TokensRecord& record) {
    ++documents;
    size_t count = 0;
    for (const std::vector<std::string>& sentence : record.sentences) {
      count += sentence.size();
    }
    words += static_cast<int64_t>(
        record.sentences.empty() ? FindTokensWords(record.text).size() : count);
    if (!record.spans.has_value()) {
      ++without_answer;
      return;
    }
    spans += static_cast<int64_t>(record.spans->size());
    for (const TokensSpan& span : *record.spans) {
      ++spans_of_label[span.label];
    }
  }
};

// Returns the statistics of records. Those with mistakes are left out, or the
// first mistake is returned.
absl::StatusOr<TokensSummary> SummarizeTokens(
    const std::vector<FileRecord>& records, const Tokens& tokens,
    bool skips_mistakes) {
  TokensSummary summary;
  for (const FileRecord& file_record : records) {
    const auto record = tokens.ParseRecord(file_record.json, file_record.where);
    const absl::Status status =
        record.ok() ? tokens.CheckRecord(*record, file_record.where)
                    : record.status();
    if (status.ok()) {
      summary.Add(*record);
    } else if (!skips_mistakes) {
      return WithPlaceInFile(status, file_record.where, file_record.line);
    }
  }
  return summary;
}

std::string LineOfTokensSet(const char* set, const TokensSummary& summary) {
  std::string line =
      absl::StrCat(set, ": ", Counted(summary.documents, "document"), ", ",
                   Counted(summary.words, "word"));
  if (summary.without_answer > 0) {
    absl::StrAppend(&line, ", ", summary.without_answer, " without an answer");
  }
  if (summary.without_answer == summary.documents) {
    return line;
  }
  return absl::StrCat(line, ", ", Counted(summary.spans, "span"),
                      summary.spans_of_label.empty() ? "" : ": ",
                      FrequencyText(summary.spans_of_label));
}

}  // namespace

absl::Status Tokens::CompleteOptions(const DataConfig& data,
                                     nlohmann::json* json) const {
  if (data.train.empty()) {
    return absl::OkStatus();  // training says so
  }
  const bool skips = data.on_bad_record == "skip";
  ETC_ASSIGN_OR_RETURN(const std::vector<FileRecord> records,
                       ReadFiles(data.train, RecordLimitsOf(data)));
  ETC_ASSIGN_OR_RETURN(const TokensSummary train,
                       SummarizeTokens(records, *this, skips));
  const std::string files = absl::StrJoin(data.train, ", ");
  if (!records.empty() && train.without_answer == train.documents) {
    return InvalidArgument(
        files,
        " should have labels for training (a column of them, "
        "tokens.label_column, or the field \"spans\"), but has none");
  }
  if (!options().labels.empty()) {
    return absl::OkStatus();
  }
  std::vector<std::string> labels;
  for (const auto& [label, spans] : train.spans_of_label) {
    labels.push_back(label);
  }
  if (labels.empty()) {
    return InvalidArgument(files,
                           " should have a span at least, but has none; "
                           "tokens.labels may list the labels");
  }
  (*json)["labels"] = std::move(labels);
  return absl::OkStatus();
}

std::vector<std::string> Tokens::DescribeRecords(
    const std::vector<FileRecord>& train,
    const std::vector<FileRecord>& dev) const {
  const TokensSummary of_train =
      *SummarizeTokens(train, *this, /*skips_mistakes=*/true);
  const TokensSummary of_dev =
      *SummarizeTokens(dev, *this, /*skips_mistakes=*/true);
  std::vector<std::string> lines = {LineOfTokensSet("training", of_train)};
  if (of_dev.documents > 0) {
    lines.push_back(LineOfTokensSet("evaluation", of_dev));
  }
  for (const std::string& label : options().labels) {
    if (!of_train.spans_of_label.contains(label)) {
      lines.push_back(absl::StrCat("warning: no training document has a span ",
                                   "with the label ", QuotedName(label)));
    }
  }
  return lines;
}

}  // namespace etc
