#include "tasks/pretrain/corpus/tokenize_corpus.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "tasks/pretrain/corpus/batch_stream.h"
#include "tasks/pretrain/corpus/token_store_writer.h"

namespace etc {
namespace {

absl::Status WriteBatch(const TokenizedBatch& batch, TokenStoreWriter* writer,
                        TokenizedCorpus* so_far) {
  const auto ids = absl::MakeConstSpan(batch.ids);
  const auto continuations = absl::MakeConstSpan(batch.continuations);
  size_t begin = 0;
  for (const TokenizedBatch::Sentence& sentence : batch.sentences) {
    const size_t size = sentence.end - begin;
    ETC_RETURN_IF_ERROR(writer->AddSentence(
        {.ids = ids.subspan(begin, size),
         .continuations = continuations.subspan(begin, size),
         .text_hash = sentence.text_hash}));
    if (sentence.ends_document) {
      ETC_RETURN_IF_ERROR(writer->EndDocument());
    }
    so_far->longest_sentence =
        std::max(so_far->longest_sentence, static_cast<int64_t>(size));
    begin = sentence.end;
  }
  return absl::OkStatus();
}

void CountBatch(const TokenizedBatch& batch, int32_t unknown_id,
                const TokenStoreWriter& writer, TokenizedCorpus* so_far) {
  so_far->documents = writer.num_documents();
  so_far->sentences = writer.num_sentences();
  so_far->tokens = writer.num_tokens();
  so_far->unknown += std::count(batch.ids.begin(), batch.ids.end(), unknown_id);
  so_far->replaced += batch.replaced;
  if (batch.replaced > 0) {
    so_far->replaced_by_file[batch.path] += batch.replaced;
  }
  if (so_far->bad_lines == 0) {
    so_far->first_bad_line = batch.first_bad_line;
  }
  so_far->bad_lines += batch.bad_lines;
  so_far->text_bytes += batch.text_bytes;
  so_far->bytes_read = batch.bytes_read;
}

}  // namespace

absl::StatusOr<TokenizedCorpus> TokenizeCorpus(const CorpusTokenizer& tokenizer,
                                               const TokenizeOptions& options,
                                               const std::string& output) {
  CorpusReader reader(options.corpus, options.stop);
  TokenizedCorpus so_far;
  ETC_ASSIGN_OR_RETURN(so_far.num_bytes, reader.CountBytes());
  TokenStoreSettings settings = tokenizer.settings;
  settings.sentences = options.corpus.format == CorpusFormat::kBert
                           ? "lines"
                           : options.sentences;
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<TokenStoreWriter> writer,
                       TokenStoreWriter::Create(output, settings));
  const BatchTokenizerOptions batch_options = {
      .format = options.corpus.format,
      .field = options.corpus.field,
      .invalid_utf8 = options.invalid_utf8,
      .bad_lines = options.bad_lines,
      .split_sentences = options.split_sentences};
  BatchStream stream(&reader, &tokenizer, &batch_options,
                     {.threads = options.threads, .stop = options.stop});
  while (true) {
    ETC_ASSIGN_OR_RETURN(const std::optional<TokenizedBatch> batch,
                         stream.Next());
    if (!batch.has_value()) {
      break;
    }
    ETC_RETURN_IF_ERROR(WriteBatch(*batch, writer.get(), &so_far));
    CountBatch(*batch, settings.unknown_id, *writer, &so_far);
    if (options.progress) {
      options.progress(so_far);
    }
  }
  if (so_far.tokens == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the corpus is empty: ",
        Counted(static_cast<int64_t>(options.corpus.files.size()), "file"),
        " with ", so_far.bytes_read, " bytes have no sentence with tokens",
        so_far.bad_lines == 0
            ? ""
            : absl::StrCat("; ", Counted(so_far.bad_lines, "line"),
                           " left out, the first: ", so_far.first_bad_line)));
  }
  ETC_RETURN_IF_ERROR(writer->Finish());
  // If files are glued, the last document ends here.
  so_far.documents = writer->num_documents();
  return so_far;
}

}  // namespace etc
