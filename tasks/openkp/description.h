#ifndef ETC_TASKS_OPENKP_DESCRIPTION_H_
#define ETC_TASKS_OPENKP_DESCRIPTION_H_

#include <string>

#include "tasks/openkp/example.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// An example for people to read: the key phrases and their places, what
// truncation took, and a line for each global token with what the page's layout
// says of its element, its own long tokens, those that it sees, and its words'
// pieces. The pieces of key phrases stand in brackets.
std::string DescribeOpenkpExample(const OpenkpExample& example,
                                  const Tokenizer& tokenizer);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_DESCRIPTION_H_
