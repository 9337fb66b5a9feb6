// `realetc score`: a table for people, JSON for programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using ScoreCommandTest = RealetcTest;

TEST_F(ScoreCommandTest, PrintsATableOrAllDigits) {
  const std::string gold = WriteData();
  // The answers are oslo, rome, lima and again; two of six are wrong.
  const std::string predictions = directory_.Write(
      "predictions.json",
      R"({"q0": "oslo", "q1": "rome", "q2": "lima", "q3": "oslo",
          "q4": "oslo", "q5": "oslo"})");
  const std::string arguments = absl::StrCat(gold, " ", predictions);
  const Result table = Run("score wikihop " + arguments);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.out,
            "accuracy  0.6667  (main metric)\n"
            "answered  1.0000\n");
  const Result json = Run("score --json wikihop " + arguments);
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(nlohmann::json::parse(json.out),
            nlohmann::json({{"accuracy", 4.0 / 6.0}, {"answered", 1.0}}));
}

TEST_F(ScoreCommandTest, SaysWhichMetricOptionsMakeTheMainOne) {
  const std::string gold =
      directory_.Write("dev.tsv",
                       "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
                       "1\t1\t2\ta\tb\n"
                       "0\t3\t4\ta\tb\n");
  const std::string predictions =
      directory_.Write("MRPC.tsv", "index\tprediction\n0\t1\n1\t1\n");
  const std::string config = directory_.Write(
      "glue.json", R"({"task": "glue", "glue": {"name": "mrpc"}})");
  const Result table = Run(absl::StrCat("score glue ", gold, " ", predictions,
                                        " --config ", config));
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.out,
            "combined              0.5833  (main metric)\n"
            "accuracy              0.5000\n"
            "f1                    0.6667\n"
            "distinct_predictions  1.0000\n");
}

TEST_F(ScoreCommandTest, TakesOptionsOfTheTask) {
  const std::string gold =
      directory_.Write("gold.conll", "a B-p\nb I-p\nc B-p\n");
  const std::string predictions =
      directory_.Write("tags.conll", "a B-p\nb I-p\nc I-p\n");
  const std::string strict_predictions =
      directory_.Write("odd.conll", "a I-p\nb I-p\nc B-p\n");
  const auto precision = [&](const std::string& file, const char* options) {
    const Result result = Run(
        absl::StrCat("score --json tokens ", gold, " ", file, " ", options));
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(result.out).value("precision", -1.0);
  };
  EXPECT_EQ(precision(predictions, ""), 0);
  EXPECT_EQ(precision(strict_predictions, ""), 1);
  EXPECT_EQ(precision(strict_predictions, "--set tokens.tags=conlleval"), 1);
  EXPECT_EQ(precision(strict_predictions, "--set tokens.tags=strict_iobes"), 0);
  const std::string arguments =
      absl::StrCat("score tokens ", gold, " ", strict_predictions, " --set ");
  const Result iob2 = Run(arguments + "tokens.tags=strict_iob2 --json");
  EXPECT_EQ(nlohmann::json::parse(iob2.out).value("recall", -1.0), 0.5);
  EXPECT_THAT(Run(arguments + "tokens.tags=strict").err,
              AllOf(HasSubstr("--set: tokens.tags should be"),
                    HasSubstr("\"strict_iobes\"")));
  EXPECT_THAT(Run(arguments + "token.tags=strict_iob2").err,
              HasSubstr("--set token.tags=strict_iob2 should set an option of "
                        "the task, tokens.NAME"));
}

