#ifndef ETC_TESTS_TASKS_USER_MISTAKES_H_
#define ETC_TESTS_TASKS_USER_MISTAKES_H_

#include <functional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/support/temporary_directory.h"

namespace etc {

// Mistakes of users, as tables: the way to make the mistake, the command that
// meets it, and the words that its message needs for them to know what to do.

// A folder as a user has it who is about to train: run.json, vocab.txt and
// data.json, small enough that a run of two updates takes a second. Paths in
// all of them are relative to it. May be used by one thread at a time.
class UserFolder {
 public:
  UserFolder();

  const std::string& path() const { return directory_.path(); }
  std::string File(const std::string& name) const {
    return directory_.File(name);
  }
  void Write(const std::string& name, const std::string& contents) {
    directory_.Write(name, contents);
  }
  std::string Read(const std::string& name) const;
  void Remove(const std::string& name);
  // Cuts a file off after its first `bytes`, or, if negative, before its last.
  void Cut(const std::string& name, int64_t bytes);
  // Replaces the first `from` in a file, which must be there, by `to`.
  void Replace(const std::string& name, const std::string& from,
               const std::string& to);
  // The records of data.json, each changed by `change`.
  void ChangeRecords(const std::function<void(nlohmann::json*)>& change);
  // A finished run in run/, whose checkpoint is kCheckpoint.
  void AddRun();

 private:
  TemporaryDirectory directory_;
};

inline constexpr char kCheckpoint[] = "run/seed-1/checkpoints/best";

struct UserMistake {
  // Prepares the folder; may be null.
  std::function<void(UserFolder*)> make;
  // Arguments of the program, run in the folder, as in a shell.
  std::string arguments;
  // Texts that must all be in the message.
  std::vector<std::string> words;
  // 1: it failed; 2: it was not called as it should be.
  int exit_code = 1;
  // The mistake is met when the run has begun: run/ may be there, but no
  // checkpoint and no temporary file in it.
  bool begins_run = false;
};

// Runs each in a folder of its own and expects the exit code, exactly one line
// of error on standard error (warnings and progress aside), last, with the
// words; nothing on standard output; and a folder as it was before: no file
// new, changed or gone (but for `begins_run`).
void ExpectClearErrors(const std::vector<UserMistake>& mistakes);

}  // namespace etc

#endif  // ETC_TESTS_TASKS_USER_MISTAKES_H_
