#ifndef ETC_TASKS_HOTPOTQA_RECORD_H_
#define ETC_TASKS_HOTPOTQA_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace etc {

// A record and a prediction, as programs give and get them
// (tasks/inference/predictor.h).

// A paragraph of the context, split into sentences by the data set. From the
// second on they usually begin with a blank.
struct HotpotqaParagraph {
  std::string title = {};
  std::vector<std::string> sentences = {};

  // Texts, which should be UTF-8.
  static constexpr auto kTexts =
      std::make_tuple(&HotpotqaParagraph::title, &HotpotqaParagraph::sentences);
};

// A sentence that is needed for the answer: number `sentence`, from 0, of the
// paragraph with this title. In gold data it may be out of range.
struct HotpotqaFact {
  std::string title = {};
  int64_t sentence = 0;

  // clang-tidy 14 sees a pointer in the defaulted body.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const HotpotqaFact&, const HotpotqaFact&) = default;
};

// One question of a HotpotQA file (doc/hotpotqa.md 1.2).
struct HotpotqaRecord {
  std::string id = {};
  std::string question = {};
  std::vector<HotpotqaParagraph> context = {};
  // A span of the context, "yes" or "no"; none in data to predict for.
  std::optional<std::string> answer = std::nullopt;
  // Facts as in the file; empty in data to predict for.
  std::vector<HotpotqaFact> supporting_facts = {};
  // "bridge" or "comparison", and "easy", "medium" or "hard"; may be empty.
  std::string type = {};
  std::string level = {};

  // Texts, which should be UTF-8.
  static constexpr auto kTexts = std::make_tuple(
      &HotpotqaRecord::id, &HotpotqaRecord::question, &HotpotqaRecord::context);
};

// A prediction for one question, by a model or from a file. A file may lack
// either.
struct HotpotqaPrediction {
  std::optional<std::string> answer = std::nullopt;
  std::optional<std::vector<HotpotqaFact>> facts = std::nullopt;
  // The same by each of kHotpotqaThresholds, where the best of them is looked
  // for.
  std::vector<HotpotqaPrediction> by_threshold = {};
};

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_RECORD_H_
