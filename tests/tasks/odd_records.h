#ifndef ETC_TESTS_TASKS_ODD_RECORDS_H_
#define ETC_TESTS_TASKS_ODD_RECORDS_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace etc {

// Words that the vocabularies of tests should have.
std::vector<std::string> OddRecordWords();

class OddRecords;
struct RunConfig;

// A task's odd records, from tests/tasks/TASK/odd_records.cc.
struct OddTask {
  // Makes a record of its format.
  nlohmann::json (*record)(OddRecords* odd);
  // Draws its options, each as likely as not.
  nlohmann::json (*options)(OddRecords* odd);
  // Raises lengths, which begin at 1, above those that the task refuses
  // (Benchmark::Lengths); null: it refuses none.
  void (*fit)(OddRecords* odd, RunConfig* config) = nullptr;
  // The fields of a record that hold answers.
  std::vector<std::string> answers;

  // Returns whether it is the first of its name.
  static bool Register(const std::string& name, const OddTask& task);
  // Throws if none of that name was registered.
  static const OddTask& Of(const std::string& name);
};

// Records of the tasks' formats whose texts are what people do not think
// of: nothing at all, white space of all kinds, combining marks alone, right to
// left, emoji, NUL, special pieces spelt out, very long words. The same for the
// same seed. Some records are not as their format has it: a field of another
// type, half a surrogate pair.
class OddRecords {
 public:
  explicit OddRecords(uint64_t seed) : random_(seed) {}

  // A number from 0 to bound - 1.
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  bool OneIn(int64_t times) { return Below(times) == 0; }

  template <typename T>
  const T& Of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(
        Below(static_cast<int64_t>(choices.size())))];
  }
  // A word or something odd, a text of some, and at most so many texts.
  std::string Fragment();
  std::string Text();
  std::vector<std::string> Texts(int64_t most);

  // The JSON text of a record.
  std::string Record(const OddTask& task);

 private:
  std::mt19937_64 random_;
};

}  // namespace etc

#endif  // ETC_TESTS_TASKS_ODD_RECORDS_H_
