// `realetc embed`: vectors of texts and of their sentences.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/counted.h"
#include "base/gzip_file.h"
#include "base/interrupt.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/stop_guard.h"
#include "base/temporary_file.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "etc/weights/pooling_file.h"
#include "etc/weights/source_config.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/commands/model_options.h"
#include "tasks/commands/output_file.h"
#include "tasks/commands/predict_lines.h"
#include "tasks/data/data_files.h"
#include "tasks/data/id_places.h"
#include "tasks/data/record_file.h"
#include "tasks/data/record_scanner.h"
#include "tasks/data/text_file.h"
#include "tasks/inference/text_embedding.h"
#include "tasks/inference/text_encoder.h"
#include "tasks/text/unicode.h"
#include "tasks/train/device.h"
#include "tasks/train/model_files.h"
#include "tasks/train/progress.h"

namespace etc {
namespace {

struct EmbedArguments {
  std::string checkpoint;
  std::vector<std::string> data;
  std::vector<std::string> fields = {};  // empty: see RecordFieldsOf
  std::string output;
  std::string pooling = {};  // empty: as the weights say
  bool documents_only = false;
  std::string vocabulary;
  int64_t max_long_length = 0;
  int64_t max_global_length = 0;
  std::string residual_attention;
  std::string device = "auto";
  int64_t threads = 0;
};

// --- Texts ---------------------------------------------------------------

// The fields of records that are read.
struct EmbedFields {
  std::vector<std::string> texts = {"text"};
  std::string id = "id";
  bool needs_id = false;
};

struct EmbedRecord {
  std::string id;
  std::vector<std::string> texts;
  // Place in messages.
  std::string where;

  // The text whose places are written.
  std::string JoinedText() const { return absl::StrJoin(texts, "\n"); }
};

// A line of standard input.
struct InputLine {
  int64_t number = 0;  // from 1
  std::string json;
};

// A file of texts: JSON objects, or one text.
struct EmbedFile {
  std::string path;
  std::optional<RecordFile> records = std::nullopt;
  // Lines of standard input, which is read once, that are not blank.
  std::optional<std::vector<InputLine>> lines = std::nullopt;

  bool is_text() const { return !records.has_value() && !lines.has_value(); }
  int64_t size() const {
    return records.has_value() ? records->size()
           : lines.has_value() ? std::ssize(*lines)
                               : 1;
  }
};

bool IsJsonName(absl::string_view name) {
  absl::ConsumeSuffix(&name, ".gz");
  return absl::EndsWithIgnoreCase(name, ".jsonl") ||
         absl::EndsWithIgnoreCase(name, ".json");
}

// True for tables and columns of words, which are many texts.
bool IsTableName(absl::string_view name) {
  absl::ConsumeSuffix(&name, ".gz");
  constexpr std::array kEndings = {".csv", ".tsv",  ".conll", ".conllu",
                                   ".iob", ".iob2", ".bio"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](const char* ending) {
    return absl::EndsWithIgnoreCase(name, ending);
  });
}

absl::StatusOr<EmbedFile> ReadStandardInput(const std::atomic<bool>* stop) {
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<TextFile> input,
                       TextFile::OpenStandardInput(/*limits=*/{}, stop));
  EmbedFile file = {.path = input->path(), .lines = std::vector<InputLine>()};
  absl::string_view line;
  while (true) {
    ETC_ASSIGN_OR_RETURN(const bool has_line, input->NextLine(&line));
    if (!has_line) {
      return file;
    }
    if (!absl::StripAsciiWhitespace(line).empty()) {
      file.lines->push_back({input->line_number(), std::string(line)});
    }
  }
}

