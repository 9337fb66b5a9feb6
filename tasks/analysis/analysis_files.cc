#include "tasks/analysis/analysis_files.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_text.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::array<double, 5> kCellQuantiles = {0.05, 0.25, 0.5, 0.75, 0.95};

// A number of six significant digits.
double Rounded(double value) {
  return std::strtod(absl::StrFormat("%.6g", value).c_str(), nullptr);
}

// Counts as pairs [count, bins in a row that have it].
OrderedJson RunsOf(const std::vector<int64_t>& counts) {
  OrderedJson runs = OrderedJson::array();
  for (size_t begin = 0; begin < counts.size();) {
    size_t end = begin + 1;
    while (end < counts.size() && counts[end] == counts[begin]) {
      ++end;
    }
    runs.push_back({counts[begin], end - begin});
    begin = end;
  }
  return runs;
}

OrderedJson CellOf(const StreamingHistogram& numbers) {
  const bool any = numbers.count() > 0;
  const auto or_null = [&](double value) {
    return any ? OrderedJson(Rounded(value)) : OrderedJson(nullptr);
  };
  OrderedJson cell = {{"n", numbers.count()},
                      {"mean", or_null(numbers.mean())},
                      {"std", or_null(numbers.standard_deviation())},
                      {"min", or_null(numbers.least())},
                      {"max", or_null(numbers.greatest())}};
  OrderedJson quantiles = OrderedJson::array();
  for (const double share : kCellQuantiles) {
    quantiles.push_back(any ? or_null(numbers.Quantile(share))
                            : OrderedJson(nullptr));
  }
  cell["q"] = quantiles;
  cell["hist"] = {{"lo", numbers.lo()},
                  {"hi", numbers.hi()},
                  {"counts", RunsOf(numbers.counts())}};
  return cell;
}

OrderedJson Coloured(OrderedJson cell, bool any, MedianColour colour) {
  cell["colour"] = any ? OrderedJson(ColourName(colour)) : OrderedJson(nullptr);
  return cell;
}

// A list for each layer of `layers`, of `make(head)` for each head.
template <typename Layers, typename Make>
OrderedJson EachHead(const Layers& layers, Make make) {
  OrderedJson all = OrderedJson::array();
  for (const auto& heads : layers) {
    OrderedJson row = OrderedJson::array();
    for (const auto& head : heads) {
      row.push_back(make(head));
    }
    all.push_back(row);
  }
  return all;
}

// Means over the counted rows of a head.
OrderedJson MeansOf(const PopulationStatistics& population,
                    const HeadStatistics& head) {
  const auto rows = static_cast<double>(head.entropy.count());
  if (rows == 0) {
    return nullptr;
  }
  const RowSums& sums = head.sums;
  const auto mean = [&](double sum) { return Rounded(sum / rows); };
  OrderedJson means = {
      {"effective_keys", Rounded(std::exp(head.entropy.Quantile(0.5)))},
      {"top_1", mean(sums.top_1)},
      {"top_8", mean(sums.top_8)}};
  if (!population.other_name.empty()) {
    means["own_mass"] = mean(sums.own_mass);
    means["own_share"] = mean(sums.own_share);
    means["own_lift"] =
        sums.own_share > 0
            ? OrderedJson(Rounded(sums.own_mass / sums.own_share))
            : OrderedJson(nullptr);
    means["entropy_between"] = mean(sums.between);
    means["entropy_own"] = mean(sums.own_entropy);
    means["entropy_other"] = mean(sums.other_entropy);
    means["own_mass_cell"] = CellOf(head.own_mass);
  }
  OrderedJson masses = OrderedJson::object();
  for (const KeyMass& mass : MassesOf(population, head)) {
    masses[mass.keys] = {
        {"mass", Rounded(mass.mass)},
        {"share", Rounded(mass.share)},
        {"lift", mass.share > 0 ? OrderedJson(Rounded(mass.lift()))
                                : OrderedJson(nullptr)}};
  }
  means["masses"] = masses;
  if (population.radius > 0) {
    means["self"] = mean(MassAt(sums, 0));
    means["previous"] = mean(MassAt(sums, -1));
    means["next"] = mean(MassAt(sums, 1));
    means["mean_abs_distance"] = Rounded(MeanDistance(sums));
    if (!population.other_name.empty()) {
      means["edge_share"] = Rounded(EdgeShare(sums));
    }
    OrderedJson by_offset = OrderedJson::array();
    for (const double mass : sums.by_offset) {
      by_offset.push_back(mean(mass));
    }
    means["mass_by_offset"] = by_offset;
  }
  return means;
}

