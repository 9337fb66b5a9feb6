// Text to pieces, on one thread.
//
//   Tokenizer/<wordpiece|huggingface|sentencepiece|
//              sentencepiece/split_punctuation>
//   WordCache/<wordpiece|sentencepiece/split_punctuation>  as realetc tokenize
//   Sentences/icu  running text to sentences, which comes before
//
// Text and WordPiece vocabulary are those of the bundled WikiHop sample, unless
// the environment names others: TOKENIZER_BENCH_TEXT (a text file),
// TOKENIZER_BENCH_WORDPIECE (vocab.txt), TOKENIZER_BENCH_SENTENCEPIECE (a
// model; there is none in the project, so without it SentencePiece is left
// out), TOKENIZER_BENCH_HUGGINGFACE (a tokenizer.json, likewise).
// bytes_per_second counts the UTF-8 text.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "bench/run_benchmarks.h"
#include "tasks/pretrain/corpus/word_cache.h"
#include "tasks/text/huggingface/huggingface_tokenizer.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/text/sentence_splitter.h"
#include "tasks/text/sentencepiece_tokenizer.h"
#include "tasks/text/tokenizer.h"

namespace etc {
namespace {

std::string FromEnvironment(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

absl::StatusOr<std::vector<std::string>> Lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  if (lines.empty()) {
    return absl::NotFoundError(path + ": cannot be read, or is empty");
  }
  return lines;
}

using Loaded = absl::StatusOr<std::shared_ptr<const Tokenizer>>;

void Encode(benchmark::State& state, const Tokenizer& tokenizer,
            const std::vector<std::string>& lines) {
  int64_t bytes = 0;
  for (const std::string& line : lines) {
    bytes += static_cast<int64_t>(line.size());
  }
  for (auto _ : state) {
    for (const std::string& line : lines) {
      benchmark::DoNotOptimize(tokenizer.Encode(line));
    }
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

void EncodeCached(benchmark::State& state, const Tokenizer& tokenizer,
                  const std::vector<std::string>& lines) {
  WordCache cache(&tokenizer);
  std::vector<int32_t> ids;
  int64_t bytes = 0;
  for (auto _ : state) {
    for (const std::string& line : lines) {
      ids.clear();
      cache.Encode(line, &ids);
      benchmark::DoNotOptimize(ids.data());
      bytes += static_cast<int64_t>(line.size());
    }
  }
  state.SetBytesProcessed(bytes);
}

// The lines joined, in pieces about as long as paragraphs.
void Split(benchmark::State& state, const std::vector<std::string>& lines) {
  constexpr size_t kParagraphBytes = 2000;
  std::vector<std::string> paragraphs(1);
  for (const std::string& line : lines) {
    if (paragraphs.back().size() > kParagraphBytes) {
      paragraphs.emplace_back();
    }
    paragraphs.back() += line + "\n";
  }
  int64_t bytes = 0;
  for (auto _ : state) {
    for (const std::string& paragraph : paragraphs) {
      benchmark::DoNotOptimize(SplitSentences(paragraph));
      bytes += static_cast<int64_t>(paragraph.size());
    }
  }
  state.SetBytesProcessed(bytes);
}

// Says why if there is no such tokenizer. `has_words`: WordCache can be used.
bool Register(const std::string& name, bool has_words, Loaded tokenizer,
              const std::shared_ptr<const std::vector<std::string>>& lines) {
  if (!tokenizer.ok()) {
    std::cerr << "tokenizer_bench: " << tokenizer.status().message() << "\n";
    return false;
  }
  const std::shared_ptr<const Tokenizer> shared = *std::move(tokenizer);
  AddBenchmark("Tokenizer/" + name, [=](benchmark::State& state) {
    Encode(state, *shared, *lines);
  });
  if (has_words) {
    AddBenchmark("WordCache/" + name, [=](benchmark::State& state) {
      EncodeCached(state, *shared, *lines);
    });
  }
  return true;
}

bool RegisterAll() {
  const std::string sample = ETC_SOURCE_DIR "/tasks/wikihop/sample/";
  const std::string text =
      FromEnvironment("TOKENIZER_BENCH_TEXT", sample + "dev.json");
  absl::StatusOr<std::vector<std::string>> lines = Lines(text);
  if (!lines.ok()) {
    std::cerr << "tokenizer_bench: " << lines.status().message() << "\n";
    return false;
  }
  const auto shared =
      std::make_shared<const std::vector<std::string>>(*std::move(lines));
  const std::string vocabulary =
      FromEnvironment("TOKENIZER_BENCH_WORDPIECE", sample + "vocab.txt");
  const std::string model =
      FromEnvironment("TOKENIZER_BENCH_SENTENCEPIECE", "");
  const std::string json = FromEnvironment("TOKENIZER_BENCH_HUGGINGFACE", "");
  if (!json.empty() && !Register("huggingface", /*has_words=*/false,
                                 LoadHuggingFaceTokenizer(json), shared)) {
    return false;
  }
  AddBenchmark("Sentences/icu",
               [=](benchmark::State& state) { Split(state, *shared); });
  return Register("wordpiece", /*has_words=*/true, LoadTokenizer(vocabulary),
                  shared) &&
         (model.empty() ||
          (Register("sentencepiece", /*has_words=*/false,
                    LoadSentencePieceTokenizer(model, {}), shared) &&
           Register(
               "sentencepiece/split_punctuation", /*has_words=*/true,
               LoadSentencePieceTokenizer(model, {.split_punctuation = true}),
               shared)));
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  if (!etc::RegisterAll()) {
    return 1;
  }
  return etc::RunBenchmarks(argc, argv);
}
