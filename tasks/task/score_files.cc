#include "tasks/task/score_files.h"

#include "absl/strings/str_cat.h"

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

absl::Status NothingToScore(const ScoredFiles& files, absl::string_view where) {
  return absl::InvalidArgumentError(
      absl::StrCat("no record of ", files.gold, " has an answer (", where,
                   " is the first), so there is nothing to score"));
}

absl::Status CannotDecode(absl::string_view option, absl::string_view id,
                          const ScoredFiles& files) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--set ", option, " changes nothing of the prediction for ", id, " in ",
      files.predictions, ", which is final; `realetc evaluate` and `realetc ",
      "predict` take --set ", option, "=..."));
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
        files.predictions, ": ", *id, " is predicted, but is no question of ",
        files.gold, "; --as-official ignores it"));
  }
  return absl::OkStatus();
}

}  // namespace etc
