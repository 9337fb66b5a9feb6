#include "tasks/tokens/example.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/inputs/text_input.h"
#include "tasks/text/text_folding.h"
#include "tasks/text/unicode.h"
#include "tasks/tokens/task.h"

namespace etc {
namespace {

// Returns true if the code point at byte `at` is white space that is no part of
// a word. `layout` has the words of a text that is split already, in which
// there may be some, and none of others.
bool IsSpaceAt(int64_t at, const TokensLayout& layout) {
  if (layout.words.empty()) {
    return IsPythonSpace(NextCodePoint(layout.text, &at));
  }
  // Between words there is one byte, where one of them ends.
  const auto word = std::lower_bound(
      layout.words.begin(), layout.words.end(), at,
      [](const ByteRange& before, int64_t byte) { return before.end < byte; });
  return word != layout.words.end() && word->end == at;
}

// Checks the spans of a text one after the other.
absl::Status CheckSpans(const TokensLayout& layout,
                        const std::vector<TokensSpan>& spans,
                        const std::vector<std::string>& labels,
                        const std::string& where) {
  const auto place = [&](size_t i) {
    return PlaceOfField(where, absl::StrCat("spans[", i, "]"));
  };
  const absl::string_view text = layout.text;
  const std::vector<int64_t> bytes = BytesOfCodePoints(text);
  const auto length = static_cast<int64_t>(bytes.size()) - 1;
  std::vector<size_t> in_order(spans.size());
  for (size_t i = 0; i < spans.size(); ++i) {
    in_order[i] = i;
    const TokensSpan& span = spans[i];
    const std::string name = place(i);
    if (span.start < 0 || span.end > length || span.start >= span.end) {
      return InvalidArgument(name, " should be a part of the text, which has ",
                             Counted(length, "character"), " (",
                             Counted(static_cast<int64_t>(text.size()), "byte"),
                             "), but is from ", span.start, " to ", span.end);
    }
    if (IsSpaceAt(bytes[static_cast<size_t>(span.start)], layout) ||
        IsSpaceAt(bytes[static_cast<size_t>(span.end - 1)], layout)) {
      return InvalidArgument(
          name, " should neither begin nor end with white space, but is ",
          QuotedName(text.substr(
              static_cast<size_t>(bytes[static_cast<size_t>(span.start)]),
              static_cast<size_t>(bytes[static_cast<size_t>(span.end)] -
                                  bytes[static_cast<size_t>(span.start)]))));
    }
    if (span.label.empty()) {
      return InvalidArgument(name, ".label should not be empty");
    }
    ETC_RETURN_IF_ERROR(
        CheckTokensLabel(span.label, labels, absl::StrCat(name, ".label")));
  }
  std::sort(in_order.begin(), in_order.end(), [&](size_t a, size_t b) {
    return spans[a].start < spans[b].start;
  });
  for (size_t i = 1; i < in_order.size(); ++i) {
    const TokensSpan& before = spans[in_order[i - 1]];
    const TokensSpan& span = spans[in_order[i]];
    if (span.start < before.end) {
      return InvalidArgument(place(in_order[i]), ", from ", span.start, " to ",
                             span.end, ", overlaps spans[", in_order[i - 1],
                             "], from ", before.start, " to ", before.end);
    }
  }
  return absl::OkStatus();
}

// The class of each unit, by the spans that touch it; of several the first.
std::vector<int64_t> ClassesOf(const TokensExample& example,
                               const std::vector<std::string>& labels) {
  const std::vector<int64_t> bytes = BytesOfCodePoints(example.text);
  std::vector<TokensSpan> spans = example.gold;
  std::sort(spans.begin(), spans.end(),
            [](const auto& a, const auto& b) { return a.start < b.start; });
  std::vector<int64_t> classes;
  classes.reserve(example.units.size());
  size_t next = 0;
  bool has_begun = false;
  for (const TokensUnit& unit : example.units) {
    const auto [begin, end] = example.BytesOf(unit);
    while (next < spans.size() &&
           bytes[static_cast<size_t>(spans[next].end)] <= begin) {
      ++next;
      has_begun = false;
    }
    if (next == spans.size() ||
        bytes[static_cast<size_t>(spans[next].start)] >= end) {
      classes.push_back(kOutsideClass);
      continue;
    }
    const int64_t label =
        std::find(labels.begin(), labels.end(), spans[next].label) -
        labels.begin();
    classes.push_back(has_begun ? InsideClass(label) : BeginClass(label));
    has_begun = true;
  }
  return classes;
}

}  // namespace

int64_t TokensExample::TaskBytes() const {
  const auto bytes = [](const auto& values) {
    return static_cast<int64_t>(values.size() * sizeof(values[0]));
  };
  return 1024 + bytes(text) + bytes(words) + bytes(sentence_sizes) +
         bytes(units) + bytes(classes) + bytes(gold);
}

absl::Status Tokens::CheckRecord(const Record& record,
                                 const std::string& where) const {
  const TokensLayout layout = record.sentences.empty()
                                  ? TokensLayout{.text = record.text}
                                  : LayOutWords(record.sentences);
  const std::string& text = layout.text;
  if (FindTokensWords(text).empty()) {
    return InvalidArgument(
        PlaceOfField(where, record.sentences.empty() ? "text" : "sentences"),
        " should have a word, but has none");
  }
  return record.spans.has_value()
             ? CheckSpans(layout, *record.spans, options().labels, where)
             : absl::OkStatus();
}

Tokens::ExamplesOr Tokens::MakeExamples(Record record,
                                        const std::string& where) const {
  ETC_RETURN_IF_ERROR(CheckRecord(record, where));
  auto example = std::make_shared<TokensExample>();
  example->record_id = std::move(record.id);
  InputOptions input = options().input;
  if (record.sentences.empty()) {
    example->text = std::move(record.text);
    example->words = FindTokensWords(example->text);
  } else {
    TokensLayout layout = LayOutWords(record.sentences);
    example->text = std::move(layout.text);
    example->words = std::move(layout.words);
    for (const std::vector<std::string>& sentence : record.sentences) {
      example->sentence_sizes.push_back(static_cast<int64_t>(sentence.size()));
    }
    input.split_sentences = [sentences = std::move(layout.sentences)](
                                absl::string_view) { return sentences; };
  }
  SplitText split;
  AppendText(example->text, tokenizer(), input, &split);
  const int64_t room_for_pieces =
      RoomForPieces(input, options().marks, /*two_texts=*/false);
  if (static_cast<int64_t>(split.tokens.size()) > room_for_pieces) {
    example->cut_at =
        CodePointAt(split.tokens[static_cast<size_t>(room_for_pieces)].begin,
                    BytesOfCodePoints(example->text));
  }
  std::vector<Token> none;
  example->dropped_pieces =
      CutLongerText(room_for_pieces, &split.tokens, &none);
  example->units = FindTokensUnits(example->text, example->words, split.tokens);
  example->has_answer = record.spans.has_value();
  if (example->has_answer) {
    example->gold = *std::move(record.spans);
    if (!options().labels.empty()) {
      example->classes = ClassesOf(*example, options().labels);
    }
    if (example->units.empty()) {
      example->left_out = "the tokenizer leaves nothing of the text";
    }
  }
  int64_t room = RoomForSentences(input);
  WriteTexts(WithinRoom(split, &room, &example->dropped_sentences),
             /*b=*/std::nullopt, options().marks, input, example.get());
  return ExamplesOr({std::move(example)});
}

}  // namespace etc
