#include "tasks/pretrain/examples/corpus_part.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/random.h"
#include "base/status_macros.h"

namespace etc {
namespace {

bool IsMultiple(uint64_t hash, const CorpusPartOptions& part) {
  return part.development_one_in > 0 &&
         hash % static_cast<uint64_t>(part.development_one_in) == 0;
}

bool IsHeldOut(uint64_t hash, const CorpusPartOptions& part) {
  return IsMultiple(hash, part) ||
         (part.held_out_up_to > 0 && hash <= part.held_out_up_to);
}

int64_t NumDivisions(int64_t num_sentences, int64_t max_sentences) {
  return max_sentences == 0
             ? 1
             : (num_sentences + max_sentences - 1) / max_sentences;
}

// A document of a store, after dividing, and the hash that decides its part.
struct StoredDocument {
  SentenceRange range;
  uint64_t hash = 0;
  bool is_short = false;
};

// Calls `take` for each document, in the order of the store.
template <typename Take>
void ForEachDocument(const TokenStore& store, const CorpusPartOptions& part,
                     Take take) {
  for (int64_t document = 0; document < store.num_documents(); ++document) {
    const uint64_t hash = store.document_hash(document);
    const int64_t first = store.first_sentence(document);
    const int64_t size = store.first_sentence(document + 1) - first;
    const bool is_short = size < part.min_sentences;
    const int64_t divisions =
        is_short ? 1 : NumDivisions(size, part.max_sentences);
    for (int64_t i = 0; i < divisions; ++i) {
      take(StoredDocument{
          .range = {.begin = first + size * i / divisions,
                    .end = first + size * (i + 1) / divisions},
          .hash =
              i == 0 ? hash : CombineSeeds({hash, static_cast<uint64_t>(i)}),
          .is_short = is_short});
    }
  }
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
    return failed("none of ", Counted(counts.short_documents, "document"),
                  " of the ", PartName(options.development),
                  " part has at least ", options.min_sentences,
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
                "smaller development_one_in than ", options.development_one_in,
                ", or divide documents by max_sentences");
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
  ForEachDocument(store, options, [&](const StoredDocument& document) {
    if (IsHeldOut(document.hash, options) != options.development) {
      return;
    }
    if (document.is_short) {
      ++counts->short_documents;
      return;
    }
    const SentenceRange& range = document.range;
    documents.push_back(range);
    counts->sentences += range.size();
    counts->tokens +=
        store.first_token(range.end) - store.first_token(range.begin);
  });
  counts->documents = static_cast<int64_t>(documents.size());
  if (documents.empty()) {
    return NoDocuments(store, options, *counts);
  }
  return documents;
}

CorpusPartOptions HoldOutSmallest(const TokenStores& stores,
                                  CorpusPartOptions part, int64_t needed) {
  if (part.development_one_in == 0) {
    return part;
  }
  const auto wanted = static_cast<size_t>(needed);
  // Smallest hashes of each store that are no multiples. `wanted` of them at
  // most are held out: as many more tell that enough are left.
  std::vector<std::set<uint64_t>> smallest;
  uint64_t up_to = std::numeric_limits<uint64_t>::max();
  for (const auto& store : stores) {
    size_t multiples = 0;
    std::set<uint64_t>& hashes = smallest.emplace_back();
    ForEachDocument(*store, part, [&](const StoredDocument& document) {
      if (document.is_short || multiples >= wanted) {
        return;
      }
      if (IsMultiple(document.hash, part)) {
        ++multiples;
        return;
      }
      hashes.insert(document.hash);
      if (hashes.size() > 2 * wanted) {
        hashes.erase(std::prev(hashes.end()));
      }
    });
    if (multiples >= wanted) {
      return part;
    }
    const size_t missing = wanted - multiples;
    if (hashes.size() >= missing) {
      up_to = std::min(
          up_to, *std::next(hashes.begin(), static_cast<int64_t>(missing) - 1));
    }
  }
  const bool leaves_enough =
      absl::c_any_of(smallest, [&](const std::set<uint64_t>& hashes) {
        return std::distance(hashes.upper_bound(up_to), hashes.end()) >= needed;
      });
  if (leaves_enough) {
    part.held_out_up_to = up_to;
  }
  return part;
}

int64_t CountShared(const TokenStores& one, const TokenStores& other,
                    const CorpusPartOptions& part) {
  absl::flat_hash_set<uint64_t> hashes;
  for (const auto& store : one) {
    ForEachDocument(*store, part, [&](const StoredDocument& document) {
      if (!document.is_short) {
        hashes.insert(document.hash);
      }
    });
  }
  int64_t shared = 0;
  for (const auto& store : other) {
    ForEachDocument(*store, part, [&](const StoredDocument& document) {
      shared += document.is_short
                    ? 0
                    : static_cast<int64_t>(hashes.erase(document.hash));
    });
  }
  return shared;
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
  ETC_RETURN_IF_ERROR(store_->CheckUnchanged());
  const int64_t in_store = Range(document).begin + sentence;
  return AppendTokens(*store_, store_->first_token(in_store),
                      store_->first_token(in_store + 1), pieces);
}

}  // namespace etc
