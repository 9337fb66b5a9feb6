// `realetc tokenize`: text to the token store that pre-training reads.

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/cpu_limit.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "etc/weights/tokenizer_files.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/commands/model_options.h"
#include "tasks/commands/output_file.h"
#include "tasks/data/data_files.h"
#include "tasks/data/text_file.h"
#include "tasks/pretrain/corpus/corpus_tokenizer.h"
#include "tasks/pretrain/corpus/token_store_format.h"
#include "tasks/pretrain/corpus/tokenize_corpus.h"
#include "tasks/runs/task_setup.h"
#include "tasks/text/sentence_splitter.h"

namespace etc {
namespace {

struct TokenizeArguments {
  std::vector<std::string> files;
  std::string output;
  std::string vocabulary;
  bool cased = false;
  bool uncased = false;
  bool split_punctuation = false;
  std::string mask_piece;
  std::string format;
  std::optional<std::string> field;
  std::optional<std::string> sentences;
  std::string documents = "file";
  bool glue_files = false;
  std::string invalid_utf8 = "replace";
  std::optional<std::string> bad_lines;
  int64_t threads = 0;
};

// Refuses the options that decide nothing for a vocabulary of this type.
absl::Status CheckVocabularyOptions(const TokenizeArguments& arguments,
                                    const TokenizerFiles& found) {
  if (arguments.cased || arguments.uncased) {
    ETC_RETURN_IF_ERROR(CheckVocabularyOption(
        arguments.cased ? "--cased" : "--uncased", "wordpiece", found));
  }
  return arguments.split_punctuation
             ? CheckVocabularyOption("--split-punctuation", "sentencepiece",
                                     found)
             : absl::OkStatus();
}

// The vocabulary of a checkpoint or model, which knows its options, or a file.
absl::StatusOr<TokenizerConfig> TokenizerOf(
    const TokenizeArguments& arguments) {
  ETC_ASSIGN_OR_RETURN(TokenizerFiles found,
                       DescribeTokenizerAt(arguments.vocabulary));
  ETC_RETURN_IF_ERROR(CheckVocabularyOptions(arguments, found));
  if (arguments.cased || arguments.uncased) {
    ETC_RETURN_IF_ERROR(SetCase(
        arguments.uncased,
        arguments.uncased ? "--uncased is given" : "--cased is given", &found));
  }
  PrintWarnings(TokenizerWarnings(found));
  return TokenizerConfig{.type = found.type,
                         .vocabulary = found.vocabulary,
                         .lower_case = found.wordpiece.lower_case,
                         .split_punctuation = found.split_punctuation ||
                                              arguments.split_punctuation};
}

absl::Status SetDocuments(const std::string& documents,
                          CorpusOptions* options) {
  if (documents == "wikitext") {
    options->wikitext = true;
  } else if (documents != "file" &&
             (!absl::SimpleAtoi(documents, &options->blank_lines) ||
              options->blank_lines < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--documents should be \"file\", \"wikitext\" or the number of blank "
        "lines that end a document, but is \"",
        documents, "\""));
  }
  return absl::OkStatus();
}

// Sets what the options of the text say, and refuses those of another format.
absl::Status SetCorpus(const TokenizeArguments& arguments,
                       CorpusOptions* options) {
  options->format = arguments.format == "bert"   ? CorpusFormat::kBert
                    : arguments.format == "text" ? CorpusFormat::kText
                                                 : CorpusFormat::kJsonLines;
  options->field = arguments.field.value_or(options->field);
  options->glue_files = arguments.glue_files;
  if (arguments.field.has_value() &&
      options->format != CorpusFormat::kJsonLines) {
    return absl::InvalidArgumentError(
        "--field is for --format jsonl, whose lines have fields");
  }
  if (arguments.bad_lines.has_value() &&
      options->format != CorpusFormat::kJsonLines) {
    return absl::InvalidArgumentError(
        "--bad-lines is for --format jsonl, whose lines are objects");
  }
  if (arguments.sentences.has_value() &&
      options->format == CorpusFormat::kBert) {
    return absl::InvalidArgumentError(
        "--sentences is for --format text and jsonl, which have running text; "
        "a line of --format bert is a sentence");
  }
  if (options->glue_files && options->format != CorpusFormat::kBert) {
    return absl::InvalidArgumentError(
        "--glue-files is for --format bert, where files may end within a "
        "document");
  }
  ETC_RETURN_IF_ERROR(SetDocuments(arguments.documents, options));
  if (arguments.documents != "file" && options->format != CorpusFormat::kText) {
    return absl::InvalidArgumentError(
        "--documents is for --format text; the other formats say themselves "
        "what a document is");
  }
  ETC_ASSIGN_OR_RETURN(options->files, FindDataFiles(arguments.files));
  return CheckNamedOnce(options->files);
}

absl::Status SetOptions(const TokenizeArguments& arguments,
                        TokenizeOptions* options) {
  ETC_RETURN_IF_ERROR(SetCorpus(arguments, &options->corpus));
  options->invalid_utf8 = arguments.invalid_utf8 == "error"
                              ? InvalidUtf8::kError
                              : InvalidUtf8::kReplace;
  options->bad_lines =
      arguments.bad_lines == "skip" ? BadLines::kSkip : BadLines::kError;
  const int64_t cpus = CpusOfProcess();
  options->threads =
      arguments.threads > 0 ? std::min(arguments.threads, cpus) : cpus;
  const std::string sentences =
      arguments.sentences.value_or(std::string(kIcuSentences));
  options->sentences = sentences == kIcuSentences ? "icu" : "punkt";
  const auto splitter = LoadSentenceSplitter(sentences);
  if (!splitter.ok()) {
    return absl::Status(
        splitter.status().code(),
        absl::StrCat("--sentences: ", splitter.status().message()));
  }
  options->split_sentences = *splitter;
  return absl::OkStatus();
}

// Refuses to replace a file that may be dear to somebody.
absl::Status CheckOutput(const std::string& output) {
  ETC_ASSIGN_OR_RETURN(const bool is_there, PathExists(output));
  if (!is_there) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const RandomAccessFile file,
                       RandomAccessFile::Open(output));
  const uint64_t size =
      std::min<uint64_t>(file.size(), kTokenStoreMagic.size());
  ETC_ASSIGN_OR_RETURN(const std::string begin, file.Read(0, size));
  if (begin != kTokenStoreMagic) {
    return absl::AlreadyExistsError(
        absl::StrCat("--output names ", output,
                     ", which is there already and is no token store"));
  }
  return absl::OkStatus();
}

