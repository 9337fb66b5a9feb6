#ifndef ETC_TASKS_INPUTS_TEXT_INPUT_H_
#define ETC_TASKS_INPUTS_TEXT_INPUT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tasks/data/example.h"
#include "tasks/task/benchmark.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// A text or two as an input of an encoder, ETC or BERT, for tasks that do
// without a layout of their own:
//
//   [CLS] a [SEP]  or  [CLS] a [SEP] b [SEP]
//
// or, between a and b, what the tokenizer has there: RoBERTa two separators.
//
// BERT has these tokens as its global ones, with types 0 and, of b with its
// [SEP], 1 (doc/glue.md 4); RoBERTa with type 0 alone. ETC has them as long
// tokens, with types 1 and 2, and before them, global, a token that all of them
// belong to, and one for each sentence (doc/glue.md 11).

// Ids of the marks around texts.
struct TextMarks {
  int32_t cls = 101;
  int32_t separator = 102;
  // Pieces between two texts, in their order; absent: one `separator`.
  std::optional<std::vector<int32_t>> between = std::nullopt;
};

// The pieces around a text that FindSpecialIds finds; kInvalidArgument if the
// vocabulary has none.
absl::Status FindTextMarks(const Tokenizer& tokenizer, TextMarks* marks);

// Number of marks between two texts, and of all marks of one text or two.
int64_t NumMarksBetween(const TextMarks& marks);
int64_t NumMarks(const TextMarks& marks, bool two_texts);

// ETC's global tokens: the one that all belong to, and those of sentences.
inline constexpr int32_t kWholeTextToken = 1;
inline constexpr int32_t kSentenceOfTextToken = 2;
// The type of ETC's long tokens of text b.
inline constexpr int32_t kSecondTextType = 2;

// The pieces of a text. `sentences` has the sentence of each of the first
// pieces, from 0 on without gaps; the sentences of the others have no token.
// BERT ignores it.
struct TextPieces {
  std::vector<int32_t> ids;
  std::vector<int32_t> sentences;
};

// The pieces of a text, or of several that are read one after the other, before
// they are cut to the room that there is.
struct SplitText {
  // Bytes are those within the text that a piece is of.
  std::vector<Token> tokens;
  // The sentence of each piece, from 0 on without gaps; empty for BERT.
  std::vector<int32_t> sentences;
};

// The pieces that a word, or a longer part of a text, has behind a blank; none
// if it has none itself. Bytes are those of `part`; what stands for the blank
// alone has an empty range. Other pieces than Encode's only with a tokenizer
// that begins_words_with_blanks().
std::vector<Token> EncodeBehindBlank(absl::string_view part,
                                     const Tokenizer& tokenizer);

// Appends the pieces of a text, of which each sentence without any is left out.
// A sentence behind a blank begins as there.
void AppendText(absl::string_view text, const Tokenizer& tokenizer,
                const InputOptions& input, SplitText* split);

// Returns the pieces, of which some may have been cut off (CutLongerText), with
// the first `*room` sentences, which are taken from `*room`; adds the number of
// the others to `*dropped_sentences`.
TextPieces WithinRoom(const SplitText& split, int64_t* room,
                      int64_t* dropped_sentences);

// The kinds of ETC's global tokens; none of BERT's, which are the text itself.
std::vector<GlobalTokenName> GlobalTokensOfTexts(bool has_long_tokens);

// Rows of the tables and lengths that a task with WriteTexts' tokens needs.
TableSizes TablesOfTexts(const InputOptions& input);
NeededLengths LengthsOfTexts(const InputOptions& input,
                             const TextMarks& marks = {});

// Number of pieces that fit beside the marks around one text or two.
int64_t RoomForPieces(const InputOptions& input, const TextMarks& marks,
                      bool two_texts);

// Number of global tokens for sentences, of all texts together: 0 for BERT.
int64_t RoomForSentences(const InputOptions& input);

// Cuts the last piece of the longer text, of b where they are equal, until both
// have at most `room`. Returns how many were cut.
int64_t CutLongerText(int64_t room, std::vector<Token>* a,
                      std::vector<Token>* b);

// Writes the tokens, types and pattern of `example`. The texts must fit the
// room, and so must their sentences. ETC's global token 0 is that of all texts,
// 1 + s that of sentence s, those of `b` behind those of `a`.
void WriteTexts(const TextPieces& a, const std::optional<TextPieces>& b,
                const TextMarks& marks, const InputOptions& input,
                Example* example);

// Tokens of `example` that are those of the texts: global ones of BERT, long
// ones of ETC. Token i is [CLS] for i = 0.
const std::vector<int32_t>& TextTokens(const Example& example,
                                       const InputOptions& input);

}  // namespace etc

#endif  // ETC_TASKS_INPUTS_TEXT_INPUT_H_