absl::StatusOr<std::vector<EmbedFile>> OpenEmbedFiles(
    const std::vector<std::string>& patterns, const std::atomic<bool>* stop) {
  std::vector<EmbedFile> files;
  if (patterns == std::vector<std::string>{kStandardStream}) {
    ETC_ASSIGN_OR_RETURN(EmbedFile input, ReadStandardInput(stop));
    files.push_back(std::move(input));
    return files;
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                       FindDataFiles(patterns));
  for (const std::string& path : paths) {
    if (IsTableName(path)) {
      return InvalidArgument(path,
                             " is a table: --data takes its texts as "
                             "records of a .jsonl file");
    }
    EmbedFile& file = files.emplace_back(EmbedFile{.path = path});
    if (IsJsonName(path)) {
      ETC_ASSIGN_OR_RETURN(RecordFile records,
                           RecordFile::Open(path, [stop](uint64_t /*bytes*/) {
                             return *stop ? absl::CancelledError("stopped")
                                          : absl::OkStatus();
                           }));
      file.records.emplace(std::move(records));
    }
  }
  return files;
}

absl::StatusOr<EmbedRecord> ReadWholeText(const std::string& path) {
  EmbedRecord record = {.id = path, .where = path};
  ETC_ASSIGN_OR_RETURN(std::string text, ReadUnpackedFile(path, kAnyBytes));
  ETC_RETURN_IF_ERROR(CheckTextStart(text, path));
  if (absl::StrContains(text, '\0')) {
    return InvalidArgument(path, " should be text, but has a NUL byte");
  }
  record.texts.push_back(std::move(text));
  return record;
}

absl::StatusOr<EmbedRecord> ReadJsonText(const std::string& json,
                                         const std::string& where,
                                         int64_t number,
                                         const EmbedFields& fields) {
  return ParseObject<EmbedRecord>(
      json, where, [&](JsonObjectReader& reader, EmbedRecord* record) {
        record->where = where;
        record->id = absl::StrCat(number);
        const std::string id =
            fields.needs_id || reader.Has(fields.id) ? fields.id : "id";
        reader.Raw(id, fields.needs_id);
        reader.Scalar(id, &record->id);
        for (const std::string& name : fields.texts) {
          std::vector<std::string> texts;
          const nlohmann::json* value = reader.Raw(name, /*required=*/true);
          // Null is an empty text, as pandas writes missing values. It has its
          // place among them, which offsets count.
          if (value != nullptr && value->is_null()) {
            texts.emplace_back();
          } else {
            reader.OneOrMore(name, &texts);
          }
          absl::c_move(texts, std::back_inserter(record->texts));
        }
      });
}

// The record `index` of the file, which is `number` in all files.
absl::StatusOr<EmbedRecord> ReadEmbedRecord(const EmbedFile& file,
                                            int64_t index, int64_t number,
                                            const EmbedFields& fields) {
  if (file.is_text()) {
    return ReadWholeText(file.path);
  }
  if (file.lines.has_value()) {
    const InputLine& line = (*file.lines)[static_cast<size_t>(index)];
    return ReadJsonText(line.json,
                        absl::StrCat(file.path, ": line ", line.number), number,
                        fields);
  }
  ETC_ASSIGN_OR_RETURN(const std::string json, file.records->Read(index));
  const std::string where = file.records->Where(index);
  absl::StatusOr<EmbedRecord> record =
      ReadJsonText(json, where, number, fields);
  ETC_RETURN_IF_ERROR(
      WithPlaceInFile(record.status(), where, file.records->LineOf(index)));
  return record;
}

// Calls `take` with each record.
//   kCancelled  `*stop` became true
template <typename Take>
absl::Status ForEachText(const std::vector<EmbedFile>& files,
                         const EmbedFields& fields,
                         const std::atomic<bool>* stop, Take take) {
  int64_t number = 0;
  for (const EmbedFile& file : files) {
    for (int64_t i = 0; i < file.size(); ++i) {
      if (*stop) {
        return absl::CancelledError("stopped");
      }
      ETC_ASSIGN_OR_RETURN(const EmbedRecord record,
                           ReadEmbedRecord(file, i, number++, fields));
      ETC_RETURN_IF_ERROR(take(record));
    }
  }
  return absl::OkStatus();
}