void PrintField(const std::string& name, const std::string& value) {
  std::cout << absl::StreamFormat("%-10s %s\n", name, value);
}

double CpuSeconds(const struct rusage& usage) {
  constexpr double kMicrosecond = 1e-6;
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         kMicrosecond * static_cast<double>(usage.ru_utime.tv_usec +
                                            usage.ru_stime.tv_usec);
}

// `begin`: before the work.
void PrintSummary(const TokenizedCorpus& corpus, const std::string& output,
                  double seconds, const struct rusage& begin) {
  struct rusage end = {};
  getrusage(RUSAGE_SELF, &end);
  const auto tokens = static_cast<double>(corpus.tokens);
  const auto bytes = static_cast<double>(corpus.text_bytes);
  PrintField("documents", FormatCount(corpus.documents));
  PrintField("sentences", FormatCount(corpus.sentences));
  PrintField("tokens",
             absl::StrFormat("%s; %.1f a sentence, %s at most",
                             FormatCount(corpus.tokens),
                             tokens / static_cast<double>(corpus.sentences),
                             FormatCount(corpus.longest_sentence)));
  PrintField(
      "unknown",
      absl::StrFormat("%.3f %%",
                      100 * static_cast<double>(corpus.unknown) / tokens));
  PrintField("text",
             absl::StrFormat(
                 "%s in %s: %.1f MB/s, %.1f MB/s and core", FormatBytes(bytes),
                 FormatSeconds(seconds), bytes / 1e6 / seconds,
                 bytes / 1e6 / (CpuSeconds(end) - CpuSeconds(begin))));
  PrintField("memory", FormatBytes(static_cast<double>(end.ru_maxrss) * 1024));
  std::error_code ignored;
  PrintField("store",
             absl::StrCat(output, ", ",
                          FormatBytes(static_cast<double>(
                              std::filesystem::file_size(output, ignored)))));
}

// Warns, before the work begins, of files that are no running text, but are
// read as such. Nobody can look into a pipe first.
absl::Status WarnOfMarkup(const CorpusOptions& corpus) {
  if (corpus.format == CorpusFormat::kJsonLines) {
    return absl::OkStatus();
  }
  std::vector<std::string> files = corpus.files;
  std::erase(files, kCorpusOnStandardInput);
  ETC_ASSIGN_OR_RETURN(const std::string found, FindMarkup(files));
  if (!found.empty()) {
    PrintWarnings({absl::StrCat(
        found,
        ", but is read as text (--format jsonl --field NAME reads a "
        "field of JSON lines)")});
  }
  return absl::OkStatus();
}

