#ifndef ETC_TASKS_OPENKP_PLAIN_DOCUMENT_H_
#define ETC_TASKS_OPENKP_PLAIN_DOCUMENT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/json_reader.h"
#include "tasks/openkp/record.h"
#include "tasks/text/sentence_splitter.h"

namespace etc {

// Documents of anybody, without the layout of a page (VDOM).

// The words of such a text: what stands between white space, where punctuation
// at either end is a word by itself, character by character. So "(Green tea,"
// is "(", "Green", "tea" and ",", while "U.S.-based" is one word.
std::vector<std::string> PlainOpenkpWords(absl::string_view text);

// Reads {"id": ..., "text": ..., "KeyPhrases": [...]}; the id may be called
// "url". Key phrases are texts, or lists of words as OpenKP has them; absent or
// null, there are none yet. The text becomes its words with blanks between
// them, the elements are its sentences, with a layout of zeros. Mistakes are
// noted in the reader: a text without words among them.
void ReadPlainOpenkpRecord(JsonObjectReader& reader,
                           const SentenceSplitter& split_sentences,
                           OpenkpRecord* record);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_PLAIN_DOCUMENT_H_
