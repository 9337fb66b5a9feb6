#include "tasks/analysis/comparison.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/analysis/analysis_files.h"

namespace etc {
namespace {

const char* KindOf(bool is_bert) { return is_bert ? "BERT" : "ETC"; }

// The mean over heads, NaN if one has no rows.
double MeanOverHeads(size_t heads, const std::function<double(size_t)>& value) {
  double sum = 0;
  for (size_t h = 0; h < heads; ++h) {
    sum += value(h);
  }
  return sum / static_cast<double>(heads);
}

double MedianOrNan(const StreamingHistogram& numbers) {
  return numbers.count() > 0 ? numbers.Quantile(0.5) : std::nan("");
}

// A number of a head in a layer of a population; for divergences the layer is
// the lower one.
using HeadNumber =
    std::function<double(const PopulationStatistics&, size_t l, size_t h)>;

// The measure of population `p` of all analyses.
ComparedMeasure MeasureOf(absl::Span<const AttentionAnalysis> analyses,
                          size_t p, const std::string& id, bool is_of_pairs,
                          const HeadNumber& number) {
  ComparedMeasure measure = {.id = id};
  const auto layers = static_cast<size_t>(analyses.front().layers);
  for (size_t l = 0; l + (is_of_pairs ? 1 : 0) < layers; ++l) {
    ComparedLayer layer = {.name = is_of_pairs
                                       ? absl::StrCat("L-", l + 1, "&", l)
                                       : absl::StrCat("L-", l)};
    for (const AttentionAnalysis& analysis : analyses) {
      const PopulationStatistics& population = analysis.populations[p];
      layer.values.push_back(
          MeanOverHeads(static_cast<size_t>(analysis.heads),
                        [&](size_t h) { return number(population, l, h); }));
    }
    measure.layers.push_back(std::move(layer));
  }
  return measure;
}

// The mass on the keys of that name; NaN if the population has none.
double MassOn(const std::string& keys, const PopulationStatistics& population,
              const HeadStatistics& head) {
  for (const KeyMass& mass : MassesOf(population, head)) {
    if (mass.keys == keys) {
      return mass.mass;
    }
  }
  return std::nan("");
}

// Names of the keys whose mass is compared: those of the first analysis.
std::vector<std::string> MassNames(const PopulationStatistics& population) {
  std::vector<std::string> names;
  for (const KeyMass& mass :
       MassesOf(population, population.heads.front().front())) {
    if (mass.share > 0 && mass.keys != population.other_name) {
      names.push_back(mass.keys);
    }
  }
  return names;
}

// A number of six significant digits; null for NaN.
nlohmann::ordered_json NumberOrNull(double value) {
  return std::isnan(value)
             ? nlohmann::ordered_json(nullptr)
             : nlohmann::ordered_json(std::strtod(
                   absl::StrFormat("%.6g", value).c_str(), nullptr));
}

}  // namespace

ModelShape ShapeOf(const AttentionAnalysis& analysis) {
  return {.is_bert = analysis.is_bert,
          .layers = analysis.layers,
          .heads = analysis.heads};
}

absl::Status CheckComparable(absl::Span<const ModelShape> shapes,
                             absl::Span<const std::string> names) {
  const ModelShape& first = shapes.front();
  for (size_t i = 1; i < shapes.size(); ++i) {
    const ModelShape& other = shapes[i];
    if (other.is_bert != first.is_bert) {
      return InvalidArgument(
          names[i], " is ", KindOf(other.is_bert), ", but ", names[0], " is ",
          KindOf(first.is_bert),
          ": models that are compared should be of one kind");
    }
    if (other.layers != first.layers) {
      return InvalidArgument(names[i], " has ", other.layers, " layers, but ",
                             names[0], " has ", first.layers,
                             ": differences are by layer");
    }
    if (other.heads != first.heads) {
      return InvalidArgument(names[i], " has ", other.heads, " heads, but ",
                             names[0], " has ", first.heads,
                             ": divergences are between heads of one index");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckComparable(absl::Span<const AttentionAnalysis> analyses,
                             absl::Span<const std::string> names) {
  std::vector<ModelShape> shapes;
  for (const AttentionAnalysis& analysis : analyses) {
    shapes.push_back(ShapeOf(analysis));
  }
  ETC_RETURN_IF_ERROR(CheckComparable(shapes, names));
  for (size_t i = 1; i < analyses.size(); ++i) {
    if (analyses[i].jsd_distance != analyses[0].jsd_distance) {
      const auto kind = [](const AttentionAnalysis& analysis) {
        return analysis.jsd_distance ? "their square roots (--jsd-distance)"
                                     : "divergences";
      };
      return InvalidArgument(names[i], " has ", kind(analyses[i]), ", but ",
                             names[0], " has ", kind(analyses[0]));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> ComparisonWarnings(
    absl::Span<const AttentionAnalysis> analyses) {
  const std::vector<std::string> names = ColumnNames(analyses);
  const AttentionAnalysis& first = analyses.front();
  std::vector<std::string> warnings;
  for (size_t i = 1; i < analyses.size(); ++i) {
    const AttentionAnalysis& other = analyses[i];
    if (other.data != first.data) {
      warnings.push_back(absl::StrCat(names[i], " is of ", other.data, ", ",
                                      names[0], " of ", first.data,
                                      ": other rows have other entropies"));
      continue;
    }
    for (size_t p = 0; p < first.populations.size(); ++p) {
      if (other.populations[p].rows != first.populations[p].rows) {
        warnings.push_back(
            absl::StrCat(names[i], " has ", other.populations[p].rows,
                         " rows, ", names[0], " ", first.populations[p].rows,
                         ": their examples, lengths or vocabularies differ"));
        break;
      }
    }
  }
  return warnings;
}

std::vector<std::string> ColumnNames(
    absl::Span<const AttentionAnalysis> analyses) {
  std::vector<std::string> names;
  std::set<std::string> modes;
  for (const AttentionAnalysis& analysis : analyses) {
    modes.insert(analysis.residual);
  }
  for (size_t i = 0; i < analyses.size(); ++i) {
    names.push_back(modes.size() == analyses.size()
                        ? analyses[i].residual
                        : absl::StrCat(i + 1, ": ", analyses[i].residual));
  }
  return names;
}

std::vector<ComparedPopulation> Compare(
    absl::Span<const AttentionAnalysis> analyses) {
  std::vector<ComparedPopulation> all;
  const AttentionAnalysis& first = analyses.front();
  for (size_t p = 0; p < first.populations.size(); ++p) {
    ComparedPopulation& compared = all.emplace_back();
    compared.name = first.populations[p].name;
    const auto add = [&](const std::string& id, bool is_of_pairs,
                         const HeadNumber& number) {
      compared.measures.push_back(
          MeasureOf(analyses, p, id, is_of_pairs, number));
    };
    add("entropy", false, [](const auto& population, size_t l, size_t h) {
      return MedianOrNan(population.heads[l][h].entropy);
    });
    add("entropy_normalised", false,
        [](const auto& population, size_t l, size_t h) {
          return MedianOrNan(population.heads[l][h].normalised);
        });
    if (first.layers > 1) {
      add("jsd", true, [](const auto& population, size_t l, size_t h) {
        return MedianOrNan(population.divergence[l][h]);
      });
    }
    for (const std::string& keys : MassNames(first.populations[p])) {
      add(absl::StrCat(keys, "_mass"), false,
          [&](const auto& population, size_t l, size_t h) {
            return MassOn(keys, population, population.heads[l][h]);
          });
    }
  }
  return all;
}

std::string ComparisonJson(absl::Span<const AttentionAnalysis> analyses) {
  using Json = nlohmann::ordered_json;
  const std::vector<std::string> names = ColumnNames(analyses);
  Json models = Json::array();
  for (size_t i = 0; i < analyses.size(); ++i) {
    models.push_back({{"name", names[i]},
                      {"checkpoint", analyses[i].checkpoint},
                      {"residual", analyses[i].residual},
                      {"layer_norm", analyses[i].layer_norm},
                      {"data", analyses[i].data},
                      {"examples", analyses[i].examples}});
  }
  Json populations = Json::array();
  for (const ComparedPopulation& population : Compare(analyses)) {
    Json measures = Json::object();
    for (const ComparedMeasure& measure : population.measures) {
      Json layers = Json::array();
      for (const ComparedLayer& layer : measure.layers) {
        Json values = Json::array();
        Json differences = Json::array();
        for (const double value : layer.values) {
          values.push_back(NumberOrNull(value));
          differences.push_back(NumberOrNull(value - layer.values.front()));
        }
        layers.push_back({{"layer", layer.name},
                          {"mean", values},
                          {"difference", differences}});
      }
      measures[measure.id] = layers;
    }
    populations.push_back({{"name", population.name}, {"measures", measures}});
  }
  const Json json = {{"format", "attention-comparison"},
                     {"version", 1},
                     {"models", models},
                     {"warnings", ComparisonWarnings(analyses)},
                     {"populations", populations}};
  return JsonText(json) + "\n";
}

std::string ComparisonCsv(absl::Span<const AttentionAnalysis> analyses) {
  std::string csv = "population,measure,layer,model,residual,mean,difference\n";
  const auto number = [](double value) {
    return std::isnan(value) ? "" : absl::StrFormat("%.6g", value);
  };
  for (const ComparedPopulation& population : Compare(analyses)) {
    for (const ComparedMeasure& measure : population.measures) {
      for (const ComparedLayer& layer : measure.layers) {
        for (size_t i = 0; i < layer.values.size(); ++i) {
          absl::StrAppend(&csv, population.name, ",", measure.id, ",",
                          layer.name, ",", i + 1, ",", analyses[i].residual,
                          ",", number(layer.values[i]), ",",
                          number(layer.values[i] - layer.values.front()), "\n");
        }
      }
    }
  }
  return csv;
}

}  // namespace etc
