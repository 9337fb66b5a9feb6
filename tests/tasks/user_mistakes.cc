#include "tests/tasks/user_mistakes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tests/support/run_realetc.h"
#include "tests/support/snapshot.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

std::string ContentsOf(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream contents;
  contents << stream.rdbuf();
  return contents.str();
}

// A folder with a finished run, made once.
const UserFolder& FolderWithRun() {
  static const std::unique_ptr<const UserFolder> folder = [] {
    auto made = std::make_unique<UserFolder>();
    TemporaryDirectory output;
    const std::string err = output.File("err");
    EXPECT_EQ(
        RunRealetc(made->path(), "train run.json", output.File("out"), err), 0)
        << ContentsOf(err);
    return made;
  }();
  return *folder;
}

// Everything that is not as it should be, or nothing.
std::string WhatIsWrongWith(const UserMistake& mistake) {
  UserFolder folder;
  if (mistake.make != nullptr) {
    mistake.make(&folder);
  }
  const std::map<std::string, std::string> before = Snapshot(folder.path());
  TemporaryDirectory output;
  const std::string out_path = output.File("out");
  const std::string err_path = output.File("err");
  const int code =
      RunRealetc(folder.path(), mistake.arguments, out_path, err_path);
  const std::string out = ContentsOf(out_path);
  const std::string err = ContentsOf(err_path);

  std::string wrong;
  if (code != mistake.exit_code) {
    absl::StrAppend(&wrong, "exit code ", code, " instead of ",
                    mistake.exit_code, "; ");
  }
  std::vector<std::string> errors;
  std::string last;
  for (const absl::string_view line :
       absl::StrSplit(err, '\n', absl::SkipEmpty())) {
    last = std::string(line);
    if (absl::StartsWith(line, "realetc: ") &&
        !absl::StartsWith(line, "realetc: warning: ")) {
      errors.push_back(last);
    }
  }
  if (errors.size() != 1 || errors[0] != last) {
    absl::StrAppend(&wrong, errors.size(),
                    " lines of error, or not the last; ");
  }
  for (const std::string& word : mistake.words) {
    if (!absl::StrContains(last, word)) {
      absl::StrAppend(&wrong, "no \"", word, "\" in it; ");
    }
  }
  for (const absl::string_view trace :
       {"internal error", "terminate", "what()", "c10", "xception", "frame #",
        "std::", "nlohmann"}) {
    if (absl::StrContains(err, trace)) {
      absl::StrAppend(&wrong, "\"", trace, "\" in it; ");
    }
  }
  if (!out.empty()) {
    absl::StrAppend(&wrong, "standard output has ", out.size(), " bytes; ");
  }
  const std::map<std::string, std::string> after = Snapshot(folder.path());
  for (const auto& [name, contents] : after) {
    const bool may_be = mistake.begins_run && name.starts_with("run") &&
                        before.count("run") == 0 &&
                        !absl::StrContains(name, "step-") &&
                        !absl::StrContains(name, "tmp");
    // The lock names the process that was the last to hold it.
    const bool is_lock = absl::EndsWith(name, "/lock");
    if (!may_be && !(is_lock && before.count(name) > 0) &&
        (before.count(name) == 0 || before.at(name) != contents)) {
      absl::StrAppend(&wrong, name, " is new or changed; ");
    }
  }
  for (const auto& [name, ignored] : before) {
    if (after.count(name) == 0) {
      absl::StrAppend(&wrong, name, " is gone; ");
    }
  }
  return wrong.empty() ? "" : absl::StrCat(wrong, "\n  standard error:\n", err);
}

}  // namespace

UserFolder::UserFolder() {
  // Made so that two updates are enough to see everything work, not to learn.
  const std::vector<std::string> towns = {"oslo", "rome", "lima"};
  nlohmann::json records = nlohmann::json::array();
  for (size_t i = 0; i < 6; ++i) {
    const std::string& answer = towns[i % towns.size()];
    records.push_back(
        {{"id", absl::StrCat("q", i)},
         {"query", "town_of mira"},
         {"answer", answer},
         {"candidates", towns},
         {"supports", {absl::StrCat("mira lives in ", answer, " .")}}});
  }
  Write("data.json", records.dump());
  Write("vocab.txt",
        "[PAD]\n[unused0]\n[unused1]\n[unused2]\n[unused3]\n[unused4]\n[UNK]\n"
        "[CLS]\n[SEP]\noslo\nrome\nlima\ntown\n_\nof\nmira\nlives\nin\n.\n");
  const nlohmann::json config = {
      {"task", "wikihop"},
      {"model",
       {{"vocab_size", 19},
        {"hidden_size", 8},
        {"num_hidden_layers", 2},
        {"num_attention_heads", 2},
        {"local_radius", 4},
        {"intermediate_size", 16}}},
      {"residual_attention", "sum"},
      {"tokenizer", {{"vocabulary", "vocab.txt"}}},
      {"data", {{"train", {"data.json"}}, {"dev", {"data.json"}}}},
      {"train",
       {{"batch_size", 3},
        {"micro_batch_size", 2},
        {"steps", 2},
        {"threads", 1}}},
      {"output", "run"}};
  Write("run.json", config.dump(2));
}

std::string UserFolder::Read(const std::string& name) const {
  return ContentsOf(File(name));
}

void UserFolder::Remove(const std::string& name) { fs::remove_all(File(name)); }

void UserFolder::Cut(const std::string& name, int64_t bytes) {
  const std::string contents = Read(name);
  Write(name, contents.substr(0, bytes >= 0 ? static_cast<size_t>(bytes)
                                            : contents.size() +
                                                  static_cast<size_t>(bytes)));
}

void UserFolder::Replace(const std::string& name, const std::string& from,
                         const std::string& to) {
  std::string contents = Read(name);
  const size_t at = contents.find(from);
  if (at == std::string::npos) {
    throw std::runtime_error(name + " has no " + from);
  }
  Write(name, contents.replace(at, from.size(), to));
}

void UserFolder::ChangeRecords(
    const std::function<void(nlohmann::json*)>& change) {
  nlohmann::json records = nlohmann::json::parse(Read("data.json"));
  for (nlohmann::json& record : records) {
    change(&record);
  }
  Write("data.json", records.dump());
}

void UserFolder::AddRun() {
  fs::copy(FolderWithRun().File("run"), File("run"),
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

void ExpectClearErrors(const std::vector<UserMistake>& mistakes) {
  for (size_t i = 0; i < mistakes.size(); ++i) {
    EXPECT_EQ(WhatIsWrongWith(mistakes[i]), "")
        << "mistake " << i << ": realetc " << mistakes[i].arguments;
  }
}

}  // namespace etc
