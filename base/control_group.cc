#include "base/control_group.h"

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace etc {
namespace {

std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

// The words of the first line; none if there is no such file.
std::vector<std::string> ReadWords(const std::string& path) {
  const std::vector<std::string> lines = ReadLines(path);
  if (lines.empty()) {
    return {};
  }
  return absl::StrSplit(lines.front(), ' ', absl::SkipWhitespace());
}

// A positive number; nothing for "max" and -1, which mean no limit.
std::optional<int64_t> PositiveNumber(const std::vector<std::string>& words,
                                      size_t index) {
  int64_t number = 0;
  if (index < words.size() && absl::SimpleAtoi(words[index], &number) &&
      number > 0) {
    return number;
  }
  return std::nullopt;
}

// Paths in mountinfo have spaces and others as "\040".
std::string Unescaped(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto is_octal = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '7';
    };
    if (text[i] == '\\' && is_octal(i + 1) && is_octal(i + 2) &&
        is_octal(i + 3)) {
      result += static_cast<char>((text[i + 1] - '0') * 64 +
                                  (text[i + 2] - '0') * 8 + text[i + 3] - '0');
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

// A mounted hierarchy of groups. Version 2 has one for all controllers.
struct Hierarchy {
  std::vector<std::string> controllers;  // of version 1: "memory", ...
  bool is_version_2 = false;
  std::string root;         // the group that is mounted
  std::string mount_point;  // where

  bool Has(const std::string& controller) const {
    return is_version_2 || std::find(controllers.begin(), controllers.end(),
                                     controller) != controllers.end();
  }
};

// "25 30 0:23 /docker/1f /sys/fs/cgroup rw,... shared:9 - cgroup2 cgroup rw"
std::optional<Hierarchy> ParseMount(const std::string& line) {
  const std::vector<std::string> halves =
      absl::StrSplit(line, absl::MaxSplits(" - ", 1));
  if (halves.size() < 2) {
    return std::nullopt;
  }
  const std::vector<std::string> mount = absl::StrSplit(halves[0], ' ');
  const std::vector<std::string> type = absl::StrSplit(halves[1], ' ');
  if (mount.size() < 5 || type.size() < 3 ||
      (type[0] != "cgroup2" && type[0] != "cgroup")) {
    return std::nullopt;
  }
  return Hierarchy{.controllers = absl::StrSplit(type[2], ','),
                   .is_version_2 = type[0] == "cgroup2",
                   .root = Unescaped(mount[3]),
                   .mount_point = Unescaped(mount[4])};
}

std::vector<Hierarchy> FindHierarchies(const std::string& root) {
  std::vector<Hierarchy> hierarchies;
  for (const std::string& line : ReadLines(root + "/proc/self/mountinfo")) {
    if (auto hierarchy = ParseMount(line)) {
      hierarchies.push_back(*std::move(hierarchy));
    }
  }
  if (hierarchies.empty()) {
    // The usual mount points.
    hierarchies = {
        {.is_version_2 = true, .root = "/", .mount_point = "/sys/fs/cgroup"}};
    for (const char* controller : {"memory", "cpu"}) {
      hierarchies.push_back(
          {.controllers = {controller},
           .root = "/",
           .mount_point = absl::StrCat("/sys/fs/cgroup/", controller)});
    }
  }
  return hierarchies;
}

// The group of this process in `hierarchy`, from the lines of
// /proc/self/cgroup: "0::/user.slice/job" or "4:cpu,cpuacct:/job".
std::string GroupIn(const Hierarchy& hierarchy,
                    const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) {
      continue;
    }
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    const bool is_it = hierarchy.is_version_2
                           ? parts[0] == "0" && parts[1].empty()
                           : std::any_of(controllers.begin(), controllers.end(),
                                         [&](const std::string& controller) {
                                           return !controller.empty() &&
                                                  hierarchy.Has(controller);
                                         });
    if (is_it) {
      return parts[2];
    }
  }
  return "/";
}

// Returns the directories of `group` and of all groups above it that can be
// seen. A group outside the mount, "/../other", has none of its own.
std::vector<std::string> DirectoriesOf(const Hierarchy& hierarchy,
                                       const std::string& group) {
  absl::string_view below = group;
  if (hierarchy.root != "/") {
    const bool is_within = below == hierarchy.root ||
                           absl::StartsWith(below, hierarchy.root + "/");
    below.remove_prefix(is_within ? hierarchy.root.size() : below.size());
  }
  std::vector<std::string> directories = {hierarchy.mount_point};
  for (const absl::string_view name :
       absl::StrSplit(below, '/', absl::SkipEmpty())) {
    if (name == "..") {
      return {hierarchy.mount_point};
    }
    directories.push_back(absl::StrCat(directories.back(), "/", name));
  }
  return directories;
}

template <typename T>
void Lower(std::optional<T>* least, const std::optional<T>& limit) {
  if (limit.has_value() && (!least->has_value() || *limit < **least)) {
    *least = limit;
  }
}

std::optional<double> CpusIn(const std::string& directory, bool is_version_2) {
  std::optional<int64_t> quota;
  std::optional<int64_t> period;
  if (is_version_2) {
    const std::vector<std::string> words = ReadWords(directory + "/cpu.max");
    quota = PositiveNumber(words, 0);
    period = PositiveNumber(words, 1);
  } else {
    quota = PositiveNumber(ReadWords(directory + "/cpu.cfs_quota_us"), 0);
    period = PositiveNumber(ReadWords(directory + "/cpu.cfs_period_us"), 0);
  }
  if (!quota.has_value() || !period.has_value()) {
    return std::nullopt;
  }
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

ControlGroupLimits ReadControlGroupLimits(const std::string& root) {
  ControlGroupLimits limits;
  const std::vector<std::string> lines = ReadLines(root + "/proc/self/cgroup");
  for (const Hierarchy& hierarchy : FindHierarchies(root)) {
    for (const std::string& path :
         DirectoriesOf(hierarchy, GroupIn(hierarchy, lines))) {
      const std::string directory = root + path;
      if (hierarchy.Has("memory")) {
        Lower(&limits.memory,
              PositiveNumber(
                  ReadWords(directory + (hierarchy.is_version_2
                                             ? "/memory.max"
                                             : "/memory.limit_in_bytes")),
                  0));
      }
      if (hierarchy.Has("cpu")) {
        Lower(&limits.cpus, CpusIn(directory, hierarchy.is_version_2));
      }
    }
  }
  return limits;
}

}  // namespace etc
