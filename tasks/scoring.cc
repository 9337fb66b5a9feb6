#include "tasks/scoring.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/data/data_files.h"
#include "tasks/data/record_file.h"

namespace etc {
namespace {

// The first id of `ids` that is not in `others`, or null.
const std::string* FirstMissing(const std::set<std::string>& ids,
                                const std::set<std::string>& others) {
  for (const std::string& id : ids) {
    if (!others.contains(id)) {
      return &id;
    }
  }
  return nullptr;
}

}  // namespace

absl::Status ForEachRecord(
    const std::string& pattern,
    const std::function<absl::Status(const std::string& text,
                                     const std::string& where)>& read,
    const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                       FindDataFiles({pattern}));
  for (const std::string& path : paths) {
    ETC_ASSIGN_OR_RETURN(const RecordFile file,
                         RecordFile::Open(path, nullptr, limits));
    for (int64_t i = 0; i < file.size(); ++i) {
      ETC_ASSIGN_OR_RETURN(const std::string text, file.Read(i));
      ETC_RETURN_IF_ERROR(read(text, file.Where(i)));
    }
  }
  return absl::OkStatus();
}

absl::Status NothingToScore(const ScoredFiles& files, absl::string_view where) {
  return absl::InvalidArgumentError(
      absl::StrCat("no record of ", files.gold, " has an answer (", where,
                   " is the first), so there is nothing to score"));
}

absl::Status CheckSameIds(const std::set<std::string>& records,
                          const std::set<std::string>& unanswered,
                          const std::set<std::string>& predicted,
                          const ScoredFiles& files, absl::string_view what) {
  std::set<std::string> expected = predicted;
  expected.insert(unanswered.begin(), unanswered.end());
  if (const std::string* id = FirstMissing(records, expected)) {
    return absl::InvalidArgumentError(absl::StrCat(
        files.predictions, " should have a ", what, " for each document of ",
        files.gold, ", but has none for ", *id));
  }
  if (const std::string* id = FirstMissing(predicted, records)) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.predictions, " has a ", what, " for ", *id,
                     ", which is no document of ", files.gold));
  }
  return absl::OkStatus();
}

absl::Status CheckKnownIds(const std::set<std::string>& records,
                           const std::set<std::string>& predicted,
                           const ScoredFiles& files) {
  if (const std::string* id = FirstMissing(predicted, records)) {
    return absl::InvalidArgumentError(absl::StrCat(
        files.predictions, ": ", *id, " is the answer to a question that ",
        files.gold, " does not have"));
  }
  return absl::OkStatus();
}

}  // namespace etc