// Thresholds choose among the probabilities of labels and the n-best answers.
TEST_F(ScoreCommandTest, DecodesFilesAnewOrSaysThatTheyAreFinal) {
  const std::string rows =
      directory_.Write("dev.csv", "id,text,label\na,t,x;y\n");
  const std::string labels = directory_.Write(
      "p.jsonl",
      R"({"id":"a","labels":["x"],"probabilities":{"x":0.9,"y":0.4}})");
  const auto score = [&](const std::string& arguments) {
    return Run("score --json " + arguments);
  };
  const std::string several = absl::StrCat("classify ", rows, " ", labels,
                                           " --set classify.type=several");
  EXPECT_DOUBLE_EQ(
      nlohmann::json::parse(score(several).out).value("micro_f1", -1.0),
      2.0 / 3);
  const Result lower = score(several + " --set classify.threshold=0.3");
  EXPECT_EQ(lower.code, 0) << lower.err;
  EXPECT_EQ(nlohmann::json::parse(lower.out).value("micro_f1", -1.0), 1);
  directory_.Write("p.jsonl", R"({"id":"a","labels":["x"]})");
  ExpectMistake(
      absl::StrCat("score ", several, " --set classify.threshold=0.3"),
      absl::StrCat("--set classify.threshold changes nothing of the prediction "
                   "for a in ",
                   labels, ", which is final"));

  const std::string gold = directory_.Write(
      "dev-v2.0.json",
      R"({"version":"v2.0","data":[{"title":"t","paragraphs":[{"context":"c d",)"
      R"("qas":[{"id":"a","question":"q","is_impossible":false,)"
      R"("answers":[{"text":"c","answer_start":0}]}]}]}]})");
  const std::string texts = directory_.Write("texts.json", R"({"a": ""})");
  const std::string nbest =
      directory_.Write("nbest.json",
                       R"({"a": [{"text": "", "start_logit": 1, "end_logit": 1},
                {"text": "c", "start_logit": 0, "end_logit": 0}]})");
  const std::string set = " --set squad.null_score_diff_threshold=3";
  const Result answered = score(absl::StrCat("squad ", gold, " ", nbest, set));
  EXPECT_EQ(answered.code, 0) << answered.err;
  EXPECT_EQ(nlohmann::json::parse(answered.out).value("f1", -1.0), 100);
  ExpectMistake(absl::StrCat("score squad ", gold, " ", texts, set),
                "--set squad.null_score_diff_threshold changes nothing");
  ExpectMistake(absl::StrCat("score squad ", gold, " ", nbest,
                             " --set squad.n_best_size=3"),
                "--set squad.n_best_size changes nothing");
}

// Empty predictions would be right for all of its questions.
TEST_F(ScoreCommandTest, AsksWhetherSquadsGoldIsATestFile) {
  const std::string gold = directory_.Write(
      "test.json", R"({"data":[{"paragraphs":[{"context":"c d",)"
                   R"("qas":[{"id":"a","question":"q","answers":[]}]}]}]})");
  const std::string predictions =
      directory_.Write("predictions.json", R"({"a": ""})");
  const Result result =
      Run(absl::StrCat("score squad ", gold, " ", predictions));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("warning: none of 1 question has an answer or "
                        "is_impossible: is this a test file?"));
}

// One annotator decides, but by the official rules two have to agree.
TEST_F(ScoreCommandTest, TakesTheRulesOfTheConfiguration) {
  const std::string answer =
      R"("long_answer":{"start_token":1,"end_token":3},)"
      R"("short_answers":[{"start_token":1,"end_token":2}],)"
      R"("yes_no_answer":"NONE")";
  const std::string gold = directory_.Write(
      "gold.jsonl",
      absl::StrCat(R"({"example_id":1,"annotations":[{)", answer, "}]}"));
  const std::string predictions = directory_.Write(
      "p.json",
      absl::StrCat(R"({"predictions":[{"example_id":1,)", answer,
                   R"(,"long_answer_score":1,"short_answers_score":1}]})"));
  const std::string config = directory_.Write(
      "nq.json", R"({"task": "nq", "nq": {"official_compatibility": true}})");
  const auto f1 = [&](const std::string& options) {
    const Result result = Run(
        absl::StrCat("score --json nq ", gold, " ", predictions, " ", options));
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(result.out).value("average_f1", -1.0);
  };
  EXPECT_EQ(f1(""), 1);
  EXPECT_EQ(f1("--as-official"), 0);
  EXPECT_EQ(f1("--set nq.official_compatibility=true"), 0);
  EXPECT_EQ(f1("--config " + config), 0);
  const std::string sound = " --set nq.official_compatibility=false";
  EXPECT_EQ(f1(absl::StrCat("--config ", config, sound)), 1);
  EXPECT_EQ(f1(absl::StrCat("--as-official", sound)), 0);
}

