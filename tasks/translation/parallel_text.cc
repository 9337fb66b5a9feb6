#include "tasks/translation/parallel_text.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/encoder_decoder/config.h"
#include "tasks/data/data_files.h"
#include "tasks/data/text_file.h"

namespace etc {
namespace {

// Lines that are encoded by one thread at a time.
constexpr size_t kChunk = 1024;

absl::StatusOr<std::vector<std::string>> ReadSentences(
    const std::string& path, const DataRequest& request) {
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<TextFile> file,
                       TextFile::Open(path, request.limits));
  std::vector<std::string> lines;
  while (true) {
    absl::string_view line;
    ETC_ASSIGN_OR_RETURN(const bool has_line, file->NextLine(&line));
    if (!has_line) {
      return lines;
    }
    if (!IsUtf8(line)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", file->line_number(),
                       ": a sentence should be UTF-8, but is not"));
    }
    lines.emplace_back(line);
    if (request.listener != nullptr && lines.size() % kChunk == 0) {
      ETC_RETURN_IF_ERROR(request.listener(file->position(), file->size()));
    }
  }
}

// The files that patterns of sources and of targets, in turns, name: pairs of a
// file of sources and one of targets.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>>
FindParallelFiles(const std::vector<std::string>& patterns) {
  if (patterns.size() % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parallel text should be files of sources and of targets in turns, but "
        "there are ",
        patterns.size(), " names, the last ", patterns.back()));
  }
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t i = 0; i < patterns.size(); i += 2) {
    ETC_ASSIGN_OR_RETURN(const std::vector<std::string> sources,
                         FindDataFiles({patterns[i]}));
    ETC_ASSIGN_OR_RETURN(const std::vector<std::string> targets,
                         FindDataFiles({patterns[i + 1]}));
    if (sources.size() != targets.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("parallel text should be as many files of sources as of "
                       "targets, but ",
                       patterns[i], " names ", sources.size(), " and ",
                       patterns[i + 1], " ", targets.size()));
    }
    for (size_t file = 0; file < sources.size(); ++file) {
      pairs.emplace_back(sources[file], targets[file]);
    }
  }
  return pairs;
}

// The lines of two files, without their ends.
struct ParallelLines {
  std::vector<std::string> sources;
  std::vector<std::string> targets;
};

absl::StatusOr<ParallelLines> ReadParallelLines(const std::string& source,
                                                const std::string& target,
                                                const DataRequest& request) {
  ParallelLines lines;
  ETC_ASSIGN_OR_RETURN(lines.sources, ReadSentences(source, request));
  ETC_ASSIGN_OR_RETURN(lines.targets, ReadSentences(target, request));
  if (lines.sources.size() != lines.targets.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, " and ", target,
                     " should have the same number of lines, but have ",
                     lines.sources.size(), " and ", lines.targets.size()));
  }
  return lines;
}

}  // namespace

// The pairs of one pair of files.
struct ParallelText::Reading {
  const ParallelTextOptions& options;
  Place place;
  Files files;
  int64_t lines = 0;
  int64_t skipped = 0;
  std::string first_skipped;
  int64_t too_long = 0;
  // Counted in the pairs that are used.
  UnknownTokens in_sources;
  UnknownTokens in_targets;

  // The mistake of a pair of ids; OK: none.
  absl::Status Check(absl::Span<const int32_t> source,
                     absl::Span<const int32_t> target, int64_t line) const;
  // A line about it.
  std::string Description() const;
};

absl::Status ParallelText::Reading::Check(absl::Span<const int32_t> source,
                                          absl::Span<const int32_t> target,
                                          int64_t line) const {
  for (const auto& [ids, path] :
       {std::pair(source, &files.source), std::pair(target, &files.target)}) {
    const auto length = static_cast<int64_t>(ids.size());
    if (length <= 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          *path, ":", line,
          ": a sentence should have tokens, but the line is empty",
          options.on_bad_record == OnBadRecord::kSkip
              ? ""
              : " (data.on_bad_record \"skip\" passes over such pairs)"));
    }
    if (options.max_tokens > 0 && length > options.max_tokens) {
      return absl::InvalidArgumentError(absl::StrCat(
          *path, ":", line, ": a sentence should have at most ",
          options.max_tokens, " tokens (translation.max_tokens), but has ",
          length, " with its end"));
    }
  }
  return absl::OkStatus();
}

std::string ParallelText::Reading::Description() const {
  std::string text = absl::StrCat(files.source, ", ", files.target, ": ",
                                  Counted(lines - skipped - too_long, "pair"));
  if (skipped > 0) {
    absl::StrAppend(&text, ", skipped ", skipped,
                    ", the first: ", first_skipped);
  }
  if (too_long > 0) {
    absl::StrAppend(&text, ", left out ", too_long, " of more than ",
                    options.max_source_length, " source or ",
                    options.max_target_length, " target tokens");
  }
  if (in_sources.unknown + in_targets.unknown > 0) {
    absl::StrAppend(&text, ", unknown tokens ", in_sources.Percent(), " / ",
                    in_targets.Percent());
  }
  return text;
}

void ParallelText::Add(const Place& place, absl::Span<const int32_t> source,
                       absl::Span<const int32_t> target) {
  ids_.insert(ids_.end(), source.begin(), source.end());
  middles_.push_back(static_cast<int64_t>(ids_.size()));
  ids_.insert(ids_.end(), target.begin(), target.end());
  ends_.push_back(static_cast<int64_t>(ids_.size()));
  places_.push_back(place);
}

