#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_EXAMPLE_TEXT_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_EXAMPLE_TEXT_H_

#include <string>

#include "tasks/pretrain/pretrain_example.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// An example for people to read. A masked token stands as {what the model reads
// <- what stood there}:
//
//   sequence 3: 19 long tokens, 4 global tokens in 2 windows; 3 tokens masked,
//   1 sentence hidden
//   masks: local radius 84, hard g2l mask, soft l2g mask
//   window 0
//     0  the {[MASK] <- cat} sat {sat <- sat}
//     1  hidden: it was a mat
//   window 1
//     ...
//
// with a line for each global token of ETC, and of BERT
//
//   document at sentence 7, pair 0: 12 tokens; 2 tokens masked; B is random
//     A  [CLS] the {[MASK] <- cat} [SEP]
//     B  ...
//
// (a single text has no B).
//
// Throws std::out_of_range for a token that the vocabulary does not have.
std::string DescribePretrainExample(const PretrainExample& example,
                                    const Tokenizer& tokenizer);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_EXAMPLE_TEXT_H_
