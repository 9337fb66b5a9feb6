#ifndef ETC_TASKS_ANALYSIS_DOCUMENT_HTML_H_
#define ETC_TASKS_ANALYSIS_DOCUMENT_HTML_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attention/key_runs.h"
#include "attention/pattern.h"
#include "tasks/analysis/document_attention.h"

namespace etc {

// Contents of a document page. Texts may have any bytes.
struct DocumentContents {
  std::string title;
  // Names and values of the table at the top.
  std::vector<std::pair<std::string, std::string>> facts;
  // Sentences about what the page does not have.
  std::string left_out;
  // The example as Task::Describe has it.
  std::string description;
  DocumentSize size;
  // Pieces of the globals, then of the long tokens: [G + L].
  std::vector<std::string> tokens;
  // Sentences, paragraphs and links of the long tokens.
  AttentionPattern pattern;
  // VisibleKeys.
  std::vector<std::vector<KeyRun>> visible;
  // Layers and heads on the page, by their indices in the model.
  std::vector<int64_t> layers;
  std::vector<int64_t> heads;
  // Probabilities of each token at most.
  int64_t most = 0;
  // Pack for [layer][head] of the above.
  std::vector<std::vector<std::string>> packed;
};

// The whole file. Its script honours the address's fragment
// #layer=1&head=0&token=5, where global token 5 is token=g5.
std::string DocumentHtml(const DocumentContents& contents);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_DOCUMENT_HTML_H_