namespace {

// The ids of all lines, each with the end.
absl::StatusOr<std::vector<std::vector<int32_t>>> EncodeLines(
    const std::vector<std::string>& lines,
    const TranslationVocabulary& vocabulary, const DataRequest& request) {
  std::vector<std::vector<int32_t>> ids(lines.size());
  uint64_t bytes = 0;
  for (const std::string& line : lines) {
    bytes += line.size();
  }
  ETC_RETURN_IF_ERROR(ReadInParallel(
      (lines.size() + kChunk - 1) / kChunk, bytes, request.listener,
      [&](size_t chunk, const BytesListener& report) {
        const size_t begin = chunk * kChunk;
        const size_t end = std::min(lines.size(), begin + kChunk);
        uint64_t encoded = 0;
        for (size_t i = begin; i < end; ++i) {
          ids[i] = vocabulary.Encode(lines[i]);
          ids[i].push_back(static_cast<int32_t>(kEndId));
          encoded += lines[i].size();
        }
        return report(encoded);
      }));
  return ids;
}

}  // namespace

absl::Status ParallelText::AddAll(
    const std::vector<std::vector<int32_t>>& sources,
    const std::vector<std::vector<int32_t>>& targets, Reading* reading) {
  reading->lines = static_cast<int64_t>(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto line = static_cast<int64_t>(i) + 1;
    const auto source_length = static_cast<int64_t>(sources[i].size());
    const auto target_length = static_cast<int64_t>(targets[i].size());
    if (source_length > reading->options.max_source_length ||
        target_length > reading->options.max_target_length) {
      ++reading->too_long;
      continue;
    }
    absl::Status mistake = reading->Check(sources[i], targets[i], line);
    if (!mistake.ok()) {
      if (reading->options.on_bad_record == OnBadRecord::kError) {
        return mistake;
      }
      if (reading->skipped++ == 0) {
        reading->first_skipped = std::string(mistake.message());
      }
      continue;
    }
    reading->in_sources.Add(sources[i]);
    reading->in_targets.Add(targets[i]);
    reading->place.line = line;
    Add(reading->place, sources[i], targets[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ParallelText>> ParallelText::Open(
    const DataRequest& request, const TranslationVocabulary& vocabulary,
    const ParallelTextOptions& options) {
  // The constructor is private: make_unique cannot see it.
  std::unique_ptr<ParallelText> text(new ParallelText());
  ETC_ASSIGN_OR_RETURN(const auto pairs, FindParallelFiles(request.patterns));
  for (const auto& [source_path, target_path] : pairs) {
    Reading reading = {
        .options = options,
        .place = {.files = static_cast<int32_t>(text->files_.size())},
        .files = {.source = source_path, .target = target_path}};
    ETC_ASSIGN_OR_RETURN(const ParallelLines lines,
                         ReadParallelLines(source_path, target_path, request));
    ETC_ASSIGN_OR_RETURN(const auto sources,
                         EncodeLines(lines.sources, vocabulary, request));
    ETC_ASSIGN_OR_RETURN(const auto targets,
                         EncodeLines(lines.targets, vocabulary, request));
    ETC_RETURN_IF_ERROR(text->AddAll(sources, targets, &reading));
    text->descriptions_.push_back(reading.Description());
    if (reading.skipped + reading.too_long > 0) {
      text->left_out_.push_back(text->descriptions_.back());
    }
    for (const std::string& warning :
         {reading.in_sources.Warning(source_path),
          reading.in_targets.Warning(target_path)}) {
      if (!warning.empty()) {
        text->unknown_warnings_.push_back(warning);
      }
    }
    text->files_.push_back(reading.files);
  }
  return text;
}

absl::StatusOr<Examples> ParallelText::Make(RecordRequest request) const {
  const auto i = static_cast<size_t>(request.record);
  auto pair = std::make_shared<TranslationExample>();
  pair->record_id = absl::StrCat(request.record);
  pair->id_kind = Example::IdKind::kNumber;
  const int32_t* const ids = ids_.data();
  pair->source.assign(ids + ends_[i], ids + middles_[i]);
  pair->target.assign(ids + middles_[i], ids + ends_[i + 1]);
  return Examples{std::move(pair)};
}

absl::StatusOr<std::vector<std::string>> ParallelText::ReadTargets(
    const DataRequest& request) const {
  std::vector<std::string> targets;
  std::vector<std::string> lines;
  int32_t files = -1;  // of `lines`
  for (const Place& place : places_) {
    const std::string& path = files_[static_cast<size_t>(place.files)].target;
    if (place.files != files) {
      ETC_ASSIGN_OR_RETURN(lines, ReadSentences(path, request));
      files = place.files;
    }
    if (place.line > std::ssize(lines)) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": there was a line ", place.line,
                       " before, but now there are only ", lines.size()));
    }
    targets.push_back(lines[static_cast<size_t>(place.line) - 1]);
  }
  return targets;
}

std::string ParallelText::Where(int64_t record) const {
  const Place& place = places_[static_cast<size_t>(record)];
  return absl::StrCat(files_[static_cast<size_t>(place.files)].source, ":",
                      place.line);
}

}  // namespace etc
