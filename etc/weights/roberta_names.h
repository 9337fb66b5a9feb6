#ifndef ETC_ETC_WEIGHTS_ROBERTA_NAMES_H_
#define ETC_ETC_WEIGHTS_ROBERTA_NAMES_H_

#include <string>

namespace etc {

// The name in HuggingFace's RoBERTa of a tensor that is called `name` in
// HuggingFace's BERT (doc/formats.md 3.3). A classifier of texts
// (`classifies_texts`) has the pooler inside: "classifier.dense.weight" for
// "bert.pooler.dense.weight".
std::string RobertaName(const std::string& name, bool classifies_texts);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_ROBERTA_NAMES_H_
