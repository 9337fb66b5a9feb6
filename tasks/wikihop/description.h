#ifndef ETC_TASKS_WIKIHOP_DESCRIPTION_H_
#define ETC_TASKS_WIKIHOP_DESCRIPTION_H_

#include <string>

#include "tasks/text/tokenizer.h"
#include "tasks/wikihop/example.h"

namespace etc {

// An example for people to read: the question and its answer, what truncation
// took, and a line for each global token with its own long tokens, the long
// tokens that it sees, and the local segment that those lie in. A token linked
// to a candidate has that candidate's index behind it: "oslo>3".
std::string DescribeWikihopExample(const WikihopExample& example,
                                   const Tokenizer& tokenizer);

}  // namespace etc

#endif  // ETC_TASKS_WIKIHOP_DESCRIPTION_H_
