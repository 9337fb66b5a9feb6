#include "tasks/data/record_check.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using Json = nlohmann::json;

// By record; nothing of one that is skipped.
using Checked = std::vector<std::optional<CheckedRecord>>;

// Checks this rank's records. They are neighbours: reading in order inflates a
// gzip file once.
absl::StatusOr<Checked> CheckShare(const OfficialRecords& records,
                                   const RecordCheckOptions& options) {
  const DataGroup& group = options.group;
  const int64_t begin = records.size() * group.rank / group.size;
  const int64_t end = records.size() * (group.rank + 1) / group.size;
  Checked share(static_cast<size_t>(end - begin));
  const absl::Status status = ReadInParallel(
      share.size(), share.size(), options.listener,
      [&](size_t i, const BytesListener& report) -> absl::Status {
        absl::StatusOr<CheckedRecord> record =
            records.Check(begin + static_cast<int64_t>(i));
        if (record.ok()) {
          share[i] = *std::move(record);
        } else if (!IsSkipped(record.status(), options.on_bad_record)) {
          return record.status();
        }
        return report(1);
      });
  ETC_RETURN_IF_ERROR(group.Agree(status));
  return share;
}

// Serialises as CBOR, in which ids may hold any bytes.
std::string ToBytes(const Checked& share) {
  Json list = Json::array();
  for (const std::optional<CheckedRecord>& record : share) {
    list.push_back(
        record.has_value()
            ? Json::array({record->id, static_cast<int>(record->id_kind),
                           record->has_answer})
            : Json());
  }
  std::string bytes;
  Json::to_cbor(list, bytes);
  return bytes;
}

// All-gathers the shares, each of which follows that of the rank before.
absl::StatusOr<Checked> GatherShares(Checked share, const DataGroup& group) {
  if (group.size == 1) {
    return share;
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                       group.gather(ToBytes(share)));
  Checked gathered;
  try {
    for (const std::string& bytes : all) {
      for (const Json& json : Json::from_cbor(bytes)) {
        std::optional<CheckedRecord>& record = gathered.emplace_back();
        if (!json.is_null()) {
          record = {
              .id = json.at(0).get<std::string>(),
              .id_kind = static_cast<Example::IdKind>(json.at(1).get<int>()),
              .has_answer = json.at(2).get<bool>()};
        }
      }
    }
  } catch (const Json::exception& error) {
    return absl::InternalError(
        absl::StrCat("what another process says of the data cannot be read: ",
                     error.what()));
  }
  return gathered;
}

// Returns true if an evaluation skips one of the records up to `last` that have
// the id of `last`, whose mistake shows when its examples are made.
bool HasSkipped(const Checked& checked, const OfficialRecords& records,
                size_t last) {
  for (size_t i = 0; i <= last; ++i) {
    if (checked[i].has_value() && checked[i]->id == checked[last]->id) {
      const absl::StatusOr<Examples> made =
          records.Make(RequestForEvaluation(static_cast<int64_t>(i)));
      if (IsSkipped(made.status(), OnBadRecord::kSkip)) {
        return true;
      }
    }
  }
  return false;
}

// Counts the records, and checks their ids.
absl::StatusOr<RecordCounts> CountRecords(const Checked& checked,
                                          const OfficialRecords& records,
                                          const RecordCheckOptions& options) {
  if (static_cast<int64_t>(checked.size()) != records.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the processes should have the same data, but have ", checked.size(),
        " records together and ", records.size(), " in this one"));
  }
  RecordIds ids(&records, options.predicts);
  RecordCounts counts;
  for (size_t i = 0; i < checked.size(); ++i) {
    if (checked[i].has_value()) {
      const absl::Status added =
          ids.Add(static_cast<int64_t>(i), checked[i]->id, checked[i]->id_kind);
      if (!added.ok() && (options.on_bad_record == OnBadRecord::kError ||
                          !HasSkipped(checked, records, i))) {
        return added;
      }
      ++counts.records;
      counts.unanswered += checked[i]->has_answer ? 0 : 1;
    }
  }
  return counts;
}

}  // namespace

absl::Status RecordIds::Add(int64_t record, const std::string& id,
                            Example::IdKind kind) {
  const std::string where = source_->Where(record);
  if (where.empty()) {
    return absl::OkStatus();
  }
  if (kind == Example::IdKind::kNumber && !predicts_) {
    return places_.AddWithinFile(id, where);
  }
  if (kind == Example::IdKind::kOfText) {
    const auto [first, is_new] = repeatable_.try_emplace(id, record);
    if (!is_new && HaveSameInput(first->second, record)) {
      return absl::OkStatus();
    }
  }
  return places_.Add(id, where);
}

bool RecordIds::HaveSameInput(int64_t first, int64_t second) const {
  const absl::StatusOr<Examples> left =
      source_->Make(RequestForEvaluation(first));
  const absl::StatusOr<Examples> right =
      source_->Make(RequestForEvaluation(second));
  return !left.ok() || !right.ok() || left->empty() || right->empty() ||
         left->front()->long_token_ids == right->front()->long_token_ids;
}

std::string UnansweredText(int64_t unanswered) {
  return absl::StrCat(Counted(unanswered, "record"), " without an answer ",
                      unanswered == 1 ? "is" : "are",
                      " left out of the scores");
}

absl::Status CheckRecords(const OfficialRecords& records,
                          const RecordCheckOptions& options) {
  return CheckShare(records, options).status();
}

absl::StatusOr<RecordCounts> CheckRecordsAndIds(
    const OfficialRecords& records, const RecordCheckOptions& options) {
  ETC_ASSIGN_OR_RETURN(Checked share, CheckShare(records, options));
  ETC_ASSIGN_OR_RETURN(const Checked checked,
                       GatherShares(std::move(share), options.group));
  absl::StatusOr<RecordCounts> counts = CountRecords(checked, records, options);
  ETC_RETURN_IF_ERROR(options.group.Agree(counts.status()));
  return counts;
}

}  // namespace etc
