#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_WINDOWS_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_WINDOWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/pretrain/corpus/token_store.h"
#include "tasks/pretrain/examples/corpus_part.h"
#include "tasks/pretrain/examples/document_parts.h"
#include "tasks/pretrain/examples/packed_example.h"

namespace etc {

// Part of a document that fits an input, by its place in the token store. 16
// bytes: there is one for every few hundred tokens of a corpus. All else is
// looked up when it is read.
struct Window {
  // Tells the window from all others.
  int64_t first_token = 0;
  int32_t num_tokens = 0;
  // Sentences; pieces of a cut sentence count as such.
  int32_t num_sentences = 0;
};

struct WindowOptions {
  // Sizes of a window; at least 1.
  int32_t max_tokens = 4096;
  int32_t max_sentences = 230;
  // Cuts of longer sentences; `max_tokens` at most that of a window.
  SentenceSplitOptions sentences = {};
};

// The windows of `documents`, in order: their sentences, the longer ones cut,
// divided as SplitDocument does (doc/pretraining.md 10, step 2). Adds to the
// numbers of cut sentences and windows of `counts`. Reads the index, and of
// sentences that are cut the flags.
//   kDataLoss  the store is damaged there
absl::StatusOr<std::vector<Window>> MakeWindows(
    const TokenStore& store, const std::vector<SentenceRange>& documents,
    const WindowOptions& options, CorpusCounts* counts);

// The tokens of a window that MakeWindows made of the same store with the same
// `options`.
//   kDataLoss  the store is damaged there
absl::StatusOr<DocumentPart> ReadWindow(const TokenStore& store,
                                        const Window& window,
                                        const WindowOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_WINDOWS_H_