// --- Files of vectors ----------------------------------------------------

// The shortest text that is read as the same float32.
void AppendNumber(float number, std::string* text) {
  std::array<char, 32> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number);
  text->append(digits.data(), end.ptr);
}

std::string VectorText(const torch::Tensor& vector) {
  std::string text = "[";
  const float* const values = vector.data_ptr<float>();
  for (int64_t i = 0; i < vector.numel(); ++i) {
    text += i > 0 ? "," : "";
    AppendNumber(values[i], &text);
  }
  return text + "]";
}

// Code points of the text, of ranges of bytes.
std::vector<ByteRange> CharactersOf(const std::string& text,
                                    const std::vector<ByteRange>& ranges) {
  std::vector<ByteRange> characters;
  characters.reserve(ranges.size());
  int64_t at = 0;
  int64_t count = 0;
  const auto count_to = [&](int64_t byte) {
    while (at < byte) {
      NextCodePoint(text, &at);
      ++count;
    }
    return count;
  };
  for (const auto& [begin, end] : ranges) {
    if (begin < at) {  // chunks that share a character
      at = 0;
      count = 0;
    }
    const int64_t first = count_to(begin);
    characters.push_back({.begin = first, .end = count_to(end)});
  }
  return characters;
}

// {"id":"7","vector":[...],"sentences":[{"start":0,"end":9,"vector":[...]}]}
std::string LineOfVectors(const EmbedRecord& record,
                          const EmbeddedText& vectors, const char* parts) {
  std::string line =
      absl::StrCat("{\"id\":", JsonAsciiText(nlohmann::json(record.id)),
                   ",\"vector\":", VectorText(vectors.document));
  if (parts != nullptr) {
    const std::vector<ByteRange> characters =
        CharactersOf(record.JoinedText(), vectors.ranges);
    absl::StrAppend(&line, ",\"", parts, "\":[");
    for (size_t i = 0; i < characters.size(); ++i) {
      absl::StrAppend(&line, i > 0 ? "," : "",
                      "{\"start\":", characters[i].begin,
                      ",\"end\":", characters[i].end, ",\"vector\":",
                      VectorText(vectors.parts[static_cast<int64_t>(i)]), "}");
    }
    line += "]";
  }
  if (vectors.cut_pieces > 0 || vectors.dropped_sentences > 0) {
    absl::StrAppend(&line, ",\"truncated\":{\"pieces\":", vectors.cut_pieces,
                    ",\"sentences\":", vectors.dropped_sentences, "}");
  }
  return line + "}";
}

// The header of a file of NumPy (format 1.0) with float32 [rows, columns], of a
// size that does not depend on them.
std::string NpyHeader(int64_t rows, int64_t columns) {
  constexpr size_t kSize = 128;
  std::string header("\x93NUMPY\x01\x00", 8);
  constexpr size_t kRest = kSize - 10;
  header += static_cast<char>(kRest & 0xff);
  header += static_cast<char>(kRest >> 8);
  absl::StrAppend(&header,
                  "{'descr': '<f4', 'fortran_order': False, 'shape': (", rows,
                  ", ", columns, "), }");
  header.resize(kSize - 1, ' ');
  return header + "\n";
}

// The file beside "vectors.npy" that says what its rows are.
std::string RowsPath(absl::string_view output) {
  absl::ConsumeSuffix(&output, ".npy");
  return absl::StrCat(output, ".rows.jsonl");
}

// Vectors as JSON lines or as rows for NumPy, which are there once all are.
class VectorWriter {
 public:
  // `parts` is the name of parts; null: documents alone.
  VectorWriter(const std::string& output, const char* parts)
      : is_npy_(absl::EndsWith(output, ".npy")),
        parts_(parts),
        file_(FileBehindLinks(output)),
        rows_file_(FileBehindLinks(RowsPath(output))) {}

