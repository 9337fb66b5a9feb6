#include "tasks/pretrain/corpus/tokenize_corpus.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "tasks/data/data_files.h"
#include "tasks/pretrain/corpus/token_store_writer.h"

namespace etc {
namespace {

// Batches of a round for each thread. All of a round are read, then tokenized,
// then written: so many that threads hardly wait for the last one.
constexpr size_t kBatchesPerThread = 4;

absl::Status CheckNotStopped(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load()
             ? absl::CancelledError("the tokenizing was stopped")
             : absl::OkStatus();
}

// Reads the next `most` batches, or those before the end of the corpus or an
// error: `*has_next` is the answer of the last CorpusReader::Next.
std::vector<CorpusBatch> ReadBatches(size_t most, CorpusReader* reader,
                                     absl::StatusOr<bool>* has_next) {
  std::vector<CorpusBatch> batches;
  while (batches.size() < most) {
    CorpusBatch batch;
    *has_next = reader->Next(&batch);
    if (!has_next->value_or(false)) {
      break;
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

// Tokenizes `batches`, each of `tokenizers` in one thread, which takes the next
// batch when it is done with one. Results are in the order of `batches`; those
// that are not begun before the stop are kCancelled.
std::vector<absl::StatusOr<TokenizedBatch>> TokenizeBatches(
    const std::vector<CorpusBatch>& batches, const std::atomic<bool>* stop,
    std::vector<BatchTokenizer>* tokenizers) {
  std::vector<absl::StatusOr<TokenizedBatch>> results(batches.size());
  std::atomic<size_t> next = 0;
  ReadInParallel(tokenizers->size(), /*num_bytes=*/0, /*listener=*/nullptr,
                 [&](size_t thread, const BytesListener& /*report*/) {
                   for (size_t i = next++; i < batches.size(); i = next++) {
                     const absl::Status may_go_on = CheckNotStopped(stop);
                     results[i] =
                         may_go_on.ok()
                             ? (*tokenizers)[thread].Tokenize(batches[i])
                             : may_go_on;
                   }
                   return absl::OkStatus();
                 })
      .IgnoreError();  // the function above returns none
  return results;
}

absl::Status WriteBatch(const TokenizedBatch& batch, TokenStoreWriter* writer,
                        TokenizedCorpus* so_far) {
  const auto ids = absl::MakeConstSpan(batch.ids);
  const auto continuations = absl::MakeConstSpan(batch.continuations);
  if (batch.begins_with_end) {
    ETC_RETURN_IF_ERROR(writer->EndDocument());
  }
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
  const auto threads = static_cast<size_t>(options.threads);
  std::vector<BatchTokenizer> tokenizers(
      threads, BatchTokenizer(&tokenizer, &batch_options));
  absl::StatusOr<bool> has_next = true;
  while (has_next.value_or(false)) {
    const std::vector<CorpusBatch> batches =
        ReadBatches(kBatchesPerThread * threads, &reader, &has_next);
    for (const absl::StatusOr<TokenizedBatch>& batch :
         TokenizeBatches(batches, options.stop, &tokenizers)) {
      ETC_RETURN_IF_ERROR(batch.status());
      ETC_RETURN_IF_ERROR(WriteBatch(*batch, writer.get(), &so_far));
      CountBatch(*batch, settings.unknown_id, *writer, &so_far);
      if (options.progress) {
        options.progress(so_far);
      }
      ETC_RETURN_IF_ERROR(CheckNotStopped(options.stop));
    }
  }
  ETC_RETURN_IF_ERROR(has_next.status());
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
