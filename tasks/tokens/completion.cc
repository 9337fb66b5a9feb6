// Labels and statistics of the data of a run.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/counted.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/data/data_files.h"
#include "tasks/metrics.h"
#include "tasks/task/label_table.h"
#include "tasks/tokens/task.h"
#include "tasks/tokens/words.h"

namespace etc {
namespace {

absl::string_view TextAt(const ByteRange& range, absl::string_view text) {
  return text.substr(static_cast<size_t>(range.begin),
                     static_cast<size_t>(range.end - range.begin));
}

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

// Spans of the gold that no prediction is equal to, by the reason.
struct LostSpans {
  // Spans that begin or end within a unit.
  int64_t within_units = 0;
  // Place and text of the first of these.
  std::string first;
  // Spans that the model does not read to their end.
  int64_t behind_cut = 0;

  void Add(const TokensExample& example, const std::string& where) {
    std::vector<ByteRange> units;
    for (const TokensUnit& unit : example.units) {
      units.push_back(example.BytesOf(unit));
    }
    const std::vector<int64_t> bytes = BytesOfCodePoints(example.text);
    for (size_t i = 0; i < example.gold.size(); ++i) {
      const ByteRange span = {bytes[static_cast<size_t>(example.gold[i].start)],
                              bytes[static_cast<size_t>(example.gold[i].end)]};
      const auto last = absl::c_partition_point(
          units, [&](const ByteRange& unit) { return unit.end < span.end; });
      if (example.cut_at.has_value() && last == units.end()) {
        ++behind_cut;
        continue;
      }
      const auto behind_first = absl::c_partition_point(
          units, [&](const auto& unit) { return unit.begin <= span.begin; });
      const ByteRange whole_units = {
          behind_first == units.begin() ? span.begin
                                        : std::prev(behind_first)->begin,
          last == units.end() ? span.end : last->end};
      if (whole_units == span) {
        continue;
      }
      if (++within_units == 1) {
        first =
            absl::StrCat(PlaceOfField(where, absl::StrCat("spans[", i, "] ")),
                         QuotedName(TextAt(span, example.text)), " in ",
                         QuotedName(TextAt(whole_units, example.text)));
      }
    }
  }
};

// Returns the sum of the records'. Those with mistakes or without spans are
// left out.
LostSpans FindLostSpans(const std::vector<FileRecord>& records,
                        const Tokens& tokens) {
  std::vector<LostSpans> of_records(records.size());  // each of one thread
  ReadInParallel(records.size(), /*num_bytes=*/0, /*listener=*/nullptr,
                 [&](size_t i, const BytesListener& /*report*/) {
                   const std::string& where = records[i].where;
                   auto record = tokens.ParseRecord(records[i].json, where);
                   if (record.ok() && record->spans.has_value() &&
                       !record->spans->empty()) {
                     const auto examples =
                         tokens.MakeExamples(*std::move(record), where);
                     if (examples.ok()) {
                       of_records[i].Add(*examples->front(), where);
                     }
                   }
                   return absl::OkStatus();
                 })
      .IgnoreError();  // there is none
  LostSpans all;
  for (LostSpans& one : of_records) {
    all.within_units += one.within_units;
    all.behind_cut += one.behind_cut;
    if (all.first.empty()) {
      all.first = std::move(one.first);
    }
  }
  return all;
}

void AddSpanWarnings(const char* set, const std::vector<FileRecord>& records,
                     const Tokens& tokens, int64_t spans,
                     std::vector<std::string>* warnings) {
  const LostSpans lost = FindLostSpans(records, tokens);
  const auto warning = [&](int64_t count) {
    return absl::StrCat(count, " of ", Counted(spans, "span"), " of the ", set);
  };
  if (lost.within_units > 0) {
    warnings->push_back(absl::StrCat(
        warning(lost.within_units),
        " begin or end within a word, or within words that have a piece in "
        "common, so that no prediction can be equal to them (recall at most ",
        FormatScore(1 - Share(static_cast<double>(lost.within_units), spans)),
        "); the first: ", lost.first));
  }
  if (lost.behind_cut > 0) {
    warnings->push_back(absl::StrCat(
        warning(lost.behind_cut), " lie in what is cut off: see ",
        tokens.options().input.has_long_tokens ? "data.max_long_length"
                                               : "data.max_global_length"));
  }
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

Notices Tokens::DescribeRecords(const std::vector<FileRecord>& train,
                                const std::vector<FileRecord>& dev) const {
  const TokensSummary of_train =
      *SummarizeTokens(train, *this, /*skips_mistakes=*/true);
  const TokensSummary of_dev =
      *SummarizeTokens(dev, *this, /*skips_mistakes=*/true);
  Notices notices = {.messages = {LineOfTokensSet("training", of_train)}};
  if (of_dev.documents > 0) {
    notices.messages.push_back(LineOfTokensSet("evaluation", of_dev));
  }
  std::vector<std::string>* const warnings = &notices.warnings;
  AddSpanWarnings("training", train, *this, of_train.spans, warnings);
  AddSpanWarnings("evaluation", dev, *this, of_dev.spans, warnings);
  for (const std::string& label : options().labels) {
    if (!of_train.spans_of_label.contains(label)) {
      warnings->push_back(
          absl::StrCat("no training document has a span with the label ",
                       QuotedName(label)));
    }
  }
  return notices;
}

}  // namespace etc
