#include "etc/weights/weights.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/source_config.h"

namespace etc {
namespace {

// The token table, by whose name a style is recognised.
struct Anchor {
  NameStyle style;
  const char* token_table;
  char separator;  // ends a prefix
};

constexpr Anchor kAnchors[] = {
    {NameStyle::kRealEtc, "embedding.token.weight", '.'},
    {NameStyle::kOfficialEtc, "token_emb_lookup/embedding_table", '/'},
    {NameStyle::kGoogleBert, "embeddings/word_embeddings", '/'},
    {NameStyle::kHuggingFace, "embeddings.word_embeddings.weight", '.'},
};

constexpr char kObjectGraph[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

// All but the last component of a name, and that.
std::pair<absl::string_view, absl::string_view> SplitLast(
    absl::string_view name, char separator) {
  const size_t at = name.rfind(separator);
  return at == absl::string_view::npos
             ? std::pair(absl::string_view(), name)
             : std::pair(name.substr(0, at + 1), name.substr(at + 1));
}

// The name as EncoderParameters spells it. Older HuggingFace files call the
// last component of LayerNorms as TensorFlow does (doc/formats.md 3.3).
std::string Respelt(NameStyle style, absl::string_view name) {
  if (style == NameStyle::kHuggingFace) {
    const auto [stem, last] = SplitLast(name, '.');
    if (last == "gamma" || last == "beta") {
      return absl::StrCat(stem, last == "gamma" ? "weight" : "bias");
    }
  }
  return std::string(name);
}

absl::Status NotRecognized(const std::vector<std::string>& names,
                           const std::string& source) {
  if (std::find(names.begin(), names.end(), kObjectGraph) != names.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        source,
        ": an object-based TensorFlow 2 checkpoint, whose keys are paths of "
        "attributes; expected one with the names of variables, as TensorFlow 1 "
        "writes them"));
  }
  std::vector<std::string> tables;
  for (const Anchor& anchor : kAnchors) {
    tables.push_back(absl::StrCat(anchor.token_table, " (",
                                  NameStyleDescription(anchor.style), ")"));
  }
  const std::string first =
      names.empty() ? "none at all" : QuotedName(names.front());
  return absl::InvalidArgumentError(absl::StrCat(
      source, ": expected a token table called ", absl::StrJoin(tables, ", "),
      ", with or without a prefix, but found ", names.size(),
      " other tensors, the first ", first));
}

bool IsBertStyle(NameStyle style) {
  return style == NameStyle::kGoogleBert || style == NameStyle::kHuggingFace;
}

// Rows of the table that BERT's code calls embeddings/`table`; 0 without it.
int64_t RowsOf(const SourceWeights& source, const std::string& table) {
  for (const std::string& name :
       {"embeddings/" + table, "embeddings." + table + ".weight"}) {
    const auto stored = source.names.stored_as.find(name);
    if (stored != source.names.stored_as.end()) {
      const auto& shape = source.tensors.at(stored->second).shape;
      return shape.empty() ? 0 : shape[0];
    }
  }
  return 0;
}

// Sets the configuration and what follows from it.
absl::Status FindConfig(const EtcConfig* assumed, WeightFile* file) {
  SourceWeights& source = file->source;
  const bool is_bert = IsBertStyle(source.names.style);
  absl::StatusOr<SourceConfig> found = absl::NotFoundError("");
  if (is_bert) {
    found = ReadBertSourceConfig(source.path);
  }
  if (absl::IsNotFound(found.status())) {
    found = ReadSourceConfig(source.path);
  }
  if (!found.ok() &&
      !(absl::IsNotFound(found.status()) && assumed != nullptr)) {
    return found.status();
  }
  source.config = found.ok() ? found->config : *assumed;
  if (found.ok()) {
    source.first_position = found->first_position;
    file->warnings.insert(file->warnings.end(), found->warnings.begin(),
                          found->warnings.end());
  }
  if (is_bert && (!found.ok() || !found->is_bert)) {
    // Known is only the configuration of the model that they are loaded into.
    source.config = AsBert(source.config);
    source.config.segment_vocab_size = RowsOf(source, "token_type_embeddings");
    source.config.max_absolute_position_embeddings =
        RowsOf(source, "position_embeddings");
  }
  if (!is_bert && found.ok() && found->is_bert) {
    return absl::InvalidArgumentError(absl::StrCat(
        source.path, ": the tensors are named by ",
        NameStyleDescription(source.names.style), ", but ", found->path,
        " is a configuration of BERT; expected etc_config.json beside them"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RecognizedNames> RecognizeNames(
    const std::vector<std::string>& names, const std::string& source) {
  RecognizedNames result;
  std::string found;
  for (const Anchor& anchor : kAnchors) {
    for (const std::string& name : names) {
      absl::string_view prefix = name;
      if (!absl::ConsumeSuffix(&prefix, anchor.token_table) ||
          !(prefix.empty() || prefix.back() == anchor.separator)) {
        continue;
      }
      if (!found.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat(source, ": expected one token table, but found ",
                         QuotedName(found), " and ", QuotedName(name)));
      }
      found = name;
      result.style = anchor.style;
      result.prefix = std::string(prefix);
    }
  }
  if (found.empty()) {
    return NotRecognized(names, source);
  }
  for (const std::string& name : names) {
    absl::string_view rest = name;
    // ETC's position tables may be outside of the model's scope (
    // doc/formats.md 3.1).
    const bool is_outside = result.style == NameStyle::kOfficialEtc &&
                            absl::StartsWith(name, "position_emb_lookup_");
    if (!absl::ConsumePrefix(&rest, result.prefix) && !is_outside) {
      continue;
    }
    const auto [entry, is_new] =
        result.stored_as.emplace(Respelt(result.style, rest), name);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": the tensors ", QuotedName(entry->second),
                       " and ", QuotedName(name), " are the same one twice"));
    }
  }
  return result;
}

bool IsBookkeeping(absl::string_view name) {
  static constexpr std::array<absl::string_view, 13> kLast = {
      "adam_m",      "adam_v",      "lamb_m",      "lamb_v",   "m",
      "v",           "Adam",        "Adam_1",      "Momentum", "global_step",
      "beta1_power", "beta2_power", "save_counter"};
  const absl::string_view last = SplitLast(name, '/').second;
  if (std::find(kLast.begin(), kLast.end(), last) != kLast.end()) {
    return true;
  }
  for (const absl::string_view component : absl::StrSplit(name, '/')) {
    if (absl::StartsWith(component, "AdamWeightDecayOptimizer") ||
        absl::StartsWith(component, "LAMBOptimizer")) {
      return true;
    }
  }
  return absl::EndsWith(name, "embeddings.position_ids") ||
         absl::EndsWith(name, "embeddings.token_type_ids");
}

absl::StatusOr<WeightFile> OpenWeights(const std::string& path,
                                       const EtcConfig* assumed) {
  ETC_ASSIGN_OR_RETURN(std::shared_ptr<const TensorSource> tensors,
                       OpenTensorSource(path));
  WeightFile file{.tensors = std::move(tensors), .source = {.path = path}};
  file.warnings = file.tensors->warnings();
  for (const std::string& name : file.tensors->names()) {
    ETC_ASSIGN_OR_RETURN(const TensorInfo* info, file.tensors->Find(name));
    file.source.tensors[name] = *info;
  }
  ETC_ASSIGN_OR_RETURN(file.source.names,
                       RecognizeNames(file.tensors->names(), path));
  ETC_RETURN_IF_ERROR(FindConfig(assumed, &file));
  return file;
}

}  // namespace etc
