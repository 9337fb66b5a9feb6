#include "etc/weights/output_directory.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file_operations.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "etc/weights/pooling_file.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kReadBesideWeights[] = {
    // formats/tensor_source.h
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
    "pytorch_model.bin.index.json", "model.pt", "checkpoint",
    // source_config.h
    "etc_config.json", "bert_config.json", "config.json",
    // tokenizer_files.h
    "vocab.txt", "tokenizer.model", "vocab_bert_uncased_english.txt",
    "vocab_gpt_for_etc.model", "spiece.model", "sentencepiece.bpe.model",
    "tokenizer.json", "vocab.json", "merges.txt", "dict.txt",
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    // tasks/train/model_files.h, tasks/translation/model.h
    "run_config.json", "text_options.json", "encoder_decoder.json",
    // tasks/output/checkpoint_files.h
    "owner.json"};

bool IsReadBesideWeights(absl::string_view name) {
  return std::find(std::begin(kReadBesideWeights), std::end(kReadBesideWeights),
                   name) != std::end(kReadBesideWeights) ||
         absl::EndsWith(name, ".index") ||  // of TensorFlow
         (absl::StartsWith(name, "dict.") && absl::EndsWith(name, ".txt"));
}

}  // namespace

absl::Status CheckNoWeightsIn(const std::string& directory) {
  std::string first;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (IsReadBesideWeights(name) && (first.empty() || name < first)) {
      first = name;
    }
  }
  // Anything but a directory is refused when it is written to.
  if (error && error != std::errc::no_such_file_or_directory &&
      error != std::errc::not_a_directory) {
    return ErrnoStatus(error.value(), "list", directory);
  }
  ETC_ASSIGN_OR_RETURN(const bool pools,
                       EntryExists(absl::StrCat(directory, "/", kPoolingFile)));
  if (pools && (first.empty() || kPoolingFile < first)) {
    first = kPoolingFile;
  }
  return first.empty()
             ? absl::OkStatus()
             : absl::AlreadyExistsError(absl::StrCat(
                   directory, "/", first,
                   " is there already: name a new directory, or remove what a "
                   "command that was stopped has left in this one"));
}

}  // namespace etc
