#include "tasks/pretrain/examples/corpus_part.h"

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/random.h"
#include "base/status_macros.h"

namespace etc {
namespace {

bool IsHeldOut(uint64_t hash, int64_t one_in) {
  return one_in > 0 && hash % static_cast<uint64_t>(one_in) == 0;
}

int64_t NumDivisions(int64_t num_sentences, int64_t max_sentences) {
  return max_sentences == 0
             ? 1
             : (num_sentences + max_sentences - 1) / max_sentences;
}

absl::string_view PartName(bool development) {
  return development ? "development" : "training";
}

// Returns an error that explains why no document of the store is left.
absl::Status NoDocuments(const TokenStore& store,
                         const CorpusPartOptions& options,
                         const CorpusCounts& counts) {
  const auto failed = [&store](const auto&... parts) {
    return absl::FailedPreconditionError(
        absl::StrCat(store.path(), ": ", parts...));
  };
  if (store.num_documents() == 0) {
    return failed("the corpus has no document");
  }
  if (counts.short_documents > 0) {
    return failed("all ", Counted(counts.short_documents, "document"),
                  " of the ", PartName(options.development),
                  " part have fewer than ", options.min_sentences,
                  " sentences (min_sentences)");
  }
  const std::string found = Counted(store.num_documents(), "document");
  if (!options.development) {
    return failed("all of ", found, " are held out for development; choose a ",
                  "larger development_one_in than ",
                  options.development_one_in);
  }
  if (options.development_one_in == 0) {
    return failed("no document is held out for development, since ",
                  "development_one_in is 0");
  }
  return failed("of ", found, " none is held out for development; choose a ",
                "smaller development_one_in than ", options.development_one_in);
}

}  // namespace

std::string DescribeCounts(const CorpusCounts& counts,
                           const CorpusPartOptions& options) {
  std::string text = absl::StrCat(PartName(options.development), ": ",
                                  Counted(counts.documents, "document"), " of ",
                                  Counted(counts.sentences, "sentence"),
                                  " and ", Counted(counts.tokens, "token"));
  if (counts.short_documents > 0) {
    absl::StrAppend(&text, "; left out ",
                    Counted(counts.short_documents, "document"),
                    " of fewer than ", options.min_sentences, " sentences");
  }
  if (counts.cut_sentences > 0) {
    absl::StrAppend(&text, "; cut ", Counted(counts.cut_sentences, "sentence"),
                    " too long for an input");
  }
  if (counts.windows > 0) {
    absl::StrAppend(&text, "; ", Counted(counts.windows, "window"), " in ",
                    Counted(counts.sequences, "sequence"));
  }
  return text;
}

absl::StatusOr<std::vector<SentenceRange>> SelectDocuments(
    const TokenStore& store, const CorpusPartOptions& options,
    CorpusCounts* counts) {
  std::vector<SentenceRange> documents;
  for (int64_t document = 0; document < store.num_documents(); ++document) {
    const uint64_t hash = store.document_hash(document);
    const int64_t first = store.first_sentence(document);
    const int64_t size = store.first_sentence(document + 1) - first;
    if (size < options.min_sentences) {
      counts->short_documents +=
          IsHeldOut(hash, options.development_one_in) == options.development
              ? 1
              : 0;
      continue;
    }
    const int64_t divisions = NumDivisions(size, options.max_sentences);
    for (int64_t i = 0; i < divisions; ++i) {
      const uint64_t own_hash =
          i == 0 ? hash : CombineSeeds({hash, static_cast<uint64_t>(i)});
      if (IsHeldOut(own_hash, options.development_one_in) !=
          options.development) {
        continue;
      }
      const SentenceRange range{.begin = first + size * i / divisions,
                                .end = first + size * (i + 1) / divisions};
      documents.push_back(range);
      counts->sentences += range.size();
      counts->tokens +=
          store.first_token(range.end) - store.first_token(range.begin);
    }
  }
  counts->documents = static_cast<int64_t>(documents.size());
  if (documents.empty()) {
    return NoDocuments(store, options, *counts);
  }
  return documents;
}

absl::Status AppendTokens(const TokenStore& store, int64_t begin, int64_t end,
                          Pieces* pieces) {
  ETC_RETURN_IF_ERROR(store.CheckTokens(begin, end));
  for (int64_t i = begin; i < end; ++i) {
    pieces->Add(store.token(i), store.is_continuation(i));
  }
  return absl::OkStatus();
}

absl::Status StoreDocuments::AppendSentence(int64_t document, int64_t sentence,
                                            Pieces* pieces) const {
  const int64_t in_store = Range(document).begin + sentence;
  return AppendTokens(*store_, store_->first_token(in_store),
                      store_->first_token(in_store + 1), pieces);
}

}  // namespace etc
