#ifndef ETC_TESTS_SUPPORT_DIGIT_LABELS_H_
#define ETC_TESTS_SUPPORT_DIGIT_LABELS_H_

#include <string>
#include <vector>

namespace etc {

// Returns labels of a digit each: "1011" has four.
inline std::vector<std::string> DigitLabels(const std::string& digits) {
  std::vector<std::string> labels;
  labels.reserve(digits.size());
  for (const char digit : digits) {
    labels.emplace_back(1, digit);
  }
  return labels;
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_DIGIT_LABELS_H_
