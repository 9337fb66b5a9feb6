#include "tasks/translation/score_files.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/data/text_file.h"

namespace etc {
namespace {

absl::StatusOr<std::vector<std::string>> ReadTranslations(
    const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<TextFile> file,
                       TextFile::Open(path, {}));
  std::vector<std::string> lines;
  absl::string_view line;
  while (true) {
    ETC_ASSIGN_OR_RETURN(const bool more, file->NextLine(&line));
    if (!more) {
      return lines;
    }
    if (!IsUtf8(line)) {
      return InvalidArgument(path, ":", file->line_number(),
                             ": should be UTF-8, but is not");
    }
    lines.emplace_back(line);
  }
}

}  // namespace

absl::StatusOr<BleuScore> ScoreTranslationFiles(const std::string& hypotheses,
                                                const std::string& references,
                                                const BleuOptions& options) {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> ours,
                       ReadTranslations(hypotheses));
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> theirs,
                       ReadTranslations(references));
  if (ours.size() != theirs.size()) {
    return InvalidArgument(
        "translations and references should have as many lines, but ",
        hypotheses, " has ", Counted(std::ssize(ours), "line"), ", ",
        references, " ", Counted(std::ssize(theirs), "line"));
  }
  if (ours.empty()) {
    return InvalidArgument(hypotheses, ": should have translations, but is ",
                           "empty");
  }
  return CorpusBleu(ours, theirs, options);
}

Metrics BleuMetrics(const BleuScore& score) {
  Metrics metrics = {{"bleu", score.score}};
  for (size_t i = 0; i < score.precisions.size(); ++i) {
    metrics.emplace_back(absl::StrCat("precision_", i + 1),
                         score.precisions[i]);
  }
  metrics.emplace_back("brevity_penalty", score.brevity_penalty);
  metrics.emplace_back("hypothesis_length",
                       static_cast<double>(score.hypothesis_length));
  metrics.emplace_back("reference_length",
                       static_cast<double>(score.reference_length));
  return metrics;
}

}  // namespace etc