  absl::Status Begin(int64_t hidden_size) {
    hidden_size_ = hidden_size;
    ETC_RETURN_IF_ERROR(file_.Create());
    if (!is_npy_) {
      return absl::OkStatus();
    }
    ETC_RETURN_IF_ERROR(rows_file_.Create());
    return file_.Write(NpyHeader(0, hidden_size_));
  }

  absl::Status Add(const EmbedRecord& record, const EmbeddedText& vectors) {
    ++documents_;
    num_parts_ += std::ssize(vectors.ranges);
    if (!is_npy_) {
      return file_.Write(LineOfVectors(record, vectors, parts_) + "\n");
    }
    std::vector<ByteRange> characters;
    if (parts_ != nullptr) {
      characters = CharactersOf(record.JoinedText(), vectors.ranges);
    }
    rows_ += 1 + std::ssize(characters);
    const std::string id = JsonAsciiText(nlohmann::json(record.id));
    std::string lines = absl::StrCat("{\"id\":", id, "}\n");
    for (const auto& [begin, end] : characters) {
      absl::StrAppend(&lines, "{\"id\":", id, ",\"start\":", begin,
                      ",\"end\":", end, "}\n");
    }
    ETC_RETURN_IF_ERROR(rows_file_.Write(lines));
    ETC_RETURN_IF_ERROR(WriteRows(vectors.document));
    return parts_ == nullptr ? absl::OkStatus() : WriteRows(vectors.parts);
  }

  absl::Status End() {
    if (is_npy_) {
      ETC_RETURN_IF_ERROR(file_.Overwrite(NpyHeader(rows_, hidden_size_)));
      // Rows should not be renamed if the vectors find no room.
      ETC_RETURN_IF_ERROR(file_.Sync());
      ETC_RETURN_IF_ERROR(rows_file_.MoveToTarget());
    }
    return file_.MoveToTarget();
  }

  int64_t documents() const { return documents_; }
  int64_t num_parts() const { return num_parts_; }

 private:
  absl::Status WriteRows(const torch::Tensor& rows) {
    const torch::Tensor values = rows.contiguous();
    return file_.Write(absl::string_view(
        reinterpret_cast<const char*>(values.data_ptr<float>()),
        static_cast<size_t>(values.numel()) * sizeof(float)));
  }

  const bool is_npy_;
  const char* const parts_;
  TemporaryFile file_;
  TemporaryFile rows_file_;
  int64_t hidden_size_ = 0;
  int64_t rows_ = 0;
  int64_t documents_ = 0;
  int64_t num_parts_ = 0;
};

// --- The command ---------------------------------------------------------

absl::Status CheckEmbedArguments(const EmbedArguments& arguments,
                                 const std::vector<EmbedFile>& files) {
  const std::string& output = arguments.output;
  if (!absl::EndsWith(output, ".npy") && !absl::EndsWith(output, ".jsonl")) {
    return InvalidArgument("--output should end in .npy or .jsonl, but is ",
                           QuotedName(output));
  }
  const auto plain =
      std::find_if(files.begin(), files.end(),
                   [](const EmbedFile& file) { return file.is_text(); });
  if (!arguments.fields.empty() && plain != files.end()) {
    return InvalidArgument("--text names fields of records, but ", plain->path,
                           ", which is no .jsonl or .json, is one text");
  }
  std::vector<std::string> read = FilesOfWeights(arguments.checkpoint);
  const std::vector<std::string> of_vocabulary =
      arguments.vocabulary.empty() ? std::vector<std::string>()
                                   : FilesAt(arguments.vocabulary);
  read.insert(read.end(), of_vocabulary.begin(), of_vocabulary.end());
  for (const EmbedFile& file : files) {
    read.push_back(file.path);
  }
  ETC_RETURN_IF_ERROR(CheckOutputFile("--output", output, read));
  return absl::EndsWith(output, ".npy")
             ? CheckOutputFile("--output", RowsPath(output), read)
             : absl::OkStatus();
}

