#include <algorithm>
#include <iterator>
#include <utility>

#include "base/status_macros.h"
#include "tasks/inputs/example_writer.h"
#include "tasks/inputs/text_input.h"
#include "tasks/openkp/task.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

constexpr int32_t kPadding = 0;
constexpr int64_t kOfficialMaxUrl = 1000;

// The part of a text up to the end of its first `num_words` words.
absl::string_view FirstWords(absl::string_view text, int64_t num_words) {
  size_t end = 0;
  for (int64_t w = 0; w < num_words && end < text.size(); ++w) {
    end = std::min(text.find(' ', w == 0 ? 0 : end + 1), text.size());
  }
  return text.substr(0, end);
}

// The two sequences, from left to right (doc/openkp.md 3.3, 3.7).
class PageWriter : public ExampleBuilder<Openkp> {
 public:
  PageWriter(const OpenkpRecord& record, const Openkp& openkp)
      : ExampleBuilder(openkp),
        record_(record),
        rules_(openkp.rules()),
        words_(OpenkpWords(record.text)) {}

  // Checks that elements cover the words of the document, in order and without
  // a gap: those of a struct, which no reader has checked, need not. Fixed
  // blocks do without them: some may be missing.
  absl::Status CheckElements(const std::string& where) const {
    const int64_t num_words = std::ssize(words_);
    int64_t covered = 0;
    for (size_t i = 0; i < record_.elements.size(); ++i) {
      const OpenkpElement& element = record_.elements[i];
      if (element.first_word != covered || element.end_word < covered ||
          element.end_word > num_words) {
        return InvalidArgument(where, ".elements[", i, "] should be words [",
                               covered, ", end) with end at most ", num_words,
                               ", but is [", element.first_word, ", ",
                               element.end_word, ")");
      }
      covered = element.end_word;
    }
    if (options().fixed_block_length == 0 && covered != num_words) {
      return InvalidArgument(where, ".elements should cover all ", num_words,
                             " words, but cover ", covered);
    }
    return absl::OkStatus();
  }

  void AddElements() {
    const std::vector<PhraseText> texts = ElementTexts(record_);
    for (size_t v = 0; v < record_.elements.size(); ++v) {
      if (example().elements.size() ==
          static_cast<size_t>(options().input.max_global_length)) {
        return;
      }
      const int64_t words = AddElement(record_.elements[v]);
      if (words < 0) {
        return;
      }
      label_texts_.push_back({FirstWords(texts[v].text, words), first_word_});
      if (words < NumWords(record_.elements[v])) {
        return;
      }
    }
  }

  // Words are taken as long as pieces and blocks suffice.
  void AddFixedBlocks() {
    const int64_t room = std::min(
        options().input.max_long_length,
        options().input.max_global_length * options().fixed_block_length);
    for (const absl::string_view word : words_) {
      const std::vector<Token> pieces = EncodeBehindBlank(word, tokenizer());
      if (example().long_length() + Size(pieces) > room || IsFullOfWords()) {
        break;
      }
      for (const Token& piece : pieces) {
        AddPiece(piece, static_cast<int32_t>(example().long_length() /
                                             options().fixed_block_length));
      }
      ++example().num_words;
    }
    const int64_t searched =
        example().long_words.empty() ? 0 : example().long_words.back() + 1;
    label_texts_.push_back({FirstWords(record_.text, searched), 0});
    num_globals_ = sentences_.empty() ? 0 : sentences_.back() + 1;
  }

  // Must be called once, last.
  void Finish() {
    example().dropped_words = std::max<int64_t>(
        0, static_cast<int64_t>(words_.size()) - example().num_words);
    if (record_.key_phrases.has_value()) {
      const bool anywhere =
          options().fixed_block_length > 0 && options().official_compatibility;
      example().labels = FindPhrases(
          EtcKeyPhrases(record_, rules_), label_texts_,
          anywhere ? PhraseMatch::kAnywhere : PhraseMatch::kWholeWords);
    }
    if (sentences_.empty()) {
      example().long_token_ids.push_back(kPadding);
      example().long_words.push_back(-1);
      sentences_.push_back(0);
    }
    if (options().fixed_block_length == 0 && example().elements.empty()) {
      example().elements.emplace_back();
    }
    num_globals_ = std::max<int64_t>(
        {1, num_globals_, static_cast<int64_t>(example().elements.size())});
    example().global_token_ids.assign(static_cast<size_t>(num_globals_),
                                      kOpenkpGlobalToken);
    SetTypesAndPattern(sentences_, options().input.pattern, &example());
  }

 private:
  static int64_t Size(const std::vector<Token>& pieces) {
    return static_cast<int64_t>(pieces.size());
  }

  // The official code splits the text of an element into words, and "" into one
  // empty word.
  int64_t NumWords(const OpenkpElement& element) const {
    const int64_t words = element.end_word - element.first_word;
    return options().official_compatibility ? std::max<int64_t>(1, words)
                                            : words;
  }

  // Each word takes a row of the n-gram logits; only documents with many empty
  // ones have more than tokens.
  bool IsFullOfWords() const {
    return !options().official_compatibility &&
           example().num_words >= options().input.max_long_length;
  }

