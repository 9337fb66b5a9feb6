#ifndef ETC_ETC_WEIGHTS_TRANSFORMERS_CODE_H_
#define ETC_ETC_WEIGHTS_TRANSFORMERS_CODE_H_

#include <array>

namespace etc {

// A file of the Python code that computes ETC in HuggingFace's transformers.
struct CodeFile {
  const char* name;
  const char* contents;
};

// The files of python/realetc that an export has beside its weights; the first
// is the module that config.json names.
const std::array<CodeFile, 4>& TransformersCode();

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_TRANSFORMERS_CODE_H_
