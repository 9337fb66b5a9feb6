#include "tasks/translation/dev_bleu.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/data/record_source.h"
#include "tasks/translation/parallel_text.h"

namespace etc {

absl::StatusOr<BleuScore> TranslateAndScore(
    const std::vector<std::string>& files, const BleuOptions& options,
    const RunContext& context, Translator* translator) {
  std::vector<std::vector<int32_t>> sources;
  std::vector<std::string> references;
  ETC_ASSIGN_OR_RETURN(const auto pairs, FindParallelFiles(files));
  for (const auto& [source, target] : pairs) {
    ETC_ASSIGN_OR_RETURN(const ParallelLines lines,
                         ReadParallelLines(source, target, {}));
    for (size_t i = 0; i < lines.sources.size(); ++i) {
      ETC_ASSIGN_OR_RETURN(
          std::vector<int32_t> ids,
          translator->Encode(lines.sources[i],
                             absl::StrCat(source, ":", i + 1)));
      sources.push_back(std::move(ids));
    }
    references.insert(references.end(), lines.targets.begin(),
                      lines.targets.end());
  }
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
