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
// Returns the special pieces before and behind a single text, both -1 if there
// are none, and those between two texts: RobertaProcessing's two, or those of a
// template `pair`; absent if it has no special pieces at all, since nobody
// wrote a template for pairs then.
//   kUnimplemented    another type; a template with special pieces, but not one
//                     at each side of text A; a pair with others around it, or
//                     with text B before A; a second one with special pieces
//   kInvalidArgument  a mistake, or a piece that the vocabulary does not have
absl::StatusOr<TextMarkIds> ReadPostProcessor(const nlohmann::json& object,
                                              const std::string& where,
                                              const Vocabulary& vocabulary);

}  // namespace etc::huggingface

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_POST_PROCESSOR_H_
