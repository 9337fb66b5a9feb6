#ifndef ETC_TASKS_NQ_DESCRIPTION_H_
#define ETC_TASKS_NQ_DESCRIPTION_H_

#include <string>

#include "tasks/nq/example.h"
#include "tasks/nq/special_tokens.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// A window for people to read: question, targets, and a line for each global
// token with its own long tokens, the long tokens that it sees and what it
// stands for. HTML tags are "<>" and "</>", the long answer is in braces and
// the short one in brackets: "{ <> blue was written by [ ann lee ] . </> }".
std::string DescribeNqExample(const NqExample& example,
                              const Tokenizer& tokenizer,
                              const NqTokens& tokens);

}  // namespace etc

#endif  // ETC_TASKS_NQ_DESCRIPTION_H_