// The files of these tasks are one JSON object.
TEST_F(ScoreCommandTest, ReadsTheLinesOfAPipe) {
  const auto score = [&](const std::string& task, const std::string& gold,
                         const std::string& lines, const char* metric) {
    const Result result =
        Run(absl::StrCat("score --json ", task, " ", gold, " ",
                         directory_.Write("lines.jsonl", lines)));
    EXPECT_EQ(result.code, 0) << task << ": " << result.err;
    return result.code == 0
               ? nlohmann::json::parse(result.out).value(metric, -1.0)
               : -1.0;
  };
  const std::string answers = WriteData();
  const std::string three =
      "{\"id\":\"q0\",\"answer\":\"oslo\"}\n"
      "{\"id\":\"q1\",\"answer\":\"rome\"}\n"
      "{\"id\":\"q2\",\"answer\":\"oslo\"}\n";
  EXPECT_DOUBLE_EQ(score("wikihop", answers, three, "accuracy"), 2.0 / 6);

  const std::string context = R"({"version":"v2.0","data":[{"title":"t",)"
                              R"("paragraphs":[{"context":"c d","qas":[)";
  const std::string squad = directory_.Write(
      "dev-v2.0.json",
      absl::StrCat(context, R"({"id":"a","question":"q","is_impossible":false,)"
                            R"("answers":[{"text":"c","answer_start":0}]},)"
                            R"({"id":"b","question":"q","is_impossible":true,)"
                            R"("answers":[]}]}]}]})"));
  EXPECT_EQ(score("squad", squad,
                  "{\"id\":\"a\",\"answer\":\"c\",\"nbest\":[]}\n"
                  "{\"id\":\"b\",\"answer\":\"\",\"nbest\":[]}\n",
                  "f1"),
            100);

  const std::string hotpotqa = directory_.Write(
      "hotpot.json",
      R"([{"_id":"a","question":"q","answer":"c","supporting_facts":[["t",0]],)"
      R"("context":[["t",["c d"]]]}])");
  EXPECT_EQ(score("hotpotqa", hotpotqa,
                  R"({"id":"a","answer":"c","sp":[["t",0]]})", "joint_f1"),
            1);

  const std::string spans = R"("long_answer":{"start_token":1,"end_token":3},)"
                            R"("short_answers":[],"yes_no_answer":"NONE")";
  std::string gold;
  std::string lines;
  for (const int id : {1, 2}) {
    absl::StrAppend(&gold, R"({"example_id":)", id, R"(,"annotations":[{)",
                    spans, "}]}\n");
    absl::StrAppend(&lines, R"({"example_id":)", id, ",", spans,
                    R"(,"long_answer_score":1,"short_answers_score":1})", "\n");
  }
  EXPECT_EQ(score("nq", directory_.Write("nq.jsonl", gold), lines, "long_f1"),
            1);

  // The answer to a line that was no record.
  directory_.Write("lines.jsonl", three + "{\"error\":\"no id\",\"line\":4}\n");
  ExpectMistake(absl::StrCat("score wikihop ", answers, " ",
                             directory_.File("lines.jsonl")),
                ".id is missing");
}

// Gold phrases of plain documents depend on them.
TEST_F(ScoreCommandTest, TakesTheSentencesOfTheConfiguration) {
  const std::string gold = directory_.Write(
      "gold.jsonl",
      R"({"id": "x", "text": "green tea", "KeyPhrases": ["green tea"]})");
  const std::string predictions = directory_.Write(
      "p.jsonl", R"({"url": "x", "KeyPhrases": [["green tea"]]})");
  const std::string tables = directory_.File("tables");
  const std::string config = directory_.Write(
      "f.json", absl::StrCat(R"({"data": {"sentences": ")", tables, "\"}}"));
  const std::string command =
      absl::StrCat("score openkp ", gold, " ", predictions);
  EXPECT_EQ(Run(command).code, 0);
  const Result refused = Run(command + " --config " + config);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("data.sentences: " + tables));
  EXPECT_EQ(Run(absl::StrCat(command, " --config ", config,
                             " --set data.sentences=icu"))
                .code,
            0);
}

