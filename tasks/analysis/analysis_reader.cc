#include "tasks/analysis/analysis_reader.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/analysis/streaming_histogram.h"

namespace etc {
namespace {

using Json = nlohmann::json;

// Limits of what is allocated for a file.
constexpr int64_t kMostBinsOfFiles = 100'000;
constexpr int64_t kMostLayers = 1'000;
constexpr int64_t kMostHeads = 1'000;
// Largest count of a bin: a thousand of them, of a thousand heads, have a sum
// in int64_t.
constexpr uint64_t kMostInBin = uint64_t{1} << 43;

// The counts of pairs [count, bins in a row that have it].
absl::StatusOr<std::vector<int64_t>> CountsOf(const Json& runs,
                                              const std::string& where) {
  std::vector<int64_t> counts;
  const auto is_count = [](const Json& json) {
    return json.is_number_unsigned() && json.get<uint64_t>() <= kMostInBin;
  };
  for (const Json& run : runs.is_array() ? runs : Json::array()) {
    if (!run.is_array() || run.size() != 2 || !is_count(run.front()) ||
        !is_count(run.back()) ||
        run.back().get<int64_t>() >
            kMostBinsOfFiles - static_cast<int64_t>(counts.size())) {
      return InvalidArgument(
          where, " should have pairs of a count up to 2^43 and up to ",
          kMostBinsOfFiles, " bins, but has ", JsonText(run));
    }
    counts.insert(counts.end(), static_cast<size_t>(run.back().get<int64_t>()),
                  run.front().get<int64_t>());
  }
  if (counts.empty()) {
    return InvalidArgument(where, " should be a list of counts, but has none");
  }
  return counts;
}

// A cell of attention.json, with the bins of `like`.
absl::StatusOr<StreamingHistogram> CellFrom(const Json& json,
                                            const std::string& where,
                                            const StreamingHistogram& like) {
  JsonObjectReader cell(json, where);
  int64_t n = 0;
  cell.Required("n", &n);
  HistogramParts parts;
  if (n > 0) {
    cell.Required("mean", &parts.mean);
    cell.Required("std", &parts.standard_deviation);
    cell.Required("min", &parts.least);
    cell.Required("max", &parts.greatest);
  }
  const Json* hist = cell.Raw("hist", /*required=*/true);
  ETC_RETURN_IF_ERROR(cell.status());
  JsonObjectReader bins(*hist, cell.Where("hist"));
  bins.Required("lo", &parts.lo);
  bins.Required("hi", &parts.hi);
  const Json* counts = bins.Raw("counts", /*required=*/true);
  const double slack = 1e-9 * (like.hi() - like.lo());
  if (bins.ok() && !(std::abs(parts.lo - like.lo()) <= slack &&
                     std::abs(parts.hi - like.hi()) <= slack)) {
    bins.Fail("hi",
              absl::StrCat("and lo should be ", like.hi(), " and ", like.lo(),
                           ", but are ", parts.hi, " and ", parts.lo));
  }
  if (bins.ok()) {
    bins.Assign(CountsOf(*counts, bins.Where("counts")), &parts.counts);
  }
  ETC_RETURN_IF_ERROR(bins.status());
  if (parts.counts.size() != like.counts().size()) {
    return InvalidArgument(where, ".hist.counts should have ",
                           like.counts().size(), " bins, but has ",
                           parts.counts.size());
  }
  StreamingHistogram histogram(std::move(parts));
  if (histogram.count() != n) {
    return InvalidArgument(where, ".hist.counts should add up to n = ", n,
                           ", but make ", histogram.count());
  }
  return histogram;
}

// Calls visit(json, where, layer, head) for each element of a list of `layers`
// lists of `heads`.
template <typename Visit>
absl::Status ForEachCell(const Json& lists, const std::string& where,
                         int64_t layers, int64_t heads, Visit visit) {
  const auto check = [](const Json& json, int64_t size,
                        const std::string& place) -> absl::Status {
    if (!json.is_array() || static_cast<int64_t>(json.size()) != size) {
      return InvalidArgument(
          place, " should be a list of ", size, ", but ",
          json.is_array() ? absl::StrCat("has ", json.size()) : "is none");
    }
    return absl::OkStatus();
  };
  ETC_RETURN_IF_ERROR(check(lists, layers, where));
  for (size_t l = 0; l < lists.size(); ++l) {
    const std::string layer = absl::StrCat(where, "[", l, "]");
    ETC_RETURN_IF_ERROR(check(lists[l], heads, layer));
    for (size_t h = 0; h < lists[l].size(); ++h) {
      ETC_RETURN_IF_ERROR(
          visit(lists[l][h], absl::StrCat(layer, "[", h, "]"), l, h));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<KeyMass> MassFrom(const Json& json, const std::string& where) {
  JsonObjectReader reader(json, where);
  KeyMass mass;
  reader.Required("mass", &mass.mass);
  reader.Required("share", &mass.share);
  ETC_RETURN_IF_ERROR(reader.status());
  return mass;
}

// Adds the sums of which MassesOf gives the means.
absl::Status AddMasses(const Json& json, const std::string& where,
                       PopulationStatistics* population, HeadStatistics* head) {
  JsonObjectReader reader(json, where);
  const auto add = [&](const std::string& name, int64_t rows, double* mass,
                       double* share) {
    const Json* found = reader.Raw(name, /*required=*/true);
    if (found != nullptr) {
      KeyMass mean;
      reader.Assign(MassFrom(*found, reader.Where(name)), &mean);
      *mass = mean.mass * static_cast<double>(rows);
      *share = mean.share * static_cast<double>(rows);
    }
  };
  const int64_t rows = head->entropy.count();
  RowSums* sums = &head->sums;
  if (!population->other_name.empty()) {
    add(population->own_name, rows, &sums->own_mass, &sums->own_share);
  }
  if (population->rows_linked > 0) {
    add("linked", population->rows_linked, &sums->linked_mass,
        &population->linked_share);
  }
  for (size_t k = 0; k < population->kinds.size(); ++k) {
    add(population->kinds[k], rows, &sums->kind_mass[k],
        &population->kind_share[k]);
  }
  return reader.status();
}

// The cells of all heads of a population that has its sizes.
absl::Status AddCells(const Json& json, const std::string& where,
                      PopulationStatistics* population) {
  const auto layers = static_cast<int64_t>(population->heads.size());
  const auto heads = static_cast<int64_t>(population->heads.front().size());
  const auto cells = [&](const char* field, int64_t rows, auto at) {
    return ForEachCell(
        json.value(field, Json()), absl::StrCat(where, ".", field), rows, heads,
        [&](const Json& cell, const std::string& place, size_t l,
            size_t h) -> absl::Status {
          StreamingHistogram* numbers = at(l, h);
          ETC_ASSIGN_OR_RETURN(*numbers, CellFrom(cell, place, *numbers));
          return absl::OkStatus();
        });
  };
  ETC_RETURN_IF_ERROR(cells("entropy", layers, [&](size_t l, size_t h) {
    return &population->heads[l][h].entropy;
  }));
  ETC_RETURN_IF_ERROR(cells(
      "entropy_normalised", layers,
      [&](size_t l, size_t h) { return &population->heads[l][h].normalised; }));
  ETC_RETURN_IF_ERROR(cells("jsd", layers - 1, [&](size_t l, size_t h) {
    return &population->divergence[l][h];
  }));
  return ForEachCell(
      json.value("blocks", Json()), absl::StrCat(where, ".blocks"), layers,
      heads,
      [&](const Json& block, const std::string& place, size_t l, size_t h) {
        HeadStatistics* head = &population->heads[l][h];
        if (head->entropy.count() == 0) {
          return absl::OkStatus();
        }
        return AddMasses(
            block.is_object() ? block.value("masses", Json()) : Json(),
            absl::StrCat(place, ".masses"), population, head);
      });
}

// Checks that the cells of entropy are those of as many heads as the file says,
// before anything is allocated for them.
absl::Status CheckEntropy(const Json& json, const std::string& where,
                          const PopulationShape& shape) {
  const HeadStatistics like(std::log(static_cast<double>(shape.max_keys)));
  return ForEachCell(json.value("entropy", Json()),
                     absl::StrCat(where, ".entropy"), shape.layers, shape.heads,
                     [&](const Json& cell, const std::string& place,
                         size_t /*l*/, size_t /*h*/) {
                       return CellFrom(cell, place, like.entropy).status();
                     });
}

absl::StatusOr<PopulationStatistics> PopulationFrom(const Json& json,
                                                    const std::string& where,
                                                    int64_t layers,
                                                    int64_t heads) {
  JsonObjectReader reader(json, where);
  PopulationShape shape = {.layers = layers, .heads = heads};
  reader.Required("name", &shape.name);
  reader.Required("max_keys", &shape.max_keys);
  reader.Required("kinds", &shape.kinds);
  int64_t rows = 0;
  int64_t single = 0;
  int64_t linked = 0;
  reader.Required("rows", &rows);
  reader.Required("rows_single_key", &single);
  reader.Required("rows_linked", &linked);
  if (reader.ok() && shape.name != "all" && shape.name != "long" &&
      shape.name != "global") {
    reader.Fail("name", "should be \"all\", \"long\" or \"global\"");
  }
  if (reader.ok() && shape.max_keys < 2) {
    reader.Fail("max_keys", "should be at least 2");
  }
  ETC_RETURN_IF_ERROR(reader.status());
  ETC_RETURN_IF_ERROR(CheckEntropy(json, where, shape));
  PopulationStatistics population = MakePopulation(shape);
  population.rows = rows;
  population.rows_single_key = single;
  population.rows_linked = linked;
  ETC_RETURN_IF_ERROR(AddCells(json, where, &population));
  return population;
}

absl::Status ReadModel(const Json& json, const std::string& where,
                       AttentionAnalysis* analysis) {
  JsonObjectReader reader(json, where);
  std::string kind;
  reader.Required("kind", &kind);
  reader.Required("layers", &analysis->layers);
  reader.Required("heads", &analysis->heads);
  reader.Required("residual", &analysis->residual);
  reader.Required("layer_norm", &analysis->layer_norm);
  reader.Required("checkpoint", &analysis->checkpoint);
  for (const auto& [field, number, most] :
       {std::tuple("layers", analysis->layers, kMostLayers),
        std::tuple("heads", analysis->heads, kMostHeads)}) {
    if (reader.ok() && (number < 1 || number > most)) {
      reader.Fail(field, absl::StrCat("should be from 1 to ", most, ", but is ",
                                      number));
    }
  }
  if (reader.ok() && kind != "bert" && kind != "etc") {
    reader.Fail("kind", absl::StrCat("should be \"bert\" or \"etc\", but is \"",
                                     kind, "\""));
  }
  analysis->is_bert = kind == "bert";
  return reader.status();
}

absl::Status ReadData(const Json& json, const std::string& where,
                      AttentionAnalysis* analysis) {
  JsonObjectReader reader(json, where);
  reader.Required("name", &analysis->data);
  reader.Required("examples", &analysis->examples);
  reader.Optional("masked_input", &analysis->masked_input);
  reader.Optional("max_rows", &analysis->max_rows);
  return reader.status();
}

absl::Status ReadPopulations(const Json& json, const std::string& where,
                             AttentionAnalysis* analysis) {
  const size_t expected = analysis->is_bert ? 1 : 2;
  if (!json.is_array() || json.size() != expected) {
    return InvalidArgument(where, " should be a list of ", expected,
                           ", but is ", json.is_array() ? "of " : "none",
                           json.is_array() ? absl::StrCat(json.size()) : "");
  }
  for (size_t p = 0; p < json.size(); ++p) {
    ETC_ASSIGN_OR_RETURN(
        PopulationStatistics population,
        PopulationFrom(json[p], absl::StrCat(where, "[", p, "]"),
                       analysis->layers, analysis->heads));
    analysis->populations.push_back(std::move(population));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AttentionAnalysis> ParseAnalysis(absl::string_view text,
                                                const std::string& source) {
  ETC_ASSIGN_OR_RETURN(const Json json, ParseJson(text, source));
  JsonObjectReader reader(json, source);
  std::string format;
  int64_t version = 0;
  std::string scale;
  reader.Required("format", &format);
  reader.Required("version", &version);
  if (reader.ok() && (format != "attention-analysis" || version != 1)) {
    return InvalidArgument(
        source, " should be an attention-analysis of version 1, but is \"",
        format, "\" of version ", version);
  }
  reader.Required("colour_scale", &scale);
  const Json* model = reader.Raw("model", /*required=*/true);
  const Json* data = reader.Raw("data", /*required=*/true);
  const Json* bases = reader.Raw("log_base", /*required=*/true);
  const Json* populations = reader.Raw("populations", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.status());
  AttentionAnalysis analysis;
  analysis.normalised_colours = scale == "normalised";
  ETC_RETURN_IF_ERROR(ReadModel(*model, reader.Where("model"), &analysis));
  ETC_RETURN_IF_ERROR(ReadData(*data, reader.Where("data"), &analysis));
  JsonObjectReader base(*bases, reader.Where("log_base"));
  std::string kind;
  base.Required("jsd_kind", &kind);
  ETC_RETURN_IF_ERROR(base.status());
  analysis.jsd_distance = kind == "distance";
  ETC_RETURN_IF_ERROR(
      ReadPopulations(*populations, reader.Where("populations"), &analysis));
  return analysis;
}

absl::StatusOr<AttentionAnalysis> ReadAnalysis(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const bool is_directory, IsDirectory(path));
  const std::string file =
      is_directory ? absl::StrCat(path, "/attention.json") : path;
  const absl::StatusOr<std::string> text = ReadFile(file);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(
        file,
        " should be an analysis that `realetc attention` wrote, but "
        "there is none; to analyse checkpoints, give --data or --text"));
  }
  ETC_RETURN_IF_ERROR(text.status());
  return ParseAnalysis(*text, file);
}

}  // namespace etc
