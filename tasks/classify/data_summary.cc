// Lines about the data of a run.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/utf8.h"
#include "tasks/classify/task.h"
#include "tasks/data/record_source.h"
#include "tasks/metrics.h"
#include "tasks/task/label_table.h"
#include "tasks/text/text_folding.h"

namespace etc {
namespace {

// Statistics of one set of documents.
struct Summary {
  int64_t documents = 0;
  int64_t pairs = 0;
  int64_t without_answer = 0;
  std::map<std::string, int64_t> documents_of_label;
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  // Hashes of the texts, each once.
  std::unordered_set<size_t> texts;
  // Documents whose text is one of the other set.
  int64_t known = 0;

  void Add(const ClassifyRecord& record, size_t text) {
    ++documents;
    pairs += record.text_b.has_value() ? 1 : 0;
    texts.insert(text);
    if (!record.answer.has_value()) {
      ++without_answer;
      return;
    }
    for (const std::string& label : record.answer->labels) {
      ++documents_of_label[label];
    }
    least = std::min(least, record.answer->number);
    most = std::max(most, record.answer->number);
  }
};

size_t HashOfTexts(const ClassifyRecord& record) {
  return std::hash<std::string>()(absl::StrCat(
      absl::StrJoin(record.texts, "\n"), "\n\n", record.text_b.value_or("")));
}

// Returns the statistics of `records`, without those that have an error;
// `known` counts the records whose text is in `other`.
Summary Summarize(const std::vector<FileRecord>& records,
                  const Classify& classify, const Summary& other) {
  Summary summary;
  for (const FileRecord& file_record : records) {
    const auto record =
        classify.ParseRecord(file_record.json, file_record.where);
    if (!record.ok()) {
      continue;
    }
    const size_t text = HashOfTexts(*record);
    summary.known += other.texts.contains(text) ? 1 : 0;
    summary.Add(*record, text);
  }
  return summary;
}

std::string SummaryLine(const char* set, const Summary& summary,
                        const ClassifyOptions& options) {
  const bool are_pairs =
      summary.pairs > 0 && summary.pairs == summary.documents;
  std::string line = absl::StrCat(
      set, ": ", Counted(summary.documents, are_pairs ? "pair" : "document"));
  if (summary.pairs > 0 && !are_pairs) {
    absl::StrAppend(&line, ", ", Counted(summary.pairs, "pair"), " among them");
  }
  if (summary.without_answer > 0) {
    absl::StrAppend(&line, ", ", summary.without_answer, " without an answer");
  }
  if (summary.without_answer == summary.documents) {
    return line;
  }
  if (options.type == ClassifyType::kNumber) {
    return absl::StrCat(line, ", numbers from ", summary.least, " to ",
                        summary.most);
  }
  const auto labels = static_cast<int64_t>(summary.documents_of_label.size());
  return absl::StrCat(line, ", ", Counted(labels, "label"), ": ",
                      FrequencyText(summary.documents_of_label));
}

// Returns the accuracy on `dev` of the most frequent training label, which a
// model that has learnt nothing answers: " (always \"a\": accuracy 0.5000)";
// empty where it has none.
std::string ConstantText(const Summary& train, const Summary& dev,
                         const ClassifyOptions& options) {
  const int64_t answered = dev.documents - dev.without_answer;
  const auto most = std::max_element(
      train.documents_of_label.begin(), train.documents_of_label.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (options.type != ClassifyType::kOne || answered == 0 ||
      most == train.documents_of_label.end()) {
    return "";
  }
  const auto found = dev.documents_of_label.find(most->first);
  const int64_t right =
      found == dev.documents_of_label.end() ? 0 : found->second;
  return absl::StrCat(" (always ", QuotedName(most->first), ": accuracy ",
                      FormatScore(Share(static_cast<double>(right), answered)),
                      ")");
}

// A label without what people do not see, or do not mean.
std::string Folded(const std::string& label) {
  return absl::StrJoin(SplitWhiteSpace(LowerCase(label)), " ");
}

void AddLabelWarnings(const Summary& train, const ClassifyOptions& options,
                      std::vector<std::string>* warnings) {
  std::map<std::string, std::vector<std::string>> alike;
  for (const auto& [label, count] : train.documents_of_label) {
    alike[Folded(label)].push_back(QuotedName(label));
  }
  for (const auto& [folded, labels] : alike) {
    if (labels.size() > 1) {
      warnings->push_back(absl::StrCat(
          "the labels ", absl::StrJoin(labels, " and "),
          " differ by case or white space only, and are learnt as different "
          "ones"));
    }
  }
  for (const std::string& label : options.labels) {
    if (!train.documents_of_label.contains(label)) {
      warnings->push_back(absl::StrCat("no training document has the label ",
                                       QuotedName(label)));
    }
  }
}

}  // namespace

Notices Classify::DescribeRecords(const std::vector<FileRecord>& train,
                                  const std::vector<FileRecord>& dev) const {
  const Summary of_train = Summarize(train, *this, Summary());
  const Summary of_dev = Summarize(dev, *this, of_train);
  Notices notices = {
      .messages = {SummaryLine("training", of_train, options())}};
  if (of_dev.documents > 0) {
    notices.messages.push_back(SummaryLine("evaluation", of_dev, options()) +
                               ConstantText(of_train, of_dev, options()));
  }
  AddLabelWarnings(of_train, options(), &notices.warnings);
  if (of_dev.known > 0) {
    notices.warnings.push_back(absl::StrCat(
        of_dev.known, " of the ", Counted(of_dev.documents, "document"),
        " for evaluation have the text of a training document: the scores are "
        "better than those of new documents"));
  }
  return notices;
}

}  // namespace etc