// Shows how far the documents are, by the pieces that the model has read.
class EmbedProgress {
 public:
  // `pieces` has the number of pieces of each document. `loaded` and `reporter`
  // must outlive this.
  EmbedProgress(const LoadedEncoder* loaded, std::vector<int64_t> pieces,
                StreamReporter* reporter)
      : loaded_(loaded), pieces_(std::move(pieces)), reporter_(reporter) {
    for (const int64_t count : pieces_) {
      all_ += WorkOf(count);
    }
  }

  // Called before each layer.
  void AtLayer() {
    const int64_t pieces = pieces_[documents_];
    const int64_t layers =
        loaded_->config.num_hidden_layers * EmbeddingPasses(*loaded_, pieces);
    Show(WorkOf(pieces) * static_cast<double>(layers_++) /
         static_cast<double>(layers));
  }
  // Called after each document.
  void Done() {
    done_ += WorkOf(pieces_[documents_++]);
    layers_ = 0;
    Show(0);
  }

 private:
  // Pieces that the model reads: ETC cuts longer documents.
  double WorkOf(int64_t pieces) const {
    return static_cast<double>(loaded_->config.has_long_tokens
                                   ? std::min(pieces, loaded_->max_long_length)
                                   : pieces);
  }
  void Show(double of_this) const {
    const bool at_end = documents_ == pieces_.size();
    reporter_->Embedding({.documents = static_cast<int64_t>(documents_),
                          .num_documents = std::ssize(pieces_),
                          .share = at_end ? 1 : (done_ + of_this) / all_});
  }

  const LoadedEncoder* const loaded_;
  const std::vector<int64_t> pieces_;
  StreamReporter* const reporter_;
  double all_ = 0;
  double done_ = 0;
  size_t documents_ = 0;
  int64_t layers_ = 0;  // of this document that have begun
};

// The encoder on the device that the arguments choose.
absl::StatusOr<LoadedEncoder> OpenEncoder(const EmbedArguments& arguments) {
  ETC_ASSIGN_OR_RETURN(const RunDevice device,
                       DeviceOfRun({.device = arguments.device},
                                   FindCudaDevices(), /*field=*/"--device"));
  ETC_ASSIGN_OR_RETURN(
      LoadedEncoder loaded,
      LoadEncoder(arguments.checkpoint,
                  {.residual_attention = arguments.residual_attention,
                   .vocabulary = arguments.vocabulary,
                   .device = device.device}));
  PrintWarnings(loaded.warnings);
  for (const std::string& name : loaded.report.missing) {
    PrintWarnings(
        {absl::StrCat(loaded.path, " has no ", name, ", which is random")});
  }
  std::cerr << "encoder: " << loaded.path << "\n" << device.message << "\n";
  if (arguments.max_long_length > 0) {
    if (!loaded.config.has_long_tokens) {
      return InvalidArgument("--max-long-length is for ETC, but ", loaded.path,
                             " is BERT, whose tokens are all global");
    }
    loaded.max_long_length = arguments.max_long_length;
  }
  if (arguments.max_global_length > 0) {
    loaded.max_global_length = arguments.max_global_length;
  }
  if (!arguments.pooling.empty()) {
    loaded.pooling =
        arguments.pooling == "mean" ? Pooling::kMean : Pooling::kFirst;
  }
  ETC_RETURN_IF_ERROR(CheckLengths(loaded));
  ETC_RETURN_IF_ERROR(loaded.pooling.status());
  if (arguments.pooling.empty() && *loaded.pooling == Pooling::kMean) {
    std::cerr << "pooling: mean (" << kPoolingFile << ")\n";
  }
  return loaded;
}

