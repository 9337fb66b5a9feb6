// `realetc translate`: translate lines of text with a checkpoint.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/counted.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "base/interrupt.h"
#include "base/standard_streams.h"
#include "base/status_macros.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/commands/model_options.h"
#include "tasks/commands/output_file.h"
#include "tasks/commands/predict_lines.h"
#include "tasks/data/text_file.h"
#include "tasks/translation/translator.h"
#include "tasks/translation/vocabulary.h"

namespace etc {
namespace {

constexpr uint64_t kMaxLineBytes = 64'000'000;
// Batches whose lines are sorted together.
constexpr int64_t kBatchesOfWindow = 64;

struct TranslateArguments {
  std::string checkpoint;
  std::string input = kStandardStream;
  std::string output = kStandardStream;
  TranslatorOptions options;
  bool scores = false;
};

// Lines of the input, some at a time.
class LineSource {
 public:
  virtual ~LineSource() = default;
  // At most `most` lines: of a file as many as there are, of a pipe those that
  // wait. None: the end.
  virtual absl::StatusOr<std::vector<std::string>> Next(int64_t most) = 0;
  virtual std::string name() const = 0;
};

class FileLines final : public LineSource {
 public:
  explicit FileLines(std::unique_ptr<TextFile> file) : file_(std::move(file)) {}
  absl::StatusOr<std::vector<std::string>> Next(int64_t most) override {
    std::vector<std::string> lines;
    absl::string_view line;
    while (static_cast<int64_t>(lines.size()) < most) {
      ETC_ASSIGN_OR_RETURN(const bool has_line, file_->NextLine(&line));
      if (!has_line) {
        break;
      }
      lines.emplace_back(line);
    }
    return lines;
  }
  std::string name() const override { return file_->path(); }

 private:
  const std::unique_ptr<TextFile> file_;
};

class StandardInput final : public LineSource {
 public:
  StandardInput(int output, int64_t batch_size, const std::atomic<bool>* stop)
      : reader_(STDIN_FILENO, output, kMaxLineBytes, stop),
        batch_size_(batch_size) {}
  absl::StatusOr<std::vector<std::string>> Next(int64_t most) override {
    std::vector<std::string> lines;
    while (static_cast<int64_t>(lines.size()) < std::min(most, batch_size_)) {
      ETC_ASSIGN_OR_RETURN(
          std::optional<std::string> line,
          reader_.Next(lines.empty() ? LineReader::Wait::kUntilLine
                                     : LineReader::Wait::kNo));
      if (!line.has_value()) {
        break;
      }
      lines.push_back(*std::move(line));
    }
    return lines;
  }
  std::string name() const override { return "stdin"; }

