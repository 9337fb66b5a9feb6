#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/formats/tensorflow/tensorflow_checkpoint.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kIndexSuffix = ".index";
constexpr uint64_t kMostStateBytes = 16 << 20;

// The name in the line `model_checkpoint_path: "..."` of a file `checkpoint`.
absl::StatusOr<std::string> ReadLatest(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostStateBytes));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "model_checkpoint_path:")) {
      continue;
    }
    line = absl::StripAsciiWhitespace(line);
    std::string name;
    if (line.size() < 2 || line.front() != '"' || line.back() != '"' ||
        !absl::CUnescape(line.substr(1, line.size() - 2), &name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": model_checkpoint_path should be in quotation marks, but is ",
          QuotedName(line)));
    }
    if (!IsPlainBaseName(name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": model_checkpoint_path should be in the same folder, but is ",
          QuotedName(name), "; name the checkpoint itself instead"));
    }
    return name;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": has no line model_checkpoint_path"));
}

absl::StatusOr<std::string> PrefixInDirectory(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory / "checkpoint", error)) {
    ETC_ASSIGN_OR_RETURN(const std::string name,
                         ReadLatest((directory / "checkpoint").string()));
    return (directory / name).string();
  }
  std::vector<std::string> names;
  for (auto entry = fs::directory_iterator(directory, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (absl::EndsWith(name, kIndexSuffix)) {
      names.push_back(name);
    }
  }
  if (error) {
    return absl::ErrnoToStatus(
        error.value(), absl::StrCat("cannot list ", directory.string()));
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) {
    return absl::NotFoundError(absl::StrCat(
        directory.string(),
        " has no TensorFlow checkpoint: neither `checkpoint` nor *.index"));
  }
  if (names.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory.string(), " has several TensorFlow checkpoints, name one: ",
        absl::StrJoin(names, ", ")));
  }
  return std::string(
      absl::StripSuffix((directory / names.front()).string(), kIndexSuffix));
}

// `path` without what names one of a checkpoint's files.
std::string WithoutSuffix(const std::string& path) {
  if (absl::EndsWith(path, kIndexSuffix)) {
    return std::string(absl::StripSuffix(path, kIndexSuffix));
  }
  const size_t data = path.rfind(".data-");
  const bool is_data_file = data != std::string::npos &&
                            path.find('/', data) == std::string::npos &&
                            path.find("-of-", data) != std::string::npos;
  return is_data_file ? path.substr(0, data) : path;
}

}  // namespace

absl::StatusOr<std::string> TensorFlowCheckpointPrefix(
    const std::string& path) {
  std::error_code ignored;
  std::string prefix = WithoutSuffix(path);
  // A directory may be called like the checkpoint in another one.
  if (fs::is_directory(path, ignored) &&
      !fs::exists(absl::StrCat(prefix, kIndexSuffix), ignored)) {
    ETC_ASSIGN_OR_RETURN(prefix, PrefixInDirectory(path));
  }
  const std::string index = absl::StrCat(prefix, kIndexSuffix);
  if (fs::exists(index, ignored)) {
    return prefix;
  }
  if (fs::is_regular_file(prefix, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(
        prefix, " should be a TensorFlow V2 checkpoint, but there is no ",
        index, ": V1 checkpoints are not supported"));
  }
  return absl::NotFoundError(absl::StrCat("there is no ", index));
}

}  // namespace etc