// Entropy by the classes of rows; null without classes.
OrderedJson ByClassJson(const PopulationStatistics& population,
                        std::vector<double> RowSums::*member,
                        const std::vector<int64_t>& rows,
                        const OrderedJson& from) {
  if (rows.empty()) {
    return nullptr;
  }
  return {
      {"from", from},
      {"rows", rows},
      {"entropy", EachHead(population.heads, [&](const HeadStatistics& head) {
         OrderedJson means = OrderedJson::array();
         for (const double mean : MeanByClass(head, member, rows)) {
           means.push_back(std::isnan(mean) ? OrderedJson(nullptr)
                                            : OrderedJson(Rounded(mean)));
         }
         return means;
       })}};
}

// [pair of layers][head][head of the layer below]; null without rows.
OrderedJson SimilarityJson(const PopulationStatistics& population) {
  if (population.rows_sampled == 0) {
    return nullptr;
  }
  OrderedJson pairs = OrderedJson::array();
  for (size_t l = 0; l < population.similarity.size(); ++l) {
    const size_t heads = population.heads[l].size();
    OrderedJson matrix = OrderedJson::array();
    for (size_t i = 0; i < heads; ++i) {
      OrderedJson row = OrderedJson::array();
      for (size_t j = 0; j < heads; ++j) {
        row.push_back(Rounded(MeanSimilarity(population, l, i, j)));
      }
      matrix.push_back(row);
    }
    pairs.push_back(matrix);
  }
  return {{"rows", population.rows_sampled}, {"jsd", pairs}};
}

OrderedJson PopulationJson(const AttentionAnalysis& analysis,
                           const PopulationStatistics& population) {
  OrderedJson json = {{"name", population.name},
                      {"own_block", population.own_name},
                      {"other_block", population.other_name.empty()
                                          ? OrderedJson(nullptr)
                                          : OrderedJson(population.other_name)},
                      {"max_keys", population.max_keys},
                      {"radius", population.radius},
                      {"rows", population.rows},
                      {"rows_single_key", population.rows_single_key},
                      {"rows_linked", population.rows_linked},
                      {"kinds", population.kinds}};
  json["entropy"] = EachHead(population.heads, [&](const HeadStatistics& head) {
    const bool any = head.entropy.count() > 0;
    return Coloured(CellOf(head.entropy), any,
                    any ? EntropyColour(analysis, head) : MedianColour::kBlue);
  });
  json["entropy_normalised"] = EachHead(
      population.heads,
      [](const HeadStatistics& head) { return CellOf(head.normalised); });
  json["jsd"] = EachHead(
      population.divergence, [&](const StreamingHistogram& divergence) {
        const bool any = divergence.count() > 0;
        return Coloured(
            CellOf(divergence), any,
            any ? DivergenceColour(analysis, divergence) : MedianColour::kBlue);
      });
  OrderedJson order = OrderedJson::array();
  for (const std::vector<HeadStatistics>& heads : population.heads) {
    order.push_back(HeadOrder(heads));
  }
  json["order"] = order;
  json["blocks"] = EachHead(population.heads, [&](const HeadStatistics& head) {
    return MeansOf(population, head);
  });
  OrderedJson positions = OrderedJson::array();
  for (int64_t c = 0; c < kPositionClasses; ++c) {
    positions.push_back(Rounded(static_cast<double>(c) / kPositionClasses));
  }
  OrderedJson sentences = OrderedJson::array();
  for (int64_t c = 0; c < kSentenceClasses; ++c) {
    sentences.push_back(int64_t{1} << c);
  }
  json["by_position"] = ByClassJson(population, &RowSums::entropy_by_position,
                                    population.rows_by_position, positions);
  json["by_sentence_length"] =
      ByClassJson(population, &RowSums::entropy_by_sentence,
                  population.rows_by_sentence, sentences);
  json["similarity"] = SimilarityJson(population);
  return json;
}

OrderedJson OrNull(const std::optional<double>& number) {
  return number.has_value() ? OrderedJson(Rounded(*number))
                            : OrderedJson(nullptr);
}