std::vector<std::string> WarningsOf(const TokenizedCorpus& corpus,
                                    const TokenizeArguments& arguments) {
  // A text that the vocabulary is made for has fewer: its rare characters.
  constexpr double kMostUnknown = 0.02;
  std::vector<std::string> warnings;
  const double unknown =
      static_cast<double>(corpus.unknown) / static_cast<double>(corpus.tokens);
  if (unknown > kMostUnknown) {
    warnings.push_back(absl::StrFormat(
        "%.1f %% of tokens are unknown: is this vocabulary of this language, "
        "and of this case?",
        100 * unknown));
  }
  if (corpus.replaced > 0) {
    const auto most = std::max_element(corpus.replaced_by_file.begin(),
                                       corpus.replaced_by_file.end(),
                                       [](const auto& one, const auto& other) {
                                         return one.second < other.second;
                                       });
    warnings.push_back(absl::StrCat(
        Counted(corpus.replaced, "sequence"),
        " of bytes that are not UTF-8 (or half a surrogate pair in JSON) "
        "became U+FFFD, ",
        most->second, " of them in ", most->first,
        "; --invalid-utf8 error tells where"));
  }
  if (corpus.bad_lines > 0) {
    warnings.push_back(
        absl::StrCat(Counted(corpus.bad_lines, "line"),
                     " left out; the first: ", corpus.first_bad_line));
  }
  // One a document: nearly all of them.
  if (corpus.documents > 1 && 10 * corpus.sentences <= 11 * corpus.documents) {
    warnings.push_back(absl::StrCat(
        Counted(corpus.documents, "document"), " have ",
        Counted(corpus.sentences, "sentence"),
        ": nearly all are of one, which has no next sentence and fills no "
        "input; ",
        arguments.format == "jsonl"
            ? "an object of the file should be a whole document"
        : arguments.format == "bert"
            ? "a blank line ends a document, so there should be none behind "
              "each sentence"
            : "--documents says what ends a document"));
  }
  if (corpus.documents == 1) {
    warnings.emplace_back(
        "the corpus is one document: there will be no other one to hold out, "
        "or to take a random next sentence from");
  }
  return warnings;
}

absl::Status Tokenize(const TokenizeArguments& arguments) {
  TokenizeOptions options;
  ETC_RETURN_IF_ERROR(SetOptions(arguments, &options));
  ETC_ASSIGN_OR_RETURN(const TokenizerConfig config, TokenizerOf(arguments));
  ETC_ASSIGN_OR_RETURN(const auto loaded, LoadTokenizer(config));
  ETC_ASSIGN_OR_RETURN(
      const CorpusTokenizer tokenizer,
      MakeCorpusTokenizer(config, loaded, arguments.mask_piece));
  // Another store may lie beside the vocabulary.
  std::vector<std::string> read =
      FilesBesideVocabulary(config.type, config.vocabulary);
  read.push_back(config.vocabulary);
  const std::vector<std::string>& files = options.corpus.files;
  read.insert(read.end(), files.begin(), files.end());
  const std::string output = FileBehindLinks(arguments.output);
  // Before any file is made, which a signal would leave.
  options.stop = StopAtInterrupt();
  ETC_RETURN_IF_ERROR(CheckOutputFile("--output", output, read));
  ETC_RETURN_IF_ERROR(CheckOutput(output));
  ETC_RETURN_IF_ERROR(WarnOfMarkup(options.corpus));
  StreamReporter reporter = ConsoleReporter();
  if (options.corpus.format == CorpusFormat::kBert && files.size() > 1) {
    reporter.Message(options.corpus.glue_files
                         ? "the end of a file ends no document (--glue-files)"
                         : "the end of a file ends a document");
  }
  const double begin = SteadySeconds();
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  // Nobody knows how much comes from a pipe.
  if (std::find(files.begin(), files.end(), kCorpusOnStandardInput) ==
      files.end()) {
    options.progress = [&reporter, begin](const TokenizedCorpus& so_far) {
      reporter.Tokenizing(
          {.bytes = so_far.bytes_read,
           .num_bytes = so_far.num_bytes,
           .bytes_per_second = static_cast<double>(so_far.text_bytes) /
                               (SteadySeconds() - begin)});
    };
  }
  const absl::StatusOr<TokenizedCorpus> corpus =
      TokenizeCorpus(tokenizer, options, output);
  if (absl::IsCancelled(corpus.status())) {
    return absl::CancelledError(
        absl::StrCat("stopped; ", output, " was not written"));
  }
  ETC_RETURN_IF_ERROR(corpus.status());
  PrintWarnings(WarningsOf(*corpus, arguments));
  PrintSummary(*corpus, output, SteadySeconds() - begin, usage);
  return absl::OkStatus();
}

