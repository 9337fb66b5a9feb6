#include "tasks/config/run_files.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/directory.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "etc/weights/tokenizer_files.h"
#include "tasks/config/config_fields.h"
#include "tasks/data/data_files.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

// Returns the files of `directory` whose names begin with `prefix`, by name,
// without those that version control and downloads leave there (a dot in
// front).
std::vector<std::string> FilesIn(const std::string& directory,
                                 const std::string& prefix) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (absl::StartsWith(name, prefix) && !absl::StartsWith(name, ".") &&
        entry->is_regular_file(ignored)) {
      paths.push_back(entry->path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::StatusOr<std::vector<std::string>> FindFiles(
    const std::vector<std::string>& patterns) {
  return FindDataFiles(patterns);
}

absl::StatusOr<std::vector<std::string>> FindFiles(const std::string& path) {
  if (path.empty()) {
    return std::vector<std::string>();
  }
  ETC_ASSIGN_OR_RETURN(const bool is_directory, IsDirectory(path));
  if (is_directory) {
    return FilesIn(path, "");
  }
  ETC_ASSIGN_OR_RETURN(const bool is_there, PathExists(path));
  if (is_there) {
    return std::vector<std::string>{path};
  }
  const fs::path prefix(path);
  const std::string parent = prefix.parent_path().string();
  std::vector<std::string> paths =
      FilesIn(parent.empty() ? "." : parent, prefix.filename().string() + ".");
  if (paths.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no file or directory ", path));
  }
  return paths;
}

// Returns those of the files `names`, in the directory that `field` names, that
// are read. For "init" they are the weights in the format that is looked for
// first and the configuration beside them (vocabularies have a field of their
// own), for "data.sentences" the tables. Returns all names if none is known.
std::set<std::string> NamesOfReadFiles(const std::string& field,
                                       const std::set<std::string>& names) {
  if (field == "data.sentences") {
    std::set<std::string> tables;
    for (const char* name : {"abbrev_types.txt", "collocations.tab",
                             "sent_starters.txt", "ortho_context.tab"}) {
      if (names.contains(name)) {
        tables.insert(name);
      }
    }
    return tables.empty() ? names : tables;
  }
  if (field != "init") {
    return names;
  }
  std::set<std::string> read;
  // In the order in which OpenTensorSource looks for them.
  const std::pair<const char*, const char*> formats[] = {
      {"model.safetensors", ""},
      {"model.safetensors.index.json", ".safetensors"},
      {"pytorch_model.bin", ""},
      {"pytorch_model.bin.index.json", ".bin"}};
  const auto format =
      std::find_if(std::begin(formats), std::end(formats),
                   [&](const auto& one) { return names.contains(one.first); });
  for (const std::string& name : names) {
    const bool is_weights =
        format != std::end(formats)
            ? name == format->first || (format->second[0] != '\0' &&
                                        absl::EndsWith(name, format->second))
            : name == "checkpoint" || absl::EndsWith(name, ".index") ||
                  absl::StrContains(name, ".data-");
    if (is_weights) {
      read.insert(name);
    }
  }
  if (read.empty()) {
    return names;
  }
  // In the order in which ReadSourceConfig looks for them, but for a
  // config.json of ExportForTransformers: its fields are among the settings of
  // the model.
  for (const char* name :
       {"etc_config.json", "bert_config.json", "config.json"}) {
    if (names.contains(name)) {
      read.insert(name);
      break;
    }
  }
  return read;
}

// Drops the files of a directory that are not read.
void KeepReadFiles(const std::string& field, std::vector<std::string>* paths) {
  const auto name_of = [](const std::string& path) {
    return fs::path(path).filename().string();
  };
  std::set<std::string> names;
  for (const std::string& path : *paths) {
    names.insert(name_of(path));
  }
  const std::set<std::string> read = NamesOfReadFiles(field, names);
  std::erase_if(*paths, [&](const std::string& path) {
    return !read.contains(name_of(path));
  });
}

// Returns the files that say how the vocabulary is used: those in its directory
// and, if that is another one, those beside the weights to start from
// (TakeUnstated).
std::vector<std::string> FilesOnUse(const RunConfig& config,
                                    const std::string& vocabulary) {
  std::vector<std::string> paths =
      FilesBesideVocabulary(config.tokenizer.type, vocabulary);
  if (config.init.empty()) {
    return paths;
  }
  const absl::StatusOr<TokenizerFiles> trained = FindTokenizer(config.init);
  // Directories are compared, not their names: a resumed run may spell them in
  // another way.
  std::error_code ignored;
  if (!trained.ok() || trained->type != config.tokenizer.type ||
      trained->type == "huggingface" ||
      fs::equivalent(FolderOf(trained->vocabulary), FolderOf(vocabulary),
                     ignored)) {
    return paths;
  }
  if (absl::EndsWith(trained->vocabulary, ".json")) {
    paths.push_back(trained->vocabulary);
  }
  for (std::string& path :
       FilesBesideVocabulary(trained->type, trained->vocabulary)) {
    paths.push_back(std::move(path));
  }
  return paths;
}

// The samples to read of a file that another rank reads too.
constexpr FileDigestOptions kSamples = {
    .largest_whole = 0, .sample_bytes = uint64_t{1} << 16, .num_samples = 16};

// Computes the digests of `files`, several at once.
absl::Status ReadDigests(const std::vector<RunFile*>& files,
                         const FilesListener& listener) {
  uint64_t num_bytes = 0;
  for (const RunFile* file : files) {
    // A file without a size cannot be read either: DigestFile() returns why.
    std::error_code error;
    const uint64_t bytes = fs::file_size(file->path, error);
    num_bytes += error ? 0 : BytesToDigest(bytes);
  }
  return ReadInParallel(
      files.size(), num_bytes, listener,
      [&](size_t i, const DigestListener& report) -> absl::Status {
        ETC_ASSIGN_OR_RETURN(files[i]->digest,
                             DigestFile(files[i]->path, report));
        return absl::OkStatus();
      });
}

// Makes each rank read its share of the files, and all-gathers the digests.
absl::Status ReadSharded(const std::vector<RunFile*>& files,
                         const FilesListener& listener,
                         const DataGroup& group) {
  const auto owner = [&](size_t file) {
    return file % static_cast<size_t>(group.size);
  };
  std::vector<std::string> samples;
  const auto read_own = [&]() -> absl::Status {
    std::vector<RunFile*> own;
    for (size_t i = 0; i < files.size(); ++i) {
      if (static_cast<int64_t>(owner(i)) == group.rank) {
        own.push_back(files[i]);
      }
      ETC_ASSIGN_OR_RETURN(const FileDigest of_samples,
                           DigestFile(files[i]->path, nullptr, kSamples));
      samples.push_back(absl::StrCat(of_samples.bytes, " ", of_samples.digest));
    }
    return ReadDigests(own, listener);
  };
  // A rank that fails alone or was stopped tells the others, which wait for it.
  ETC_RETURN_IF_ERROR(group.Agree(read_own()));
  std::string mine;  // a line for each file: its samples, and its digest
  for (size_t i = 0; i < files.size(); ++i) {
    absl::StrAppend(&mine, samples[i], "\t", files[i]->digest.digest, "\n");
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> all, group.gather(mine));
  std::vector<RunFile*> others;
  for (size_t i = 0; i < files.size(); ++i) {
    if (static_cast<int64_t>(owner(i)) == group.rank) {
      continue;
    }
    const std::vector<std::string> lines =
        absl::StrSplit(all[owner(i)], '\n', absl::SkipEmpty());
    const std::vector<std::string> parts = absl::StrSplit(
        i < lines.size() ? lines[i] : "", '\t', absl::SkipEmpty());
    if (parts.size() == 2 && parts[0] == samples[i]) {
      std::error_code error;
      files[i]->digest = {.bytes = fs::file_size(files[i]->path, error),
                          .digest = parts[1]};
    } else {
      others.push_back(files[i]);
    }
  }
  return group.Agree(ReadDigests(others, listener));
}

}  // namespace

absl::StatusOr<RunFiles> FindRunFiles(const RunConfig& config,
                                      const FilesListener& listener,
                                      const DataGroup& group) {
  RunFiles files;
  absl::Status status;
  ForEachConfigField(config, [&](const std::string& name, const auto& field,
                                 const auto& value) {
    if constexpr (requires { FindFiles(value); }) {
      bool names_files = field.rule.names_files;
      if constexpr (requires { value == field.rule.no_file; }) {
        names_files = names_files && (field.rule.no_file.empty() ||
                                      value != field.rule.no_file);
      }
      if (!names_files || !status.ok()) {
        return;
      }
      absl::StatusOr<std::vector<std::string>> paths = FindFiles(value);
      if (!paths.ok()) {
        status =
            absl::Status(paths.status().code(),
                         absl::StrCat(name, ": ", paths.status().message()));
        return;
      }
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>,
                                   std::string>) {
        KeepReadFiles(name, &*paths);
      }
      std::vector<RunFile>& found = files[name];
      for (const std::string& path : *paths) {
        found.push_back({.path = path, .digest = {}});
      }
      if constexpr (requires { FilesBesideVocabulary(name, value); }) {
        if (name == "tokenizer.vocabulary") {
          for (const std::string& path : FilesOnUse(config, value)) {
            found.push_back({.path = path, .digest = {}});
          }
        }
      }
    }
  });
  ETC_RETURN_IF_ERROR(group.Agree(status));
  std::vector<RunFile*> all;
  for (auto& [field, found] : files) {
    for (RunFile& file : found) {
      all.push_back(&file);
    }
  }
  ETC_RETURN_IF_ERROR(group.size > 1 ? ReadSharded(all, listener, group)
                                     : ReadDigests(all, listener));
  return files;
}

}  // namespace etc
