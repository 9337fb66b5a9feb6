#ifndef ETC_ETC_WEIGHTS_BYTE_LEVEL_FILES_H_
#define ETC_ETC_WEIGHTS_BYTE_LEVEL_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// A byte-level BPE as GPT-2 and older checkpoints of RoBERTa have it: a
// vocab.json, {"<s>": 0, ...}, and beside it merges.txt, two pieces a line.
// Both names may have a prefix ("roberta-base-vocab.json" goes with
// "roberta-base-merges.txt").

// The path of the merges that belong to `vocabulary`; empty if its name does
// not end in "vocab.json".
std::string MergesOf(const std::string& vocabulary);

// Finds vocab.json with merges.txt in the directory of weights; an empty path
// if neither is there.
//   kInvalidArgument  one of the two is missing
absl::StatusOr<std::string> FindByteLevelFiles(const std::string& path);

// The contents of a tokenizer.json; of a vocab.json those of the tokenizer.json
// that is equivalent to it and its merges:
//
// - GPT-2's pre-tokenizer; `add_prefix_space` of tokenizer_config.json beside
//   it, else false;
// - RoBERTa's special pieces and post-processor if there are "<s>" and "</s>",
//   else GPT-2's "<|endoftext|>" if that is there;
// - added tokens of tokenizer_config.json and added_tokens.json.
//
//   kInvalidArgument  the merges are missing; a line of them is no merge of two
//                     pieces into a third of the vocabulary: file and line; a
//                     mistake in another file
//   kUnimplemented    tokenizer_class is another than GPT-2's, RoBERTa's,
//                     BART's, Longformer's or LED's; no piece for some byte;
//                     ends of words are marked
// and the errors of ReadJsonFile and ReadFile.
absl::StatusOr<nlohmann::json> ReadTokenizerJsonOrByteLevel(
    const std::string& path);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_BYTE_LEVEL_FILES_H_