OrderedJson ScoresJson(const AttentionAnalysis& analysis) {
  OrderedJson layers = OrderedJson::array();
  for (const std::vector<ScoreDeviations>& blocks : analysis.scores) {
    OrderedJson layer = OrderedJson::object();
    for (const ScoreDeviations& block : blocks) {
      layer[block.block] = {{"pairs", block.pairs},
                            {"std_new", Rounded(block.new_scores)},
                            {"std_carried", OrNull(block.carried_scores)},
                            {"logit_ratio", OrNull(block.logit_ratio)}};
      // Nothing is not a correlation of 0.
      if (!block.correlations.empty()) {
        OrderedJson heads = OrderedJson::array();
        for (const std::optional<double>& correlation : block.correlations) {
          heads.push_back(OrNull(correlation));
        }
        layer[block.block]["correlation"] = heads;
      }
    }
    layers.push_back(layer);
  }
  return layers;
}

// "0.1,0.2,0.3" of a cell: median, mean and deviation; empty without rows.
std::string CsvNumbers(const StreamingHistogram& numbers) {
  return numbers.count() == 0
             ? ",,"
             : absl::StrFormat("%.6g,%.6g,%.6g", numbers.Quantile(0.5),
                               numbers.mean(), numbers.standard_deviation());
}

}  // namespace

const char* ColourName(MedianColour colour) {
  switch (colour) {
    case MedianColour::kBlue:
      return "BLUE";
    case MedianColour::kYellow:
      return "YELLOW";
    case MedianColour::kRed:
      return "RED";
  }
  return "";
}

std::string AnalysisJson(const AttentionAnalysis& analysis) {
  int64_t rows = 0;
  int64_t single = 0;
  for (const PopulationStatistics& population : analysis.populations) {
    rows += population.rows;
    single += population.rows_single_key;
  }
  OrderedJson json = {
      {"format", "attention-analysis"},
      {"version", 1},
      {"model",
       {{"kind", analysis.is_bert ? "bert" : "etc"},
        {"layers", analysis.layers},
        {"heads", analysis.heads},
        {"residual", analysis.residual},
        {"layer_norm", analysis.layer_norm},
        {"checkpoint", analysis.checkpoint}}},
      {"data",
       {{"name", analysis.data},
        {"examples", analysis.examples},
        {"tokens_counted", rows},
        {"rows_single_key", single},
        {"masked_input", analysis.masked_input},
        {"seed", analysis.seed},
        {"max_rows", analysis.max_rows}}},
      {"log_base",
       {{"entropy", "e"},
        {"jsd", 2},
        {"jsd_kind", analysis.jsd_distance ? "distance" : "divergence"}}},
      {"colour_scale",
       analysis.normalised_colours ? "normalised" : "absolute"}};
  for (const auto& [unit, count] : analysis.truncated) {
    json["data"]["truncated"][unit] = count;
  }
  OrderedJson populations = OrderedJson::array();
  for (const PopulationStatistics& population : analysis.populations) {
    populations.push_back(PopulationJson(analysis, population));
  }
  json["populations"] = populations;
  json["scores"] = ScoresJson(analysis);
  return JsonText(json) + "\n";
}

std::string EntropyCsv(const AttentionAnalysis& analysis) {
  std::string csv =
      "population,layer,head,rank,n,median,mean,std,normalised_median,"
      "normalised_mean,normalised_std\n";
  for (const PopulationStatistics& population : analysis.populations) {
    for (size_t l = 0; l < population.heads.size(); ++l) {
      std::vector<size_t> ranks(population.heads[l].size());
      const std::vector<int64_t> order = HeadOrder(population.heads[l]);
      for (size_t rank = 0; rank < order.size(); ++rank) {
        ranks[static_cast<size_t>(order[rank])] = rank;
      }
      for (size_t h = 0; h < ranks.size(); ++h) {
        const HeadStatistics& head = population.heads[l][h];
        absl::StrAppend(&csv, population.name, ",", l, ",", h, ",", ranks[h],
                        ",", head.entropy.count(), ",",
                        CsvNumbers(head.entropy), ",",
                        CsvNumbers(head.normalised), "\n");
      }
    }
  }
  return csv;
}

