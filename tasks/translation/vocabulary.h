#ifndef ETC_TASKS_TRANSLATION_VOCABULARY_H_
#define ETC_TASKS_TRANSLATION_VOCABULARY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tasks/config/config.h"

namespace etc {

// Tokens of a text, and those of them that a vocabulary does not know.
struct UnknownTokens {
  int64_t tokens = 0;
  int64_t unknown = 0;

  // Adds the ids of a line, of which an end is not counted.
  void Add(absl::Span<const int32_t> ids);
  // "45.1 %"
  std::string Percent() const;
  // A warning about the text `name`; empty unless more than one token in twenty
  // is unknown.
  std::string Warning(absl::string_view name) const;
};

// The joint vocabulary of both languages: text to ids and back. Ids 0 to 3 are
// <s>, <pad>, </s> and <unk> (etc/encoder_decoder/config.h). All methods may be
// called from several threads.
class TranslationVocabulary {
 public:
  virtual ~TranslationVocabulary() = default;

  // The ids of a line of UTF-8, without the end. Tokens of a dictionary end at
  // white space as in fairseq's tokenize_line, in the sense of Python: a
  // no-break space too.
  virtual std::vector<int32_t> Encode(absl::string_view line) const = 0;
  // The text of ids, in one line; those below 3, and those beyond the
  // vocabulary, are left out. Of SentencePiece it is the library's text:
  // control pieces are left out too, and bytes of byte_fallback become
  // characters, those of line ends blanks.
  virtual std::string Decode(absl::Span<const int64_t> ids) const = 0;
  // The text of a line that Encode takes, written as Decode writes text.
  virtual std::string TextOf(absl::string_view line) const = 0;
  // Returns true if texts are tokenised: words and punctuation between blanks.
  virtual bool is_tokenized() const = 0;
  virtual int64_t size() const = 0;
  // Its text in the file; "" beyond the vocabulary.
  virtual std::string Piece(int64_t id) const = 0;
};

// Loads `config.vocabulary`. Of type "sentencepiece" it is a model of
// SentencePiece, whose own normalizer is all the cleaning there is. Of type
// "dictionary" it is fairseq's dict.txt, lines "<token> <count>" with ids from
// 4 on, for lines of tokens with white space between them; decoding joins the
// parts of subword-nmt, "@@ ".
//   kInvalidArgument     no file is named, another type, a file that is
//                        neither, a model whose first pieces are not the four
//                        above
//   kFailedPrecondition  as LoadSentencePieceModel
// and the errors of reading a file.
absl::StatusOr<std::shared_ptr<const TranslationVocabulary>>
LoadTranslationVocabulary(const TokenizerConfig& config);

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_VOCABULARY_H_
