#ifndef ETC_TASKS_HOTPOTQA_DESCRIPTION_H_
#define ETC_TASKS_HOTPOTQA_DESCRIPTION_H_

#include <string>

#include "tasks/hotpotqa/example.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// An example for people to read: question, answer and where it stands, what did
// not fit, and a line for each global token with its own long tokens, the long
// tokens that it sees and what it stands for. Supporting facts are marked "*",
// the tokens of an answer are in brackets: "[ jane roe ]".
std::string DescribeHotpotqaExample(const HotpotqaExample& example,
                                    const Tokenizer& tokenizer);

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_DESCRIPTION_H_
