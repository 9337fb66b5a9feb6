#include "etc/weights/weights.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/shape_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/head_plan.h"
#include "etc/weights/source_config.h"

namespace etc {
namespace {

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

// Sets the configuration and the fields that follow from it.
absl::Status FindConfig(const EtcConfig* assumed, WeightFile* file) {
  SourceWeights& source = file->source;
  const bool is_bert = IsBertStyle(source.names.style);
  absl::StatusOr<SourceConfig> found = absl::NotFoundError("");
  if (is_bert) {
    found = ReadBertSourceConfig(source.path, &source.names);
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
    source.hugging_face = found->hugging_face;
    file->warnings.insert(file->warnings.end(), found->warnings.begin(),
                          found->warnings.end());
  }
  if (is_bert && (!found.ok() || !found->is_bert)) {
    // Known is only the configuration of the model that they are loaded into.
    source.config = AsBert(source.config);
    source.config.segment_vocab_size = RowsOf(source, "token_type_embeddings");
    source.hugging_face.model_type = ModelTypeOf(source.names);
    source.first_position = FirstPosition(source.hugging_face);
    source.config.max_absolute_position_embeddings = std::max<int64_t>(
        0, RowsOf(source, "position_embeddings") - source.first_position);
  }
  if (!is_bert && found.ok() && found->is_bert) {
    return absl::InvalidArgumentError(absl::StrCat(
        source.path, ": the tensors are named by ",
        NameStyleDescription(source.names.style), ", but ", found->path,
        " is a configuration of BERT; expected etc_config.json beside them"));
  }
  return absl::OkStatus();
}

// Our files have the fields of HuggingFace in their metadata.
absl::Status FindHuggingFaceFields(WeightFile* file) {
  SourceWeights& source = file->source;
  if (source.names.style == NameStyle::kRealEtc) {
    ETC_ASSIGN_OR_RETURN(
        const HuggingFaceFields kept,
        HuggingFaceFieldsFromMetadata(file->tensors->metadata(), source.path));
    // transformers saves them in its config.json alone.
    if (kept != HuggingFaceFields()) {
      source.hugging_face = kept;
    }
  }
  const HuggingFaceFields& fields = source.hugging_face;
  const int64_t outputs = NumClassifierOutputs(source);
  if (outputs == 0 || fields.chooses()) {
    return absl::OkStatus();
  }
  if (!fields.labels_mistake.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        source.path,
        ": the labels of its classifier: ", fields.labels_mistake));
  }
  const auto labels = static_cast<int64_t>(fields.labels.size());
  if (labels > 0 && labels != outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.path, ": id2label should name the ", outputs,
                     " outputs of the classifier, but names ", labels));
  }
  return absl::OkStatus();
}

// Returns true if LibTorch can compute the strides of an empty tensor like
// [2^62, 0], for which it multiplies the other dimensions.
bool HasStrides(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t dimension : shape) {
    if (dimension > 1 && __builtin_mul_overflow(product, dimension, &product)) {
      return false;
    }
  }
  return true;
}

// Returns the reason why the tensor `source` cannot be copied as `copy` says,
// or an empty string.
std::string Mismatch(const TensorInfo& source, const TensorCopy& copy,
                     const torch::Tensor& destination) {
  std::vector<int64_t> expected = destination.sizes().vec();
  if (copy.transpose) {
    std::reverse(expected.begin(), expected.end());
  }
  if (!copy.rows.empty() && !source.shape.empty()) {
    const int64_t last = *std::max_element(copy.rows.begin(), copy.rows.end());
    if (last >= source.shape[0]) {
      return absl::StrCat("should have a row ", last, ", but has ",
                          source.shape[0], " rows");
    }
    expected[0] = source.shape[0];
  }
  if (source.shape != expected) {
    return absl::StrCat("should be ", ShapeText(expected), ", but is ",
                        ShapeText(source.shape));
  }
  const auto type = ScalarTypeOf(source.dtype);
  if (type == destination.scalar_type() ||
      (type.has_value() && at::isFloatingType(*type) &&
       destination.is_floating_point())) {
    return "";
  }
  const Dtype* wanted = DtypeOf(destination.scalar_type());
  return absl::StrCat("should be ",
                      wanted != nullptr ? wanted->name : "of another dtype",
                      ", but is ", source.dtype);
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

// The rows of `from` that are copied; `from` itself if all are.
torch::Tensor UsedRows(const TensorCopy& copy, const torch::Tensor& from) {
  if (copy.rows.empty()) {
    return from;
  }
  std::vector<int64_t> rows = copy.rows;
  std::erase_if(rows, [](int64_t row) { return row < 0; });
  return from.index_select(0, torch::tensor(rows, torch::kInt64));
}

// An error if an element of `from`, of the tensor `name` in `path`, is infinite
// or not a number, or becomes it in the dtype of `to`.
absl::Status CheckCopied(const std::string& path, const std::string& name,
                         const torch::Tensor& from, const torch::Tensor& to) {
  if (!from.is_floating_point() || from.numel() == 0) {
    return absl::OkStatus();
  }
  // aminmax does not know all of the shorter types.
  const torch::Tensor wide =
      from.scalar_type() == torch::kFloat64 ? from : from.to(torch::kFloat32);
  const auto [least, greatest] = torch::aminmax(wide);
  for (const torch::Tensor& extreme : {least, greatest}) {
    if (std::isfinite(extreme.to(to.scalar_type()).item<double>())) {
      continue;
    }
    ETC_RETURN_IF_ERROR(CheckFinite(path, {{name, wide}}));
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": tensor ", QuotedName(name), " has an element ",
                     extreme.item<double>(), ", which becomes infinite as ",
                     DtypeOf(to.scalar_type())->name));
  }
  return absl::OkStatus();
}