// The fields of records by the run that trained the weights, or the usual ones.
// With texts that the arguments name, records may be others than those of the
// run, and so lack its field of ids.
absl::StatusOr<EmbedFields> RecordFieldsOf(const EmbedArguments& arguments,
                                           const LoadedEncoder& loaded) {
  EmbedFields fields;
  std::vector<std::string> found;
  const std::string run = FileBesideWeights(loaded.path, "run_config.json");
  if (!run.empty()) {
    ETC_ASSIGN_OR_RETURN(
        const RunConfig config,
        ReadTaskModelConfig(std::filesystem::path(run).parent_path()));
    JsonObjectReader reader(config.task_options,
                            absl::StrCat(run, ": ", config.task));
    std::optional<std::string> id;
    reader.Optional("id", &id);
    if (arguments.fields.empty()) {
      reader.OneOrMore("text", &fields.texts);
    }
    ETC_RETURN_IF_ERROR(reader.status());
    if (fields.texts != EmbedFields().texts) {
      found.push_back(absl::StrCat("text: ", absl::StrJoin(fields.texts, ", "),
                                   " (", config.task,
                                   ".text of the training)"));
    }
    if (id.has_value()) {
      fields.id = *id;
      fields.needs_id = arguments.fields.empty();
      found.push_back(
          absl::StrCat("id: ", *id, " (", config.task, ".id of the training)"));
    }
  }
  if (!arguments.fields.empty()) {
    fields.texts = arguments.fields;
  }
  if (!found.empty()) {
    std::cerr << absl::StrJoin(found, "; ") << "\n";
  }
  return fields;
}

// Checks all records, so that mistakes are seen before the first one is
// embedded, and returns the number of pieces of each.
//   kCancelled  `*stop` became true
absl::StatusOr<std::vector<int64_t>> CheckTexts(
    const std::vector<EmbedFile>& files, const EmbedFields& fields,
    const LoadedEncoder& loaded, const std::atomic<bool>* stop,
    StreamReporter* reporter) {
  int64_t records = 0;
  for (const EmbedFile& file : files) {
    records += file.size();
  }
  IdPlaces ids;
  std::vector<int64_t> pieces;
  const auto check = [&](const EmbedRecord& record) -> absl::Status {
    ETC_RETURN_IF_ERROR(ids.Add(record.id, record.where));
    ETC_ASSIGN_OR_RETURN(
        const std::vector<Token> tokens,
        NamingOutOfMemory(
            [&] { return absl::StrCat("reading ", record.where); },
            [&] {
              return CheckEncodable(loaded, record.texts, record.where);
            }));
    pieces.push_back(std::ssize(tokens));
    reporter->CheckingTexts(
        {.records = std::ssize(pieces), .num_records = records});
    return absl::OkStatus();
  };
  ETC_RETURN_IF_ERROR(ForEachText(files, fields, stop, check));
  return pieces;
}

absl::StatusOr<EmbeddedText> EmbedRecordText(const LoadedEncoder& loaded,
                                             const EmbedRecord& record) {
  absl::StatusOr<EmbeddedText> vectors = NamingOutOfMemory(
      [&] { return absl::StrCat("embedding ", record.where); },
      [&] { return EmbedText(loaded, record.texts, {.name = record.where}); });
  ETC_RETURN_IF_ERROR(vectors.status());
  if (!vectors->document.isfinite().all().item<bool>() ||
      !vectors->parts.isfinite().all().item<bool>()) {
    return absl::AbortedError(absl::StrCat(
        record.where, " has a vector that is infinite or not a number"));
  }
  return vectors;
}

// The kind of the parts of documents.
const char* PartOf(const LoadedEncoder& loaded) {
  return loaded.config.has_long_tokens ? "sentence" : "chunk";
}

absl::Status SetEmbedThreads(const EmbedArguments& arguments) {
  ETC_RETURN_IF_ERROR(SetThreads(arguments.threads, "--threads").status());
  PrintWarnings({ThreadsWarning(arguments.threads, "--threads")});
  return absl::OkStatus();
}

