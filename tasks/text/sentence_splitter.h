#ifndef ETC_TASKS_TEXT_SENTENCE_SPLITTER_H_
#define ETC_TASKS_TEXT_SENTENCE_SPLITTER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/text/byte_range.h"

namespace etc {

// The sentences of a text, in order; none is empty. May be called from several
// threads.
using SentenceSplitter =
    std::function<std::vector<ByteRange>(absl::string_view)>;

// The value of `data.sentences` that stands for SplitSentences.
inline constexpr absl::string_view kIcuSentences = "icu";

// Loads the splitter that `data.sentences` asks for: SplitSentences for "icu",
// else PunktSentences with the tables in the folder of that name.
//   kNotFound, kInvalidArgument  errors of ReadPunktFiles and ParsePunktTables;
//                                `sentences` is empty
absl::StatusOr<SentenceSplitter> LoadSentenceSplitter(
    const std::string& sentences);

// The sentences of an English text, in order, without the white space around
// them; none is empty, and only white space lies between them.
//
// Splits without the trained tables of NLTK's Punkt (doc/wikihop.md 2.3), which
// are not part of this project: the sentences of Unicode Standard Annex 29 by
// ICU's break iterator, brought nearer to Punkt in three points:
//
//   * A line end is white space like any other; it ends no sentence.
//   * No break after initials ("Johann S. Bach", "U.S. Army") and a list of
//     abbreviations ("Mr.", "St.", "Jan.") unless a word follows that often
//     begins sentences ("at 3 p.m. The"). Punkt's list is far longer, and its
//     words come from statistics.
//   * An opening bracket right behind the mark ("end.[1]") begins a sentence.
//
// Known to differ still: no break before a word in lower case ("words. i am"),
// where Punkt breaks unless the word speaks against it; a break after closing
// quotes with no white space behind them ("end."He"), where Punkt breaks before
// them; a break after "..." before an upper-case word. (ICU's own list,
// "en@ss=standard", is not used: it has no "Dr." and "St.", and it matches ends
// of words, so that "NATO." is taken for the initial "O.".)
//
// Bytes that are not UTF-8 belong to sentences like letters. May be called from
// several threads. Throws std::length_error for more than 2^31 - 1 bytes, and
// std::runtime_error if ICU comes without its rules for sentences.
std::vector<ByteRange> SplitSentences(absl::string_view text);

}  // namespace etc

#endif  // ETC_TASKS_TEXT_SENTENCE_SPLITTER_H_
