#include "tasks/pretrain/examples/windows.h"

#include <c10/util/Exception.h>

#include <cstddef>

#include "base/status_macros.h"

namespace etc {
namespace {

// Returns the ends of the pieces of a sentence, in tokens of the store.
absl::StatusOr<std::vector<int64_t>> PieceEnds(
    const TokenStore& store, int64_t sentence,
    const SentenceSplitOptions& options) {
  const int64_t begin = store.first_token(sentence);
  const int64_t sentence_end = store.first_token(sentence + 1);
  ETC_RETURN_IF_ERROR(store.CheckTokens(begin, sentence_end));
  std::vector<int64_t> ends = SplitSentence(
      sentence_end - begin,
      [&store, begin](int64_t i) { return store.is_continuation(begin + i); },
      options);
  for (int64_t& end : ends) {
    end += begin;
  }
  return ends;
}

// The sentence that a token belongs to.
int64_t SentenceOfToken(const TokenStore& store, int64_t token) {
  int64_t sentence = 0;
  int64_t end = store.num_sentences();
  while (end - sentence > 1) {
    const int64_t middle = sentence + (end - sentence) / 2;
    (store.first_token(middle) <= token ? sentence : end) = middle;
  }
  return sentence;
}

}  // namespace

absl::StatusOr<std::vector<Window>> MakeWindows(
    const TokenStore& store, const std::vector<SentenceRange>& documents,
    const WindowOptions& options, CorpusCounts* counts) {
  TORCH_CHECK(options.sentences.max_tokens >= 1 &&
                  options.sentences.max_tokens <= options.max_tokens &&
                  options.max_sentences >= 1,
              "sentences of ", options.sentences.max_tokens,
              " tokens should fit windows of ", options.max_tokens,
              " tokens and ", options.max_sentences, " sentences");
  ETC_RETURN_IF_ERROR(store.CheckUnchanged());
  std::vector<Window> windows;
  std::vector<int64_t> lengths;
  for (const SentenceRange& document : documents) {
    lengths.clear();
    int64_t begin = store.first_token(document.begin);
    int64_t token = begin;
    for (int64_t s = document.begin; s < document.end; ++s) {
      const int64_t end = store.first_token(s + 1);
      if (end - token <= options.sentences.max_tokens) {
        // Nearly all of them: no list of pieces.
        lengths.push_back(end - token);
        token = end;
        continue;
      }
      ++counts->cut_sentences;
      ETC_ASSIGN_OR_RETURN(const std::vector<int64_t> piece_ends,
                           PieceEnds(store, s, options.sentences));
      for (const int64_t piece_end : piece_ends) {
        lengths.push_back(piece_end - token);
        token = piece_end;
      }
    }
    size_t sentence = 0;
    for (const int64_t num_sentences :
         SplitDocument(lengths, options.max_tokens, options.max_sentences)) {
      Window window{.first_token = begin,
                    .num_sentences = static_cast<int32_t>(num_sentences)};
      for (int64_t i = 0; i < num_sentences; ++i) {
        window.num_tokens += static_cast<int32_t>(lengths[sentence++]);
      }
      begin += window.num_tokens;
      windows.push_back(window);
    }
  }
  counts->windows += static_cast<int64_t>(windows.size());
  return windows;
}

absl::StatusOr<DocumentPart> ReadWindow(const TokenStore& store,
                                        const Window& window,
                                        const WindowOptions& options) {
  ETC_RETURN_IF_ERROR(store.CheckUnchanged());
  DocumentPart part;
  const int64_t window_end = window.first_token + window.num_tokens;
  ETC_RETURN_IF_ERROR(
      AppendTokens(store, window.first_token, window_end, &part.pieces));
  int64_t end = window.first_token;
  for (int64_t s = SentenceOfToken(store, end); end < window_end; ++s) {
    ETC_ASSIGN_OR_RETURN(const std::vector<int64_t> piece_ends,
                         PieceEnds(store, s, options.sentences));
    for (const int64_t piece_end : piece_ends) {
      // The first sentence may begin in the window before, and the last one go
      // on in the next.
      if (piece_end > end && piece_end <= window_end) {
        part.sentence_ends.push_back(piece_end - window.first_token);
        end = piece_end;
      }
    }
  }
  TORCH_CHECK(part.num_sentences() == window.num_sentences, "a window of ",
              window.num_sentences, " sentences has ", part.num_sentences(),
              ": the options are not those it was made ", "with");
  return part;
}

}  // namespace etc