// Answers the records on standard input by lines on standard output.
absl::Status RunEmbedLines(const EmbedArguments& arguments) {
  if (arguments.data != std::vector<std::string>{kStandardStream}) {
    return InvalidArgument(
        "--output - should be given with --data - alone: each line of standard "
        "input is answered by one on standard output");
  }
  const std::atomic<bool>* const stop = StopAtInterrupt();
  ETC_RETURN_IF_ERROR(SetEmbedThreads(arguments));
  ETC_ASSIGN_OR_RETURN(const LoadedEncoder loaded, OpenEncoder(arguments));
  ETC_ASSIGN_OR_RETURN(const EmbedFields fields,
                       RecordFieldsOf(arguments, loaded));
  const std::string parts = absl::StrCat(PartOf(loaded), "s");
  const uint64_t most = RecordLimits().max_record_bytes;
  const auto answer =
      [&](const RecordLine& line) -> absl::StatusOr<std::string> {
    const std::string where = absl::StrCat("stdin: line ", line.line);
    if (line.json.size() > most) {
      return absl::ResourceExhaustedError(absl::StrCat(
          where, " should have at most ", most, " bytes, but has more"));
    }
    ETC_ASSIGN_OR_RETURN(const EmbedRecord record,
                         ReadJsonText(line.json, where, line.record, fields));
    ETC_ASSIGN_OR_RETURN(const EmbeddedText vectors,
                         EmbedRecordText(loaded, record));
    return LineOfVectors(record, vectors,
                         arguments.documents_only ? nullptr : parts.c_str());
  };
  return AnswerLines({.start = [&](const RecordLine& line) -> PendingAnswer {
                        return [&answer, line] { return answer(line); };
                      },
                      .max_line_bytes = most},
                     stop);
}

// Embeds all records into `writer`, and returns how many were truncated.
//   kCancelled  `*stop` became true
absl::StatusOr<int64_t> EmbedAll(const std::vector<EmbedFile>& files,
                                 const EmbedFields& fields,
                                 const LoadedEncoder& loaded,
                                 const std::atomic<bool>* stop,
                                 VectorWriter* writer) {
  StreamReporter reporter = ConsoleReporter();
  ETC_ASSIGN_OR_RETURN(std::vector<int64_t> pieces,
                       CheckTexts(files, fields, loaded, stop, &reporter));
  ETC_RETURN_IF_ERROR(writer->Begin(loaded.config.hidden_size));
  EmbedProgress progress(&loaded, std::move(pieces), &reporter);
  int64_t truncated = 0;
  const auto embed = [&](const EmbedRecord& record) -> absl::Status {
    ETC_ASSIGN_OR_RETURN(const EmbeddedText vectors,
                         EmbedRecordText(loaded, record));
    truncated +=
        vectors.cut_pieces > 0 || vectors.dropped_sentences > 0 ? 1 : 0;
    ETC_RETURN_IF_ERROR(writer->Add(record, vectors));
    progress.Done();
    return absl::OkStatus();
  };
  try {
    const StopGuard guard(stop, [&] { progress.AtLayer(); });
    ETC_RETURN_IF_ERROR(ForEachText(files, fields, stop, embed));
  } catch (const Stopped&) {
    return absl::CancelledError("stopped");
  }
  return truncated;
}

absl::Status EmbedFiles(const EmbedArguments& arguments) {
  const std::atomic<bool>* const stop = StopAtInterrupt();
  ETC_ASSIGN_OR_RETURN(const std::vector<EmbedFile> files,
                       OpenEmbedFiles(arguments.data, stop));
  ETC_RETURN_IF_ERROR(CheckEmbedArguments(arguments, files));
  ETC_RETURN_IF_ERROR(SetEmbedThreads(arguments));
  ETC_ASSIGN_OR_RETURN(const LoadedEncoder loaded, OpenEncoder(arguments));
  EmbedFields fields;
  if (!absl::c_all_of(files, std::mem_fn(&EmbedFile::is_text))) {
    ETC_ASSIGN_OR_RETURN(fields, RecordFieldsOf(arguments, loaded));
  }
  const char* const kind = PartOf(loaded);
  const std::string parts = absl::StrCat(kind, "s");
  VectorWriter writer(arguments.output,
                      arguments.documents_only ? nullptr : parts.c_str());
  ETC_ASSIGN_OR_RETURN(const int64_t truncated,
                       EmbedAll(files, fields, loaded, stop, &writer));
  ETC_RETURN_IF_ERROR(writer.End());
  std::cout << arguments.output << ": "
            << Counted(writer.documents(), "document");
  if (!arguments.documents_only) {
    std::cout << ", " << Counted(writer.num_parts(), kind);
  }
  std::cout << ", " << Counted(loaded.config.hidden_size, "number") << " each"
            << (truncated > 0 ? absl::StrCat("; ", truncated, " truncated")
                              : "")
            << "\n";
  return absl::OkStatus();
}

