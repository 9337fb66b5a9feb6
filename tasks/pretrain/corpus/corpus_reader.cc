#include "tasks/pretrain/corpus/corpus_reader.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "tasks/text/text_folding.h"

namespace etc {
namespace {

constexpr size_t kBatchBytes = size_t{1} << 18;
// A text without blank lines must not become one paragraph: it is cut at the
// next line end.
constexpr size_t kMostParagraphBytes = size_t{1} << 20;

}  // namespace

bool IsWikiTitle(absl::string_view line) {
  line = StripWhiteSpace(line);
  return absl::ConsumePrefix(&line, "= ") && absl::ConsumeSuffix(&line, " =") &&
         !line.empty() && !absl::StartsWith(line, "=") &&
         !absl::EndsWith(line, "=");
}

CorpusReader::CorpusReader(CorpusOptions options, const std::atomic<bool>* stop)
    : options_(std::move(options)), stop_(stop) {}

absl::StatusOr<std::unique_ptr<TextFile>> CorpusReader::Open(
    const std::string& path) const {
  const RecordLimits limits = {.max_record_bytes = options_.max_line_bytes};
  return path == kCorpusOnStandardInput
             ? TextFile::OpenStandardInput(limits, stop_)
             : TextFile::Open(path, limits);
}

absl::StatusOr<uint64_t> CorpusReader::CountBytes() const {
  uint64_t bytes = 0;
  for (const std::string& path : options_.files) {
    if (path != kCorpusOnStandardInput) {
      ETC_ASSIGN_OR_RETURN(const auto file, Open(path));
      bytes += file->size();
    }
  }
  return bytes;
}

absl::StatusOr<bool> CorpusReader::Next(CorpusBatch* batch) {
  *batch = {};
  while (batch->pieces.empty()) {
    if (file_ == nullptr) {
      if (next_file_ == options_.files.size()) {
        return false;
      }
      ETC_ASSIGN_OR_RETURN(file_, Open(options_.files[next_file_++]));
    }
    batch->path = file_->path();
    ETC_ASSIGN_OR_RETURN(const bool has_more, ReadLines(batch));
    batch->bytes_read = bytes_of_files_before_ + file_->position();
    if (!has_more) {
      bytes_of_files_before_ += file_->size();
      file_.reset();
    }
  }
  return true;
}

absl::StatusOr<bool> CorpusReader::ReadLines(CorpusBatch* batch) {
  absl::string_view line;
  while (batch->text.size() < kBatchBytes) {
    ETC_ASSIGN_OR_RETURN(const bool has_line, file_->NextLine(&line));
    if (!has_line) {
      EndFile(batch);
      return false;
    }
    TakeLine(line, batch);
  }
  return true;
}

void CorpusReader::TakeLine(absl::string_view line, CorpusBatch* batch) {
  switch (options_.format) {
    case CorpusFormat::kBert:
      TakeBertLine(line, batch);
      return;
    case CorpusFormat::kText:
      TakeTextLine(line, batch);
      return;
    case CorpusFormat::kJsonLines:
      if (!IsBlank(line)) {
        AddPiece(line, file_->line_number(), batch);
        EndDocument(batch);
      }
      return;
  }
}

void CorpusReader::TakeBertLine(absl::string_view line,
                                CorpusBatch* batch) const {
  line = StripWhiteSpace(line);
  if (line.empty()) {
    EndDocument(batch);
  } else {
    AddPiece(line, file_->line_number(), batch);
  }
}

void CorpusReader::TakeTextLine(absl::string_view line, CorpusBatch* batch) {
  if (IsBlank(line)) {
    EndParagraph(batch);
    if (++blank_lines_ == options_.blank_lines) {
      EndDocument(batch);
    }
    return;
  }
  blank_lines_ = 0;
  if (options_.wikitext && IsWikiTitle(line)) {
    EndDocument(batch);
  }
  if (paragraph_.empty()) {
    paragraph_line_ = file_->line_number();
  } else {
    paragraph_ += '\n';
  }
  paragraph_.append(line.data(), line.size());
  if (options_.wikitext || paragraph_.size() >= kMostParagraphBytes) {
    EndParagraph(batch);
  }
}

void CorpusReader::AddPiece(absl::string_view text, int64_t line,
                            CorpusBatch* batch) const {
  const size_t begin = batch->text.size();
  batch->text.append(text.data(), text.size());
  batch->pieces.push_back(
      {.begin = begin, .end = batch->text.size(), .line = line});
}

void CorpusReader::EndDocument(CorpusBatch* batch) const {
  if (batch->pieces.empty()) {
    AddPiece("", file_->line_number(), batch);
  }
  batch->pieces.back().ends_document = true;
}

void CorpusReader::EndParagraph(CorpusBatch* batch) {
  if (!paragraph_.empty()) {
    AddPiece(paragraph_, paragraph_line_, batch);
    paragraph_.clear();
  }
}

void CorpusReader::EndFile(CorpusBatch* batch) {
  EndParagraph(batch);
  blank_lines_ = 0;
  if (!options_.glue_files) {
    EndDocument(batch);
  }
}

}  // namespace etc