TEST_F(ScoreCommandTest, RefusesRecordsThatAreTooLong) {
  const std::string config =
      directory_.Write("run.json", R"({"data": {"max_record_megabytes": 1}})");
  const std::string text(1'100'000, 'a');
  const std::string rows =
      directory_.Write("dev.csv", absl::StrCat("text,label\n", text, ",x\n"));
  const std::string labels =
      directory_.Write("p.jsonl", "{\"id\": \"0\", \"label\": \"x\"}\n");
  const std::string records =
      directory_.Write("dev.json", absl::StrCat("[{\"id\": \"", text, "\"}]"));
  const std::string answers = directory_.Write("p.json", "{}");
  for (const std::string& arguments :
       {absl::StrCat("classify ", rows, " ", labels),
        absl::StrCat("wikihop ", records, " ", answers)}) {
    const Result result =
        Run(absl::StrCat("score ", arguments, " --config ", config));
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("should have at most 1000000 bytes"),
                      HasSubstr("data.max_record_megabytes")));
  }
  // Without that the record is no longer than most are.
  const Result result = Run(absl::StrCat("score classify ", rows, " ", labels));
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST_F(ScoreCommandTest, PrintsBleuWithItsSignature) {
  const std::string ours =
      directory_.Write("ours.de",
                       "Ein Mann fährt Rad.\nZwei Hunde spielen im Schnee .\n"
                       "Ein kleines Mädchen lacht\n");
  const std::string gold = directory_.Write(
      "gold.de",
      "Ein Mann fährt ein Rad.\nZwei Hunde spielen im Schnee.\n"
      "Das kleine Mädchen lacht laut.\n");
  const std::string files = absl::StrCat(ours, " ", gold);
  const Result table = Run("score translation " + files);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.out,
            "bleu               53.3696  (main metric)\n"
            "precision_1        0.8667\n"
            "precision_2        0.7500\n"
            "precision_3        0.5556\n"
            "precision_4        0.5000\n"
            "brevity_penalty    0.8187\n"
            "hypothesis_length  15.0000\n"
            "reference_length   18.0000\n"
            "signature: nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp\n");
  const Result json = Run("score translation --tokenized --json " + files);
  EXPECT_EQ(json.code, 0) << json.err;
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_NEAR(parsed["bleu"], 38.494786369517165, 1e-12);
  EXPECT_EQ(parsed["signature"],
            "nrefs:1|case:mixed|eff:no|tok:none|smooth:none");
}

TEST_F(ScoreCommandTest, RefusesOptionsThatDecideNothing) {
  for (const char* option :
       {"--set glue.name=cola", "--config run.json", "--as-official"}) {
    ExpectMistake(absl::StrCat("score glue ", option, " --overall a b"),
                  "--overall", /*code=*/2);
  }
  const std::string text = directory_.Write("text", "a\n");
  const std::string translation =
      absl::StrCat(" translation ", text, " ", text);
  EXPECT_EQ(Run("score" + translation).code, 0);
  for (const char* option : {"--json", "--as-official", "--set a=b"}) {
    ExpectMistake(absl::StrCat("score ", option, translation),
                  " excludes translation", /*code=*/2);
  }
}

TEST_F(ScoreCommandTest, RefusesTranslationsWithTheirScores) {
  const std::string gold = directory_.Write("gold", "a\nb\n");
  ExpectMistake(
      absl::StrCat("score translation ",
                   directory_.Write("scored", "1\t-0.5\ta\n2\t-0.25\tb\n"), " ",
                   gold),
      "scored: should have text alone");
  EXPECT_EQ(Run(absl::StrCat("score translation ",
                             directory_.Write("one", "1\ta\nb\n"), " ", gold))
                .code,
            0);
  ExpectMistake("score translation " + gold,
                "see realetc score translation --help", /*code=*/2);
}

TEST_F(ScoreCommandTest, RefusesTranslationsThatAreNoPairs) {
  const std::string three = directory_.Write("three", "a\nb\nc\n");
  const std::string two = directory_.Write("two", "a\nb\n");
  const std::string bad = directory_.Write("bad", "a\n\xFF\n");
  const std::string empty = directory_.Write("empty", "");
  const auto error_of = [&](const std::string& arguments, int code) {
    const Result result = Run("score translation " + arguments);
    EXPECT_EQ(result.code, code) << arguments;
    return result.err;
  };
  EXPECT_THAT(
      error_of(absl::StrCat(three, " ", two), 1),
      AllOf(HasSubstr(three + " has 3 lines, "), HasSubstr(two + " 2 lines")));
  EXPECT_THAT(error_of(absl::StrCat(two, " ", bad), 1),
              HasSubstr(bad + ":2: should be UTF-8"));
  EXPECT_THAT(error_of(absl::StrCat(empty, " ", empty), 1),
              HasSubstr("is empty"));
  EXPECT_THAT(error_of(two, 2), HasSubstr("REFERENCES is required"));
  EXPECT_THAT(error_of(absl::StrCat("--split-compounds ", two, " ", two), 2),
              HasSubstr("--tokenized"));
  EXPECT_EQ(Run("score").code, 2);
}

}  // namespace
}  // namespace etc
