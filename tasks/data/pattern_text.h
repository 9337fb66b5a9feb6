#ifndef ETC_TASKS_DATA_PATTERN_TEXT_H_
#define ETC_TASKS_DATA_PATTERN_TEXT_H_

#include <cstdint>
#include <string>

#include "attention/pattern.h"

namespace etc {

// Who may see whom in an example, for people to read (`realetc inspect`). Sets
// of indices are ranges, both ends included: "0-3 7", or "none".

// The long tokens that a global token sees.
std::string LongTokensSeenBy(const AttentionPattern& pattern, int32_t global);

// The long tokens whose sentence or paragraph is a global token.
std::string LongTokensOwnedBy(const AttentionPattern& pattern, int32_t global);

// "local radius 84, hard g2l mask, soft l2g mask"
std::string DescribeMasks(const AttentionPattern& pattern);

}  // namespace etc

#endif  // ETC_TASKS_DATA_PATTERN_TEXT_H_
