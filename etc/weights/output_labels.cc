#include "etc/weights/output_labels.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "etc/weights/hugging_face_fields.h"

namespace etc {
namespace {

// The first few names, quoted.
std::string Quoted(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", QuotedName(names[i]));
  }
  if (names.size() > kShown) {
    absl::StrAppend(&text, " and ", names.size() - kShown, " more");
  }
  return text;
}

// "0", "1", ...: the indices as names, in any order.
bool AreIndices(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::vector<std::string> indices;
  for (size_t i = 0; i < names.size(); ++i) {
    indices.push_back(absl::StrCat(i));
  }
  std::sort(indices.begin(), indices.end());
  return names == indices;
}

// The output of each label by name; empty unless each has one. With
// `folds_case`, names that differ by case alone must not occur on one side.
std::vector<int64_t> ByName(const std::vector<std::string>& labels,
                            const std::vector<std::string>& theirs,
                            bool folds_case) {
  const auto key = [folds_case](const std::string& name) {
    return folds_case ? absl::AsciiStrToLower(name) : name;
  };
  std::map<std::string, int64_t> outputs;
  for (const std::string& name : theirs) {
    outputs.emplace(key(name), static_cast<int64_t>(outputs.size()));
  }
  if (outputs.size() < theirs.size()) {
    return {};
  }
  std::vector<int64_t> rows;
  std::map<int64_t, std::string> taken;
  for (const std::string& label : labels) {
    const auto found = outputs.find(key(label));
    if (found == outputs.end() || !taken.emplace(found->second, label).second) {
      return {};
    }
    rows.push_back(found->second);
  }
  return rows;
}

// "0 is \"a\", 1 is \"b\""
std::string Outputs(const std::vector<std::string>& labels,
                    const std::vector<int64_t>& rows) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(labels.size(), kShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", rows[i], " is ",
                    QuotedName(labels[i]));
  }
  return absl::StrCat(text, labels.size() > kShown ? ", ..." : "");
}

std::vector<std::string> Placeholders(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) {
    names.push_back(PlaceholderLabel(static_cast<size_t>(i)));
  }
  return names;
}

std::vector<int64_t> InOrder(size_t count) {
  std::vector<int64_t> rows(count);
  for (size_t i = 0; i < count; ++i) {
    rows[i] = static_cast<int64_t>(i);
  }
  return rows;
}

}  // namespace

OutputMatch MatchOutputs(const std::vector<std::string>& labels,
                         const std::vector<std::string>& theirs,
                         int64_t num_outputs) {
  OutputMatch match;
  if (labels == theirs) {
    match.rows = InOrder(labels.size());
    return match;
  }
  const std::vector<std::string> names =
      theirs.empty() ? Placeholders(num_outputs) : theirs;
  for (const bool folds_case : {false, true}) {
    match.rows = ByName(labels, names, folds_case);
    if (match.rows.empty()) {
      continue;
    }
    match.message = absl::StrCat(
        "outputs matched by name", folds_case ? " without regard to case" : "",
        ": ", Outputs(labels, match.rows),
        labels.size() < names.size() ? ", the others are left out" : "");
    return match;
  }
  const bool is_unnamed = theirs.empty() || AreIndices(theirs);
  if (num_outputs != static_cast<int64_t>(labels.size()) ||
      (!is_unnamed && !AreIndices(labels))) {
    match.message =
        absl::StrCat("its ", num_outputs, " outputs are ",
                     theirs.empty() ? "without names" : Quoted(theirs),
                     ", but the labels are ", Quoted(labels));
    return match;
  }
  if (AreIndices(labels)) {
    for (const std::string& label : labels) {
      match.rows.push_back(std::stoll(label));
    }
    match.message = absl::StrCat(
        "outputs by number: ",
        Outputs(theirs.empty() ? labels : theirs, InOrder(labels.size())));
    return match;
  }
  match.rows = InOrder(labels.size());
  for (size_t i = 0; i < theirs.size(); ++i) {
    match.rows[static_cast<size_t>(std::stoll(theirs[i]))] =
        static_cast<int64_t>(i);
  }
  match.is_guess = true;
  match.message = absl::StrCat(
      "the classifier does not name its outputs (LABEL_0, ...), so "
      "they are taken in order: ",
      Outputs(labels, match.rows),
      "; where they mean something else, list the labels in their order");
  return match;
}

}  // namespace etc
