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

  // The JSON text of a record.
  std::string Record(const std::string& task);

 private:
  template <typename T>
  const T& Of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(
        Below(static_cast<int64_t>(choices.size())))];
  }
  std::string Fragment();
  std::string Text();
  std::vector<std::string> Texts(int64_t most);

  nlohmann::json Wikihop();
  nlohmann::json Hotpotqa();
  nlohmann::json Openkp();
  nlohmann::json KeyPhrases(const std::vector<std::string>& texts);
  nlohmann::json Features();
  nlohmann::json Classify();
  nlohmann::json Glue();
  nlohmann::json Squad();
  nlohmann::json Nq();
  // The field with the text of a document of so many tokens.
  void AddNqDocument(int64_t tokens, nlohmann::json* record);
  nlohmann::json Annotation(int64_t tokens);
  // Tokens [start, end) of a document, or none if it has none.
  nlohmann::json Span(int64_t tokens);

  std::mt19937_64 random_;
};

}  // namespace etc

#endif  // ETC_TESTS_TASKS_ODD_RECORDS_H_
