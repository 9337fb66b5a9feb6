#ifndef ETC_TESTS_TASKS_TEXT_WORD_TOKENIZER_H_
#define ETC_TESTS_TASKS_TEXT_WORD_TOKENIZER_H_

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "tasks/text/byte_range.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Makes pieces of whole words, for tests whose golden values are spelt in
// words: runs of ASCII letters, digits and characters beyond ASCII, and each
// other character that is no blank. Ids follow the list of words from 10 on;
// other words are [UNK], 6.
class WordTokenizer : public Tokenizer {
 public:
  explicit WordTokenizer(std::vector<std::string> words,
                         bool lower_cases = true, TextMarkIds marks = {})
      : words_(std::move(words)),
        lower_cases_(lower_cases),
        marks_(std::move(marks)) {}

  std::vector<Token> Encode(absl::string_view text) const override {
    std::vector<Token> pieces;
    for (size_t begin = 0; begin < text.size();) {
      size_t end = begin + 1;
      if (IsOfWord(text[begin])) {
        while (end < text.size() && IsOfWord(text[end])) {
          ++end;
        }
      }
      if (!std::isspace(static_cast<unsigned char>(text[begin]))) {
        const absl::string_view word = text.substr(begin, end - begin);
        const int32_t id =
            Id(lower_cases_ ? absl::AsciiStrToLower(word) : std::string(word));
        pieces.push_back({.id = id < 0 ? kUnknown : id,
                          .begin = static_cast<int64_t>(begin),
                          .end = static_cast<int64_t>(end)});
      }
      begin = end;
    }
    return pieces;
  }

  int64_t vocab_size() const override {
    return kFirst + static_cast<int64_t>(words_.size());
  }
  std::string Piece(int32_t id) const override {
    return id < kFirst ? "[UNK]" : words_[static_cast<size_t>(id - kFirst)];
  }
  int32_t Id(absl::string_view piece) const override {
    if (piece == "[UNK]") {
      return kUnknown;
    }
    const auto found = std::find(words_.begin(), words_.end(), piece);
    return found == words_.end()
               ? -1
               : kFirst + static_cast<int32_t>(found - words_.begin());
  }
  bool lower_cases() const override { return lower_cases_; }
  TextMarkIds marks() const override { return marks_; }

 private:
  static constexpr int32_t kUnknown = 6;
  static constexpr int32_t kFirst = 10;

  static bool IsOfWord(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalnum(byte) != 0;
  }

  std::vector<std::string> words_;
  bool lower_cases_;
  TextMarkIds marks_;
};

// Ends a sentence behind each full stop.
inline std::vector<ByteRange> SplitAtFullStops(absl::string_view text) {
  std::vector<ByteRange> sentences;
  for (size_t begin = 0; begin < text.size();) {
    const size_t stop = text.find('.', begin);
    const size_t end = stop == absl::string_view::npos ? text.size() : stop + 1;
    sentences.push_back({.begin = static_cast<int64_t>(begin),
                         .end = static_cast<int64_t>(end)});
    begin = text.find_first_not_of(' ', end);
  }
  return sentences;
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_TEXT_WORD_TOKENIZER_H_