  void AddPiece(const Token& piece, int32_t global) {
    example().long_token_ids.push_back(piece.id);
    example().long_words.push_back(static_cast<int32_t>(example().num_words));
    sentences_.push_back(global);
  }

  // Adds the words of an element that fit, or with official_compatibility all
  // or none of them. Returns how many; -1 if the element was not added.
  int64_t AddElement(const OpenkpElement& element) {
    std::vector<std::vector<Token>> pieces;
    const int64_t num_words = element.end_word - element.first_word;
    int64_t total = example().long_length();
    for (int64_t w = element.first_word; w < element.end_word; ++w) {
      pieces.push_back(
          EncodeBehindBlank(words_[static_cast<size_t>(w)], tokenizer()));
      total += Size(pieces.back());
      const bool is_full =
          !options().official_compatibility &&
          example().num_words + Size(pieces) > options().input.max_long_length;
      if (total > options().input.max_long_length || is_full) {
        pieces.pop_back();
        break;
      }
    }
    const bool is_cut = Size(pieces) < num_words;
    if (is_cut && (options().official_compatibility || pieces.empty())) {
      return -1;
    }
    first_word_ = example().num_words;
    for (const std::vector<Token>& word : pieces) {
      for (const Token& piece : word) {
        AddPiece(piece, static_cast<int32_t>(example().elements.size()));
      }
      ++example().num_words;
    }
    if (pieces.empty()) {
      example().num_words += NumWords(element);
    }
    OpenkpElement& added = example().elements.emplace_back(element);
    added.end_word = element.first_word + Size(pieces);
    return is_cut ? Size(pieces) : NumWords(element);
  }

  static int64_t Size(const std::vector<std::vector<Token>>& words) {
    return static_cast<int64_t>(words.size());
  }

  const OpenkpRecord& record_;
  const ScoringRules rules_;
  const std::vector<absl::string_view> words_;
  std::vector<int32_t> sentences_;  // [L]: the global token of each long one
  int64_t num_globals_ = 0;
  int64_t first_word_ = 0;  // of the element that was added last
  std::vector<PhraseText> label_texts_;
};

// Applies the type checks of the official program.
absl::Status CheckOfficially(const OpenkpRecord& record,
                             const std::string& where) {
  if (const int64_t length = CountCodePoints(record.id);
      length > kOfficialMaxUrl) {
    return InvalidArgument(where, ": document ", record.id, ": ",
                           "the url should have at most ", kOfficialMaxUrl,
                           " characters with official_compatibility, but "
                           "has ",
                           length);
  }
  if (record.has_integer_coordinates) {
    return InvalidArgument(
        where, ": document ", record.id, ": ",
        "positions and sizes should be written like 44.0, not like "
        "44, with official_compatibility");
  }
  return absl::OkStatus();
}

std::string ReasonLeftOut(const OpenkpExample& example,
                          bool official_compatibility) {
  if (example.labels.empty()) {
    return absl::StrCat(
        "no key phrase lies within one element (of a document: one sentence) "
        "of the input",
        example.dropped_words > 0 ? ", which data.max_long_length or "
                                    "data.max_global_length cuts"
                                  : "");
  }
  const bool can_be_said =
      std::any_of(example.labels.begin(), example.labels.end(),
                  [](const PhrasePosition& label) {
                    return label.length <= kOpenkpMaxPhraseLength;
                  });
  return can_be_said || official_compatibility
             ? ""
             : "all key phrases are longer than 5 words";
}

}  // namespace

int64_t OpenkpExample::TaskBytes() const {
  // Labels and references are a few strings.
  constexpr size_t kPhrases = 1024;
  return static_cast<int64_t>(sizeof(OpenkpExample) - sizeof(Example) +
                              kPhrases + text.capacity() +
                              long_words.capacity() * sizeof(int32_t) +
                              elements.capacity() * sizeof(OpenkpElement));
}

absl::Status Openkp::CheckRecord(const Record& record,
                                 const std::string& where) const {
  return options().official_compatibility ? CheckOfficially(record, where)
                                          : absl::OkStatus();
}

Openkp::ExamplesOr Openkp::MakeExamples(Record record,
                                        const std::string& where) const {
  ETC_RETURN_IF_ERROR(CheckRecord(record, where));
  PageWriter writer(record, *this);
  ETC_RETURN_IF_ERROR(writer.CheckElements(where));
  if (options().fixed_block_length > 0) {
    writer.AddFixedBlocks();
  } else {
    writer.AddElements();
  }
  writer.Finish();
  const std::shared_ptr<OpenkpExample> example = writer.Result();
  if (example->num_words > options().input.max_long_length) {
    return InvalidArgument(
        where, ": document ", record.id, ": ", "has ", example->num_words,
        " words, but max_long_length is ", options().input.max_long_length);
  }
  example->record_id = record.id;
  example->text = record.text;
  example->has_answer = record.key_phrases.has_value();
  if (example->has_answer) {
    example->references = ReferencesOf(record, rules());
    if (options().official_compatibility) {
      example->references->is_removed = example->labels.empty();
    }
    example->left_out =
        ReasonLeftOut(*example, options().official_compatibility);
  }
  return ExamplesOr({example});
}

}  // namespace etc