// Carries out copies that CheckCopies has passed.
absl::Status ReadAndCopy(const TensorReader& reader,
                         const std::vector<TensorCopy>& copies,
                         const NamedTensors& destination) {
  // A tensor that is copied to several places is read once.
  std::map<const TensorInfo*, torch::Tensor> read;
  std::vector<const torch::Tensor*> sources;
  for (const TensorCopy& copy : copies) {
    ETC_ASSIGN_OR_RETURN(const TensorInfo* source, reader.Find(copy.source));
    torch::Tensor& tensor = read[source];
    if (!tensor.defined()) {
      ETC_ASSIGN_OR_RETURN(tensor, reader.Read(copy.source));
    }
    sources.push_back(&tensor);
  }
  const torch::NoGradGuard no_grad;
  std::set<std::pair<const torch::Tensor*, std::vector<int64_t>>> checked;
  for (size_t i = 0; i < copies.size(); ++i) {
    if (checked.emplace(sources[i], copies[i].rows).second) {
      ETC_RETURN_IF_ERROR(CheckCopied(reader.path(), copies[i].source,
                                      UsedRows(copies[i], *sources[i]),
                                      destination.at(copies[i].target)));
    }
  }
  for (size_t i = 0; i < copies.size(); ++i) {
    torch::Tensor target = destination.at(copies[i].target);
    const torch::Tensor source =
        copies[i].transpose ? sources[i]->t() : *sources[i];
    if (copies[i].rows.empty()) {
      target.copy_(source);
    } else {
      CopyRows(copies[i].rows, source, target);
    }
  }
  return absl::OkStatus();
}

}  // namespace

const Dtype* DtypeOf(torch::ScalarType type) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.pytorch == torch::toString(type)) {
      return &dtype;
    }
  }
  return nullptr;
}

std::optional<torch::ScalarType> ScalarTypeOf(absl::string_view name) {
  const Dtype* dtype = FindDtype(name);
  constexpr auto kTypes = static_cast<int>(torch::ScalarType::NumOptions);
  for (int i = 0; i < kTypes && dtype != nullptr; ++i) {
    const auto type = static_cast<torch::ScalarType>(i);
    if (dtype->pytorch == torch::toString(type)) {
      return type;
    }
  }
  return std::nullopt;
}

std::string JoinFirst(const std::vector<std::string>& texts,
                      absl::string_view separator,
                      absl::string_view before_more) {
  constexpr size_t kShown = 5;
  const size_t shown = std::min(texts.size(), kShown);
  std::string joined = absl::StrJoin(
      texts.begin(), texts.begin() + static_cast<int64_t>(shown), separator);
  if (texts.size() > shown) {
    absl::StrAppend(&joined, before_more, texts.size() - shown, " more");
  }
  return joined;
}

absl::StatusOr<TensorReader> TensorReader::Open(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(std::unique_ptr<TensorSource> files,
                       OpenTensorSource(path));
  return TensorReader(std::move(files));
}

TensorReader::TensorReader(std::shared_ptr<const TensorSource> files)
    : files_(std::move(files)) {}

const std::string& TensorReader::path() const { return files_->path(); }

const std::vector<std::string>& TensorReader::Names() const {
  return files_->names();
}

const std::vector<std::string>& TensorReader::warnings() const {
  return files_->warnings();
}

const std::map<std::string, std::string>& TensorReader::metadata() const {
  return files_->metadata();
}

