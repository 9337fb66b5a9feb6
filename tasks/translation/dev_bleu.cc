#include "tasks/translation/dev_bleu.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/data/example_source.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/translation/parallel_text.h"

namespace etc {

absl::StatusOr<BleuScore> TranslateAndScore(const Task& task,
                                            const DataRequest& data,
                                            const BleuOptions& options,
                                            const RunContext& context,
                                            Translator* translator) {
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<ExampleSource> opened,
                       task.Open(data));
  const auto& pairs = dynamic_cast<const ParallelText&>(*opened);
  for (const std::string& line : pairs.descriptions()) {
    context.Message(absl::StrCat("BLEU of ", line));
  }
  std::vector<std::vector<int32_t>> sources;
  for (int64_t i = 0; i < pairs.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(const Examples pair,
                         pairs.Make(RequestForEvaluation(i)));
    sources.push_back(ExampleAs<TranslationExample>(*pair.front()).source);
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> references,
                       pairs.ReadTargets(data));
  std::vector<std::string> translations(sources.size());
  ETC_RETURN_IF_ERROR(translator->Translate(
      sources, context,
      [&](size_t line, const std::vector<Translation>& found) {
        translations[line] = found.front().text;
        return absl::OkStatus();
      }));
  return CorpusBleu(translations, references, options);
}

}  // namespace etc