absl::Status RunEmbed(const EmbedArguments& arguments) {
  if (arguments.output == kStandardStream) {
    return RunEmbedLines(arguments);
  }
  const absl::Status status = EmbedFiles(arguments);
  return absl::IsCancelled(status)
             ? absl::CancelledError(absl::StrCat("stopped; ", arguments.output,
                                                 " was not written"))
             : status;
}

void AddEncoderOptions(CLI::App* command, EmbedArguments* arguments) {
  command->add_option("--vocabulary", arguments->vocabulary,
                      "Vocabulary (default: that of the weights)");
  command
      ->add_option("--max-long-length", arguments->max_long_length,
                   "Most long tokens of ETC (default: as in training, or 4096)")
      ->check(AtLeastOne());
  command
      ->add_option("--max-global-length", arguments->max_global_length,
                   "Most global tokens: of ETC one for the text and one for "
                   "each sentence, of BERT those of a chunk (default: as in "
                   "training, or 512)")
      ->check(AtLeastOne());
  AddResidualOption(command,
                    "Residual attention scores (default: as the weights say)",
                    &arguments->residual_attention);
  AddDeviceOption(command, &arguments->device);
  command
      ->add_option("--threads", arguments->threads,
                   "CPU threads (default: OMP_NUM_THREADS, or as many as there "
                   "are cores)")
      ->check(AtLeastOne());
}

}  // namespace

void AddEmbedCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<EmbedArguments>();
  CLI::App* command = program->add_subcommand(
      "embed", "Write vectors of texts and of their sentences");
  command->footer(
      "Example:\n"
      "  realetc embed checkpoints/etc_base --data books.jsonl \\\n"
      "    --output vectors.npy\n"
      "ETC reads a text in one pass; BERT reads it in chunks. Rows of FILE.npy "
      "are those\n"
      "of FILE.rows.jsonl: a document, then its sentences. With --data - "
      "--output - each\n"
      "line of standard input is answered at once: doc/predicting.md.");
  command
      ->add_option("CHECKPOINT", arguments->checkpoint,
                   "Weights of any origin, or the directory of a run or a "
                   "grid, whose best checkpoint is taken")
      ->required();
  command
      ->add_option("--data", arguments->data,
                   "Files, or patterns of their names: .jsonl or .json with "
                   "records, others with one text each; packed by gzip as "
                   "well; or - for records on standard input, one a line")
      ->required();
  command
      ->add_option("--output", arguments->output,
                   "File for vectors, FILE.npy or FILE.jsonl; or - for "
                   "standard output, with --data -")
      ->required();
  command->add_option("--text", arguments->fields,
                      "Fields of a record that are its texts, one after the "
                      "other (default: as in training, or text)");
  command
      ->add_option("--pooling", arguments->pooling,
                   "first: ETC's global tokens, BERT's [CLS]; mean: of all "
                   "tokens (default: as 1_Pooling/config.json says, or first)")
      ->check(CLI::IsMember({"first", "mean"}));
  command->add_flag("--documents-only", arguments->documents_only,
                    "Leave out sentences");
  AddEncoderOptions(command, arguments.get());
  command->callback(
      [=] { *action = [arguments] { return RunEmbed(*arguments); }; });
}

}  // namespace etc