absl::StatusOr<const TensorInfo*> TensorReader::Find(
    const std::string& name) const {
  return files_->Find(name);
}

absl::StatusOr<std::vector<int64_t>> TensorReader::Shape(
    const std::string& name) const {
  ETC_ASSIGN_OR_RETURN(const TensorInfo* info, Find(name));
  return info->shape;
}

absl::StatusOr<torch::Tensor> TensorReader::Read(
    const std::string& name) const {
  ETC_ASSIGN_OR_RETURN(const TensorInfo* info, Find(name));
  const auto error = [&](auto... message) {
    return absl::InvalidArgumentError(
        absl::StrCat(path(), ": tensor ", QuotedName(name), " ", message...));
  };
  const auto type = ScalarTypeOf(info->dtype);
  if (!type.has_value()) {
    return error("is of dtype ", info->dtype, ", which cannot be read");
  }
  if (!HasStrides(info->shape)) {
    return error("has no elements, but too large a shape, ",
                 ShapeText(info->shape));
  }
  const torch::Tensor tensor =
      torch::empty(info->shape, torch::dtype(*type).device(torch::kCPU));
  auto* bytes = static_cast<char*>(tensor.data_ptr());
  ETC_RETURN_IF_ERROR(files_->Read(name, bytes, tensor.nbytes()));
  if (*type == torch::kBool) {
    for (size_t i = 0; i < tensor.nbytes(); ++i) {
      if (bytes[i] != 0 && bytes[i] != 1) {
        return error("is BOOL, but its element ", i, " is neither 0 nor 1");
      }
    }
  }
  return tensor;
}

absl::StatusOr<WeightFile> OpenWeights(const std::string& path,
                                       const EtcConfig* assumed) {
  ETC_ASSIGN_OR_RETURN(std::shared_ptr<const TensorSource> tensors,
                       OpenTensorSource(path));
  WeightFile file{.tensors = std::move(tensors), .source = {.path = path}};
  file.warnings = file.tensors->warnings();
  for (const std::string& name : file.tensors->NamesAndAliases()) {
    ETC_ASSIGN_OR_RETURN(const TensorInfo* info, file.tensors->Find(name));
    file.source.tensors[name] = *info;
  }
  ETC_ASSIGN_OR_RETURN(file.source.names, RecognizeNames(*file.tensors, path));
  ETC_RETURN_IF_ERROR(FindConfig(assumed, &file));
  ETC_RETURN_IF_ERROR(FindHuggingFaceFields(&file));
  return file;
}

absl::Status CheckCopies(const TensorReader& reader,
                         const std::vector<TensorCopy>& copies,
                         const NamedTensors& destination) {
  std::vector<std::string> mismatches;
  for (const TensorCopy& copy : copies) {
    const auto target = destination.find(copy.target);
    TORCH_CHECK(target != destination.end(), "there is no tensor ", copy.target,
                " to be loaded");
    TORCH_CHECK(copy.rows.empty() || (!copy.transpose &&
                                      static_cast<int64_t>(copy.rows.size()) ==
                                          target->second.size(0)),
                "rows should be given for each row of ", copy.target,
                ", and it should not be transposed");
    ETC_ASSIGN_OR_RETURN(const TensorInfo* source, reader.Find(copy.source));
    const std::string mismatch = Mismatch(*source, copy, target->second);
    if (!mismatch.empty()) {
      mismatches.push_back(
          absl::StrCat(QuotedName(copy.source), " ", mismatch));
    }
  }
  return mismatches.empty() ? absl::OkStatus()
                            : absl::InvalidArgumentError(absl::StrCat(
                                  reader.path(), ": tensor ",
                                  JoinFirst(mismatches, "; ", "; and ")));
}

absl::Status CopyTensors(const TensorReader& reader,
                         const std::vector<TensorCopy>& copies,
                         const NamedTensors& destination) {
  ETC_RETURN_IF_ERROR(CheckCopies(reader, copies, destination));
  return ReadAndCopy(reader, copies, destination);
}

absl::StatusOr<FilledEncoder> FillEncoder(const std::string& path,
                                          const EtcConfig& config,
                                          const NamedTensors& encoder) {
  ETC_ASSIGN_OR_RETURN(WeightFile file, OpenWeights(path, &config));
  ETC_ASSIGN_OR_RETURN(WeightPlan plan, PlanWeights(file.source, config));
  ETC_RETURN_IF_ERROR(
      CopyTensors(TensorReader(file.tensors), plan.Copies(), encoder));
  return FilledEncoder{.file = std::move(file), .plan = std::move(plan)};
}

}  // namespace etc