std::string MassCsv(const AttentionAnalysis& analysis) {
  std::string csv = "population,layer,head,keys,rows,mass,share,lift\n";
  for (const PopulationStatistics& population : analysis.populations) {
    for (size_t l = 0; l < population.heads.size(); ++l) {
      for (size_t h = 0; h < population.heads[l].size(); ++h) {
        for (const KeyMass& mass :
             MassesOf(population, population.heads[l][h])) {
          absl::StrAppendFormat(&csv, "%s,%d,%d,%s,%d,%.6g,%.6g,",
                                population.name, l, h, mass.keys, mass.rows,
                                mass.mass, mass.share);
          absl::StrAppend(
              &csv, mass.share > 0 ? absl::StrFormat("%.6g", mass.lift()) : "",
              "\n");
        }
      }
    }
  }
  return csv;
}

std::string PositionCsv(const AttentionAnalysis& analysis) {
  std::string csv = "population,layer,head,by,from,to,rows,entropy\n";
  const auto add = [&](const std::string& place, const std::string& bounds,
                       int64_t rows, double mean) {
    absl::StrAppend(&csv, place, bounds, ",", rows, ",",
                    rows > 0 ? absl::StrFormat("%.6g", mean) : "", "\n");
  };
  for (const PopulationStatistics& population : analysis.populations) {
    for (size_t l = 0; l < population.heads.size(); ++l) {
      for (size_t h = 0; h < population.heads[l].size(); ++h) {
        const HeadStatistics& head = population.heads[l][h];
        const std::string place =
            absl::StrCat(population.name, ",", l, ",", h, ",");
        const std::vector<double> positions = MeanByClass(
            head, &RowSums::entropy_by_position, population.rows_by_position);
        for (size_t c = 0; c < positions.size(); ++c) {
          add(place,
              absl::StrFormat("position,%.6g,%.6g",
                              static_cast<double>(c) / kPositionClasses,
                              static_cast<double>(c + 1) / kPositionClasses),
              population.rows_by_position[c], positions[c]);
        }
        const std::vector<double> sentences = MeanByClass(
            head, &RowSums::entropy_by_sentence, population.rows_by_sentence);
        for (size_t c = 0; c < sentences.size(); ++c) {
          add(place,
              absl::StrCat("sentence_length,", int64_t{1} << c, ",",
                           c + 1 < sentences.size()
                               ? absl::StrCat((int64_t{2} << c) - 1)
                               : ""),
              population.rows_by_sentence[c], sentences[c]);
        }
      }
    }
  }
  return csv;
}

std::string SimilarityCsv(const AttentionAnalysis& analysis) {
  std::string csv = "population,layer,head,head_below,rows,mean\n";
  for (const PopulationStatistics& population : analysis.populations) {
    for (size_t l = 0;
         population.rows_sampled > 0 && l < population.similarity.size(); ++l) {
      const size_t heads = population.heads[l].size();
      for (size_t i = 0; i < heads; ++i) {
        for (size_t j = 0; j < heads; ++j) {
          absl::StrAppendFormat(&csv, "%s,%d,%d,%d,%d,%.6g\n", population.name,
                                l + 1, i, j, population.rows_sampled,
                                MeanSimilarity(population, l, i, j));
        }
      }
    }
  }
  return csv;
}

std::string CorrelationCsv(const AttentionAnalysis& analysis) {
  std::string csv = "block,layer,head,correlation\n";
  for (size_t l = 0; l < analysis.scores.size(); ++l) {
    for (const ScoreDeviations& block : analysis.scores[l]) {
      for (size_t h = 0; h < block.correlations.size(); ++h) {
        const std::optional<double>& correlation = block.correlations[h];
        absl::StrAppend(&csv, block.block, ",", l, ",", h, ",",
                        correlation.has_value()
                            ? absl::StrFormat("%.6g", *correlation)
                            : "",
                        "\n");
      }
    }
  }
  return csv;
}

std::string DivergenceCsv(const AttentionAnalysis& analysis) {
  std::string csv = "population,layer,head,n,median,mean,std\n";
  for (const PopulationStatistics& population : analysis.populations) {
    for (size_t l = 0; l < population.divergence.size(); ++l) {
      for (size_t h = 0; h < population.divergence[l].size(); ++h) {
        const StreamingHistogram& numbers = population.divergence[l][h];
        absl::StrAppend(&csv, population.name, ",", l + 1, ",", h, ",",
                        numbers.count(), ",", CsvNumbers(numbers), "\n");
      }
    }
  }
  return csv;
}

}  // namespace etc
