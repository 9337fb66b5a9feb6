#ifndef ETC_TASKS_TOKENS_RECORD_H_
#define ETC_TASKS_TOKENS_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace etc {

// A record and a prediction, as programs give and get them
// (tasks/inference/predictor.h).

// A labelled part of a text, such as the name of a person.
struct TokensSpan {
  std::string label = {};
  // Code points of the text, end exclusive.
  int64_t start = 0;
  int64_t end = 0;

  bool operator==(const TokensSpan&) const = default;
};

// A document.
struct TokensRecord {
  // Absent in the file: the number of the record in it, from 0 on.
  std::string id = {};
  bool has_id = false;
  std::string text = {};
  // The words of each sentence, of a text that is split already. The text is
  // then made of them: blanks between words, line feeds between sentences.
  std::vector<std::vector<std::string>> sentences = {};
  // In order, without overlap. Absent in data to predict for.
  std::optional<std::vector<TokensSpan>> spans = std::nullopt;

  // Texts, which should be UTF-8.
  static constexpr auto kTexts = std::make_tuple(
      &TokensRecord::id, &TokensRecord::text, &TokensRecord::sentences);
};

// A span that a model found.
struct TokensPredictedSpan {
  TokensSpan span = {};
  // Its part of the text; empty if only the offsets are known.
  std::string text = {};
  // The least probability of a label among its words; 0 if it is not known.
  double probability = 0;
};

// A model's prediction for a document.
struct TokensPrediction {
  // In order, without overlap.
  std::vector<TokensPredictedSpan> spans = {};
  // IOB2 labels of a text that is split already, by its sentences.
  std::vector<std::vector<std::string>> tags = {};
};

}  // namespace etc

#endif  // ETC_TASKS_TOKENS_RECORD_H_
