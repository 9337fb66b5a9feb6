#ifndef ETC_TASKS_TEXT_HUGGINGFACE_PRE_TOKENIZERS_H_
#define ETC_TASKS_TEXT_HUGGINGFACE_PRE_TOKENIZERS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/text/byte_range.h"
#include "tasks/text/huggingface/mapped_text.h"

namespace etc::huggingface {

// A text and its words so far, none of them empty, from left to right.
struct SplitText {
  MappedText text;
  std::vector<ByteRange> words;
};

// A step that splits words further, and may change the text.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void Apply(SplitText* split) const = 0;
};

// The steps of a tokenizer.json in their order.
struct PreTokenizers {
  std::vector<std::unique_ptr<const PreTokenizer>> steps;
  // The last one is ByteLevel: pieces are spelt in its characters for bytes.
  // Words keep the bytes themselves here.
  bool is_byte_level = false;
  // Character that Metaspace puts before words; empty without it.
  std::string word_mark;
};

// Reads the field "pre_tokenizer", an object; `where` names it in messages.
//   kUnimplemented    a type or an option that is not supported
//   kInvalidArgument  a mistake
absl::StatusOr<PreTokenizers> ReadPreTokenizers(const nlohmann::json& json,
                                                const std::string& where);

}  // namespace etc::huggingface

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_PRE_TOKENIZERS_H_
