#include "etc/weights/weights.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/bert_config.h"
#include "etc/weights/source_files.h"

namespace etc {
namespace {

bool IsBertStyle(NameStyle style) {
  return style == NameStyle::kGoogleBert || style == NameStyle::kHuggingFace;
}

// Rows of the table that BERT's code calls embeddings/`table`; 0 if there is
// none.
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

// Sets what the weights are of.
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
    // What is known is the model that they are for.
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

// Copies the rows that have a source.
void CopyRows(const std::vector<int64_t>& rows, const torch::Tensor& from,
              torch::Tensor to) {
  std::vector<int64_t> to_rows;
  std::vector<int64_t> from_rows;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= 0) {
      to_rows.push_back(static_cast<int64_t>(i));
      from_rows.push_back(rows[i]);
    }
  }
  to.index_copy_(0, torch::tensor(to_rows, torch::kInt64).to(to.device()),
                 from.index_select(0, torch::tensor(from_rows, torch::kInt64))
                     .to(to.options()));
}

const char* PrefixOf(NameStyle style) {
  switch (style) {
    case NameStyle::kRealEtc:
      return "encoder.";
    case NameStyle::kOfficialEtc:
      return "etc_document_bert/";
    case NameStyle::kGoogleBert:
      return "bert/";
    case NameStyle::kHuggingFace:
      return "bert.";
  }
  return "";
}

}  // namespace

absl::StatusOr<WeightFile> OpenWeights(const std::string& path,
                                       const EtcConfig* assumed) {
  ETC_ASSIGN_OR_RETURN(TensorReader reader, TensorReader::Open(path));
  WeightFile file{.reader = std::move(reader), .source = {.path = path}};
  file.warnings = file.reader.warnings();
  for (const std::string& name : file.reader.Names()) {
    ETC_ASSIGN_OR_RETURN(const TensorInfo* info,
                         file.reader.files().Find(name));
    file.source.tensors[name] = *info;
  }
  ETC_ASSIGN_OR_RETURN(file.source.names,
                       RecognizeNames(file.reader.Names(), path));
  ETC_RETURN_IF_ERROR(FindConfig(assumed, &file));
  return file;
}

absl::Status LoadPlannedWeights(const TensorReader& reader,
                                const WeightPlan& plan,
                                const NamedTensors& encoder) {
  std::vector<torch::Tensor> read;
  for (const WeightStep& step : plan.steps) {
    TORCH_CHECK(encoder.contains(step.target.name), "the encoder has no ",
                step.target.name, ", which the plan is for");
    torch::Tensor& tensor = read.emplace_back();
    if (!step.source.empty()) {
      ETC_ASSIGN_OR_RETURN(tensor, reader.Read(step.source));
    }
  }
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < read.size(); ++i) {
    const WeightStep& step = plan.steps[i];
    torch::Tensor destination = encoder.at(step.target.name);
    if (!read[i].defined()) {
      continue;
    }
    const torch::Tensor source = step.transpose ? read[i].t() : read[i];
    if (step.rows.empty()) {
      destination.copy_(source);
    } else {
      CopyRows(step.rows, source, destination);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<NamedTensors> TensorsInStyle(const NamedTensors& encoder,
                                            const EtcConfig& config,
                                            NameStyle style) {
  NamedTensors result;
  for (const EncoderParameter& parameter : EncoderParameters(config)) {
    const std::string& name = NameInStyle(parameter, style);
    if (name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(NameStyleDescription(style), " has no name for ",
                       parameter.name, ", which is none of BERT's"));
    }
    TORCH_CHECK(encoder.contains(parameter.name), "the encoder has no ",
                parameter.name);
    torch::Tensor tensor = encoder.at(parameter.name).detach();
    if (IsTransposedInStyle(parameter, style)) {
      tensor = tensor.t();
    }
    // ETC's code makes the position tables before it enters its scope (formats
    // spec 3.1).
    const bool is_outside = style == NameStyle::kOfficialEtc &&
                            parameter.role == ParameterRole::kPositionTable;
    const auto [entry, is_new] = result.emplace(
        absl::StrCat(is_outside ? "" : PrefixOf(style), name), tensor);
    if (!is_new && !torch::equal(entry->second, tensor)) {
      return absl::InvalidArgumentError(absl::StrCat(
          NameStyleDescription(style), " has one tensor, ", entry->first,
          ", for what differs in this model: ", parameter.name,
          " and another of the same kind"));
    }
  }
  return result;
}

}  // namespace etc
