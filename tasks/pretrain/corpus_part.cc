#include "tasks/pretrain/corpus_part.h"

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/status_macros.h"

namespace etc {
namespace {

bool IsHeldOut(const TokenStore& store, int64_t document, int64_t one_in) {
  return one_in > 0 &&
         store.document_hash(document) % static_cast<uint64_t>(one_in) == 0;
}

absl::string_view PartName(bool development) {
  return development ? "development" : "training";
}

// Why nothing is left of the store.
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

absl::StatusOr<std::vector<int64_t>> SelectDocuments(
    const TokenStore& store, const CorpusPartOptions& options,
    CorpusCounts* counts) {
  std::vector<int64_t> documents;
  for (int64_t document = 0; document < store.num_documents(); ++document) {
    if (IsHeldOut(store, document, options.development_one_in) !=
        options.development) {
      continue;
    }
    const int64_t first = store.first_sentence(document);
    const int64_t end = store.first_sentence(document + 1);
    if (end - first < options.min_sentences) {
      ++counts->short_documents;
      continue;
    }
    documents.push_back(document);
    counts->sentences += end - first;
    counts->tokens += store.first_token(end) - store.first_token(first);
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

int64_t StoreDocuments::num_sentences(int64_t document) const {
  const int64_t in_store = InStore(document);
  return store_->first_sentence(in_store + 1) -
         store_->first_sentence(in_store);
}

absl::Status StoreDocuments::AppendSentence(int64_t document, int64_t sentence,
                                            Pieces* pieces) const {
  const int64_t in_store = store_->first_sentence(InStore(document)) + sentence;
  return AppendTokens(*store_, store_->first_token(in_store),
                      store_->first_token(in_store + 1), pieces);
}

}  // namespace etc
