#ifndef ETC_TASKS_TEXT_HUGGINGFACE_POST_PROCESSOR_H_
#define ETC_TASKS_TEXT_HUGGINGFACE_POST_PROCESSOR_H_

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/text/huggingface/vocabulary.h"
#include "tasks/text/tokenizer.h"

namespace etc::huggingface {

// Reads the field "post_processor", an object: BertProcessing,
// RobertaProcessing, TemplateProcessing, ByteLevel, or a Sequence of them.
// Returns the first and the last special piece of a single text, -1 for a
// side that has none, and those between two texts: RobertaProcessing's two, or
// those of a template `pair`; absent if it has no special pieces at all, since
// nobody wrote a template for pairs then.
//   kUnimplemented    another type, or a template with text B before A
//   kInvalidArgument  a mistake, or a piece that the vocabulary does not have
absl::StatusOr<TextMarkIds> ReadPostProcessor(const nlohmann::json& object,
                                              const std::string& where,
                                              const Vocabulary& vocabulary);

}  // namespace etc::huggingface

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_POST_PROCESSOR_H_
