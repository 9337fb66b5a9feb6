#ifndef ETC_TASKS_TEXT_PUNKT_SPLITTER_H_
#define ETC_TASKS_TEXT_PUNKT_SPLITTER_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "tasks/text/byte_range.h"
#include "tasks/text/punkt_tables.h"

namespace etc {

// The sentences of a text, in order, as NLTK's sent_tokenize has them with the
// same tables: the second half of Punkt (Kiss and Strunk 2006, section 4;
// doc/wikihop.md 2.3), which decides by them whether a full stop ends a
// sentence.
//
//   1. Candidates are ".", "?" and "!" before white space and a word, or right
//      before a closing character.
//   2. Each is decided by the words around it: is the one before an
//      abbreviation, an initial, a number; how is the one behind written there
//      and in the training text; do the two belong together.
//   3. Closing quotes and brackets behind a border go to the sentence before.
//
// Equal to NLTK 3.10.3, byte for byte. Earlier versions differ: before 3.10
// curly quotes closed nothing, before 3.6.6 a mark with a blank in front of it
// ("Mr . Smith") was a candidate of its own. 3.10.4 differs in U+001C to U+001F
// and in its definition of an initial beyond letters.
//
// No sentence is empty or ends in white space; the first begins at byte 0 even
// if white space does. Bytes that are not UTF-8 belong to words like letters.
// Takes time linear in the size of the text. May be called from several
// threads.
std::vector<ByteRange> PunktSentences(absl::string_view text,
                                      const PunktTables& tables);

}  // namespace etc

#endif  // ETC_TASKS_TEXT_PUNKT_SPLITTER_H_