constexpr char kTokenizeFooter[] =
    "Formats:\n"
    "  bert   a sentence a line, a blank line between documents\n"
    "  text   running text, which is split into sentences; a blank line ends "
    "a\n"
    "         paragraph, and --documents says what ends a document\n"
    "  jsonl  a JSON object a line, which is a document: running text in one\n"
    "         field\n"
    "\n"
    "Files may be compressed by gzip; - is standard input, plain. The store\n"
    "appears whole at the end; Ctrl-C stops and leaves nothing. Memory, "
    "beside\n"
    "that of the program itself: some 25 MB, and 25 MB a thread.\n"
    "\n"
    "Examples:\n"
    "  realetc tokenize 'wiki-??.txt.gz' --format bert \\\n"
    "    --vocabulary vocab.txt --output wiki.tokens\n"
    "  realetc tokenize 'books/*.txt' --format text --documents 2 \\\n"
    "    --vocabulary vocab.txt --output books.tokens\n"
    "  realetc tokenize 'c4-*.json.gz' --format jsonl --field text \\\n"
    "    --bad-lines skip --vocabulary spiece.model --output c4.tokens\n"
    "  zstdcat pile-*.zst | realetc tokenize - --format jsonl \\\n"
    "    --vocabulary spiece.model --output pile.tokens";

void AddTextOptions(CLI::App* command, TokenizeArguments* arguments) {
  command
      ->add_option("--format", arguments->format,
                   "What the files are: bert, text or jsonl, see below")
      ->required()
      ->check(CLI::IsMember({"bert", "text", "jsonl"}));
  command->add_option("--field", arguments->field,
                      "Field of jsonl with the text (default: text)");
  command->add_option(
      "--sentences", arguments->sentences,
      "How running text is split into sentences: icu (default), or a folder of "
      "the tables of NLTK's Punkt");
  command->add_option(
      "--documents", arguments->documents,
      "What a document of running text is: a file (file, default); what so "
      "many "
      "blank lines end (a number: 1, or for the chapters of books of Project "
      "Gutenberg 2 or 3); an article of WikiText, where a line is a paragraph "
      "(wikitext)");
  command->add_flag("--glue-files", arguments->glue_files,
                    "bert: a file's last document goes on in the next file, as "
                    "in the official program");
  command
      ->add_option("--invalid-utf8", arguments->invalid_utf8,
                   "Bytes that are not UTF-8, and JSON's escapes of half a "
                   "surrogate pair: replace (default) them by U+FFFD and count "
                   "them, or error")
      ->check(CLI::IsMember({"replace", "error"}));
  command
      ->add_option("--bad-lines", arguments->bad_lines,
                   "Lines of jsonl that are no JSON object with the field: "
                   "error (default), or skip them and count them")
      ->check(CLI::IsMember({"error", "skip"}));
}

}  // namespace

void AddTokenizeCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<TokenizeArguments>();
  CLI::App* command = program->add_subcommand(
      "tokenize", "Make a token store of text, for pre-training");
  command->footer(kTokenizeFooter);
  command
      ->add_option("FILES", arguments->files,
                   "Text files, or patterns of their names; - for standard "
                   "input")
      ->required();
  command
      ->add_option("--output", arguments->output,
                   "File of the store; one that is there is replaced")
      ->required();
  command
      ->add_option("--vocabulary", arguments->vocabulary,
                   "vocab.txt, tokenizer.json, vocab.json beside merges.txt, a "
                   "SentencePiece model (.model), "
                   "or a directory of a checkpoint that has one")
      ->required();
  CLI::Option* const cased = command->add_flag(
      "--cased", arguments->cased,
      "WordPiece: keep upper case and accents, where no file beside "
      "the vocabulary says do_lower_case");
  command
      ->add_flag("--uncased", arguments->uncased,
                 "WordPiece: fold to lower case and strip accents, likewise")
      ->excludes(cased);
  command->add_flag(
      "--split-punctuation", arguments->split_punctuation,
      "SentencePiece: split at white space and punctuation first");
  command->add_option("--mask-piece", arguments->mask_piece,
                      "Piece that stands for a masked token, if the vocabulary "
                      "has neither [MASK] nor <mask>");
  AddTextOptions(command, arguments.get());
  command
      ->add_option("--threads", arguments->threads,
                   "Threads that tokenize (default and maximum: one a core)")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}));
  command->callback(
      [=] { *action = [arguments] { return Tokenize(*arguments); }; });
}

}  // namespace etc