 private:
  LineReader reader_;
  const int64_t batch_size_;
};

absl::StatusOr<std::unique_ptr<LineSource>> OpenInput(
    const TranslateArguments& arguments, int64_t batch_size,
    const std::atomic<bool>* stop) {
  if (arguments.input == kStandardStream) {
    const bool to_stream = arguments.output == kStandardStream;
    return std::make_unique<StandardInput>(to_stream ? STDOUT_FILENO : -1,
                                           batch_size, stop);
  }
  ETC_ASSIGN_OR_RETURN(
      std::unique_ptr<TextFile> file,
      TextFile::Open(arguments.input, {.max_record_bytes = kMaxLineBytes}));
  return std::make_unique<FileLines>(std::move(file));
}

// The lines of the output for the line of that number, from 1.
std::string FormatTranslations(const std::vector<Translation>& translations,
                               int64_t number, bool with_scores) {
  std::string text;
  for (const Translation& translation : translations) {
    if (with_scores) {
      absl::StrAppendFormat(&text, "%d\t%.6f\t", number, translation.score);
    }
    absl::StrAppend(&text, translation.text, "\n");
  }
  return text;
}

// Lines of the input.
struct LineCounts {
  int64_t lines = 0;
  UnknownTokens tokens = {};
};

// Callbacks of TranslateAll.
struct TranslationOutput {
  // Gets the lines of the output for the next line of the input.
  std::function<absl::Status(const std::string&)> write;
  // Called at the start and after each batch with the number of lines that are
  // translated.
  std::function<void(int64_t)> report;
};

// Translates all lines.
absl::StatusOr<LineCounts> TranslateAll(const TranslateArguments& arguments,
                                        const RunContext& context,
                                        const TranslationOutput& output,
                                        LineSource* source,
                                        Translator* translator) {
  const bool with_scores = arguments.scores || arguments.options.num_best > 1;
  LineCounts counts;
  int64_t& done = counts.lines;
  output.report(done);
  while (!context.is_stopped()) {
    ETC_ASSIGN_OR_RETURN(
        const std::vector<std::string> lines,
        source->Next(kBatchesOfWindow * translator->batch_size()));
    if (lines.empty()) {
      if (context.is_stopped()) {
        break;  // LineReader ends its input at a signal
      }
      return counts;
    }
    std::vector<std::vector<int32_t>> encoded;
    absl::Status mistake;
    for (const std::string& line : lines) {
      absl::StatusOr<std::vector<int32_t>> ids = translator->Encode(
          line, absl::StrCat(source->name(), ":", done + encoded.size() + 1));
      if (!ids.ok()) {
        mistake = ids.status();  // once the lines before it are translated
        break;
      }
      counts.tokens.Add(*ids);
      encoded.push_back(*std::move(ids));
    }
    ETC_RETURN_IF_ERROR(translator->Translate(
        encoded, context,
        [&](size_t line, const std::vector<Translation>& translations) {
          return output.write(FormatTranslations(
              translations, done + static_cast<int64_t>(line) + 1,
              with_scores));
        },
        [done](size_t line) { return absl::StrCat("line ", done + line + 1); },
        [&](int64_t translated) { output.report(done + translated); }));
    ETC_RETURN_IF_ERROR(mistake);
    done += static_cast<int64_t>(encoded.size());
  }
  return absl::CancelledError("the translation was stopped");
}

// Checks and counts all lines of a file, so that a bad one is seen before the
// first is translated.
absl::StatusOr<LineCounts> CheckLines(const std::string& path,
                                      const RunContext& context,
                                      const Translator& translator) {
  ETC_ASSIGN_OR_RETURN(
      const std::unique_ptr<TextFile> file,
      TextFile::Open(path, {.max_record_bytes = kMaxLineBytes}));
  LineCounts counts;
  absl::string_view line;
  while (!context.is_stopped()) {
    ETC_ASSIGN_OR_RETURN(const bool has_line, file->NextLine(&line));
    if (!has_line) {
      return counts;
    }
    ETC_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                         translator.Encode(std::string(line),
                                           absl::StrCat(file->path(), ":",
                                                        file->line_number())));
    ++counts.lines;
    counts.tokens.Add(ids);
  }
  return absl::CancelledError("the translation was stopped");
}

void WarnOfUnknown(const UnknownTokens& tokens, const std::string& name) {
  PrintWarnings({tokens.Warning(name)});
}

// The file for the translations of a part of the input, which nobody should
// take for the whole.
std::string PartialOutput(const std::string& file) { return file + ".part"; }

// Writes what is translated to `arguments.output`, and removes the
// PartialOutput of an earlier call; of a part of the input, writes it there.
// Returns the error that ended the translation, if any, in front of that of
// writing. `lines` of the input are translated.
absl::Status WriteTranslations(const TranslateArguments& arguments,
                               const absl::Status& translated,
                               const std::string& contents, int64_t lines,
                               const RunContext& context) {
  const std::string file = FileBehindLinks(arguments.output);
  const std::string partial = PartialOutput(file);
  if (translated.ok()) {
    ETC_RETURN_IF_ERROR(WriteFileAtomically(file, contents));
    std::error_code ignored;
    if (std::filesystem::is_regular_file(partial, ignored)) {
      const bool removed = FileOperations::Current().Unlink(partial) == 0;
      context.Message(
          absl::StrCat(partial, ", a part of an earlier translation, ",
                       removed ? "is removed" : "could not be removed"));
    }
    return absl::OkStatus();
  }
  if (!contents.empty()) {
    const absl::Status written = WriteFileAtomically(partial, contents);
    context.Message(written.ok() ? absl::StrCat(partial, ": the first ",
                                                Counted(lines, "line"))
                                 : std::string(written.message()));
  }
  return translated;
}

// Checks that the output, whole or in part, may be written and replaces no file
// that is read.
absl::Status CheckOutputs(const TranslateArguments& arguments) {
  std::vector<std::string> read = FilesOfWeights(arguments.checkpoint);
  read.push_back(arguments.input);
  ETC_RETURN_IF_ERROR(CheckOutputFile("--output", arguments.output, read));
  return CheckOutputFile(
      "--output", PartialOutput(FileBehindLinks(arguments.output)), read);
}

absl::Status RunTranslate(const TranslateArguments& arguments) {
  // Before any file is made, which a signal would leave.
  StreamReporter reporter = ConsoleReporter();
  const RunContext context = {.reporter = &reporter, .stop = StopAtInterrupt()};
  const bool to_stream = arguments.output == kStandardStream;
  if (!to_stream) {
    ETC_RETURN_IF_ERROR(CheckOutputs(arguments));
  }
  // Before the model is loaded: a file that is not there is said at once.
  ETC_ASSIGN_OR_RETURN(
      const std::unique_ptr<LineSource> source,
      OpenInput(arguments, arguments.options.batch_size, context.stop));
  ETC_ASSIGN_OR_RETURN(
      Translator translator,
      Translator::Open(arguments.checkpoint, arguments.options, context));
  // A pipe cannot be read twice.
  std::error_code ignored;
  const bool is_checked =
      std::filesystem::is_regular_file(arguments.input, ignored);
  LineCounts expected;
  if (is_checked) {
    ETC_ASSIGN_OR_RETURN(expected,
                         CheckLines(arguments.input, context, translator));
    WarnOfUnknown(expected.tokens, source->name());
  }
  std::string contents;
  int64_t lines = 0;  // of the input, whose translations are in `contents`
  const absl::StatusOr<LineCounts> counts = TranslateAll(
      arguments, context,
      {.write = [&](const std::string& text) -> absl::Status {
         if (!to_stream) {
           contents += text;
           ++lines;
           return absl::OkStatus();
         }
         std::cout << text;
         return FlushStandardOutput();
       },
       .report =
           [&](int64_t translated) {
             if (is_checked && !to_stream) {
               reporter.Translating(
                   {.records = translated, .num_records = expected.lines});
             }
           }},
      source.get(), &translator);
  if (!counts.ok() && OutputReaderLeft()) {
    return absl::OkStatus();  // the end of the program has an exit code for it
  }
  ETC_RETURN_IF_ERROR(to_stream ? counts.status()
                                : WriteTranslations(arguments, counts.status(),
                                                    contents, lines, context));
  if (!is_checked) {
    WarnOfUnknown(counts->tokens, source->name());
  }
  std::cerr << Counted(counts->lines, "line") << " translated" << std::endl;
  return absl::OkStatus();
}

constexpr char kTranslateFooter[] =
    "Each line of the input becomes a line of the output, in order; those of\n"
    "standard input as soon as they are known. A line that cannot be "
    "translated\n"
    "is refused: of a file before anything is translated. Where an error or\n"
    "a signal ends it earlier, the lines before are in OUTPUT.part, which\n"
    "the next call that translates all lines removes. With --scores or\n"
    "--n-best the output has the number of the line, the score and the text,\n"
    "with tabulators.\n"
    "\n"
    "Examples:\n"
    "  realetc translate runs/translation-demo --input lines.txt\n"
    "  echo \"A man rides a bicycle.\" | realetc translate runs/multi30k";

}  // namespace

void AddTranslateCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<TranslateArguments>();
  TranslatorOptions* const options = &arguments->options;
  CLI::App* command = program->add_subcommand(
      "translate", "Translate lines of text with a checkpoint");
  command->footer(kTranslateFooter);
  command
      ->add_option("CHECKPOINT", arguments->checkpoint,
                   "Checkpoint directory of translation, or the output "
                   "directory of a run: its best checkpoint is taken")
      ->required();
  command->add_option("--input", arguments->input,
                      "File of lines, plain or packed by gzip; - for standard "
                      "input (default)");
  command->add_option("--output", arguments->output,
                      "File for translations; - for standard output (default)");
  command
      ->add_option("--beam", options->beam_size,
                   "Hypotheses of the search, at most one less than the "
                   "vocabulary (default: as configured)")
      ->check(AtLeastOne());
  command
      ->add_option("--length-penalty", options->length_penalty,
                   "Power of the length by which log-probabilities are divided "
                   "(default: as configured)")
      ->check(AtLeastZero());
  command
      ->add_option("--max-length", options->max_length,
                   "Most tokens of a translation (default: as configured)")
      ->check(AtLeastOne());
  command->add_option("--unknown-penalty", options->unknown_penalty,
                      "Taken off the log-probability of unknown tokens");
  command
      ->add_option("--n-best", options->num_best,
                   "Translations of each line, at most --beam (default: 1)")
      ->check(AtLeastOne());
  command->add_flag("--scores", arguments->scores,
                    "The number of the line and the score before each text");
  command
      ->add_option("--batch-size", options->batch_size,
                   "Lines that are searched at once (default: 128)")
      ->check(AtLeastOne());
  AddResidualOption(command,
                    "Residual attention scores of all three paths (default: as "
                    "in training)",
                    &options->residual_attention);
  AddDeviceOption(command, &options->device);
  command
      ->add_option("--threads", options->threads,
                   "CPU threads (default: as in training)")
      ->check(AtLeastOne());
  command->callback(
      [=] { *action = [arguments] { return RunTranslate(*arguments); }; });
}

}  // namespace etc
