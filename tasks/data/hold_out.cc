#include "tasks/data/hold_out.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace etc {

std::vector<bool> ChooseHeldOut(const std::vector<std::string>& strata,
                                const HoldOutOptions& options) {
  // Records of each stratum in a random order.
  std::map<std::string, std::vector<std::pair<uint64_t, size_t>>> members;
  for (size_t i = 0; i < strata.size(); ++i) {
    members[strata[i]].emplace_back(
        CombineSeeds(
            {static_cast<uint64_t>(options.seed), static_cast<uint64_t>(i)}),
        i);
  }
  std::vector<bool> is_held_out(strata.size());
  size_t before = 0;
  size_t chosen = 0;
  for (auto& [stratum, records] : members) {
    std::sort(records.begin(), records.end());
    // The fractions of records add up over the strata.
    before += records.size();
    const auto due = static_cast<size_t>(
        std::llround(options.fraction * static_cast<double>(before)));
    // Limits each stratum to its own share, where rare ones before it gave
    // less.
    const auto most = static_cast<size_t>(
        std::ceil(options.fraction * static_cast<double>(records.size())));
    const size_t take =
        std::min({due - std::min(due, chosen), most, records.size() - 1});
    for (size_t i = 0; i < take; ++i) {
      is_held_out[records[i].second] = true;
    }
    chosen += take;
  }
  return is_held_out;
}

std::string DescribeHeldOut(const std::vector<FileRecord>& records,
                            const std::vector<bool>& is_held_out) {
  Sha256 digest;
  for (size_t i = 0; i < records.size(); ++i) {
    if (is_held_out[i]) {
      digest.Update(absl::StrCat(i, " ", records[i].Text(), "\n"));
    }
  }
  return absl::StrCat(std::count(is_held_out.begin(), is_held_out.end(), true),
                      " of ",
                      Counted(static_cast<int64_t>(records.size()), "record"),
                      ", sha256:", digest.HexDigest());
}

namespace {

absl::Status HoldsNoneOut(const std::vector<std::string>& strata,
                          const HoldOutOptions& options) {
  const std::set<std::string> labels(strata.begin(), strata.end());
  const bool is_due =
      std::llround(options.fraction * static_cast<double>(strata.size())) > 0;
  return absl::InvalidArgumentError(absl::StrCat(
      "data.dev_fraction ", options.fraction, " of ",
      Counted(static_cast<int64_t>(strata.size()), "record"),
      " holds none out for evaluations",
      is_due && labels.size() > 1
          ? absl::StrCat(": they have ", labels.size(),
                         " different labels, each of which keeps a record for "
                         "training")
          : ""));
}

// Checks that the held out records are those that the run began with.
absl::Status CheckHeldOut(const std::vector<FileRecord>& records,
                          const std::vector<bool>& is_held_out,
                          const HoldOutOptions& options) {
  const std::string found = DescribeHeldOut(records, is_held_out);
  if (options.expected.empty() || options.expected == found) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the records of data.train that are held out for evaluations "
      "(data.dev_fraction) are not those of the run: they were ",
      options.expected, " (data.dev_records), and are ", found,
      "; the files have changed, so that others are held out than those that "
      "the model was not trained on"));
}

}  // namespace

absl::StatusOr<std::vector<bool>> FindHeldOut(
    const std::vector<FileRecord>& records,
    absl::FunctionRef<std::string(const std::string& json,
                                  const std::string& where)>
        stratum,
    const HoldOutOptions& options) {
  std::vector<std::string> strata;
  strata.reserve(records.size());
  for (const FileRecord& record : records) {
    strata.push_back(stratum(record.Text(), record.where));
  }
  std::vector<bool> is_held_out = ChooseHeldOut(strata, options);
  if (std::count(is_held_out.begin(), is_held_out.end(), true) == 0) {
    return HoldsNoneOut(strata, options);
  }
  ETC_RETURN_IF_ERROR(CheckHeldOut(records, is_held_out, options));
  return is_held_out;
}

}  // namespace etc
