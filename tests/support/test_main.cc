// The start of all test programs. `--only=FILE`, which may come many times,
// runs the test cases of these files alone, named as from tests/, and those of
// them that --gtest_filter chooses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>

namespace {

// Returns the one of `files` that `path` is, or nothing.
std::string Among(const std::set<std::string>& files, const char* path) {
  for (const std::string& file : files) {
    if (std::string_view(path).ends_with("/tests/" + file)) {
      return file;
    }
  }
  return "";
}

std::string Joined(const std::set<std::string>& suites) {
  std::string patterns;
  for (const std::string& suite : suites) {
    patterns.append(patterns.empty() ? "" : ":").append(suite).append(".*");
  }
  return patterns;
}

// Narrows GoogleTest's filter to cases of `files`. Returns false if one of them
// has none, or has a suite with cases of another file.
bool ChooseFiles(const std::set<std::string>& files) {
  std::set<std::string> found;
  std::set<std::string> own;
  std::set<std::string> others;
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const std::string file = Among(files, suite.GetTestInfo(j)->file());
      (file.empty() ? others : own).insert(suite.name());
      if (!file.empty()) {
        found.insert(file);
      }
    }
  }
  for (const std::string& suite : own) {
    if (others.contains(suite)) {
      return false;
    }
  }
  std::string filter = GTEST_FLAG_GET(filter);
  if (filter.empty() || filter == "*") {
    filter = Joined(own);
  } else if (filter.front() == '-') {
    filter.insert(0, Joined(own));
  } else if (!others.empty()) {
    filter += filter.find('-') == std::string::npos ? '-' : ':';
    filter += Joined(others);
  }
  GTEST_FLAG_SET(filter, filter);
  return found == files;
}

}  // namespace

int main(int argc, char** argv) {
  // A shell makes programs in the background ignore it, and those that they
  // start; tests send it to both.
  std::signal(SIGINT, SIG_DFL);
  testing::InitGoogleMock(&argc, argv);
  const std::string_view option = "--only=";
  std::set<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(option)) {
      std::fprintf(stderr, "Unknown argument: %s\n", argv[i]);
      return 2;
    }
    files.emplace(argument.substr(option.size()));
  }
  if (!files.empty() && !ChooseFiles(files)) {
    std::fprintf(stderr,
                 "Each file of --only should have test cases, and suites of "
                 "test cases that no other file of this program has\n");
    return 2;
  }
  return RUN_ALL_TESTS();
}
