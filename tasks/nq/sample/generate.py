#!/usr/bin/env python3
"""Writes the bundled sample: train.jsonl.gz, dev.jsonl and vocab.txt.

The records are in the formats of Natural Questions: train.jsonl.gz in the
simplified one with one annotation each, dev.jsonl in the original one with
five. Each page is about somebody's collection and says from which town things
in it are, one in each paragraph, table or item of a list:

    <P> The red lantern is from North Haven . </P>
    <P> Nobody knows where the blue kettle is from . </P>

A question names the owner and a thing.

    where is the red lantern from       North Haven, in that paragraph
    where is the blue kettle from       only the paragraph answers it
    is the red lantern from karsia      no, because of that paragraph
    where is the green violin from      not on this page

The long answer to a fact in a table is the table, to one in a list the item
alone, which is no top-level candidate. All names are invented and drawn anew
for each page, all tags are one piece to the model, and the order of facts is
random: there is nothing to memorise, and who does not read the question finds
one fact among eight or more. One page in five is so long that it needs several
windows.

Things share words (red lantern, blue lantern, red kettle), so both have to be
read. Red things and lanterns are asked for more often: small models find out
sooner what questions are for. Who knows only that finds one answer in six.

Of the five annotators of dev.jsonl some overlook the answer, some mark a full
stop too much or the list in place of the item, and where there is no answer one
may have marked one nevertheless: two have to, for there to be an answer.

Plain Python 3, no arguments; the same bytes at every run:

    python3 tasks/nq/sample/generate.py
"""

import gzip
import html
import itertools
import json
import pathlib
import random

SEED = 20240611
NUM_TRAIN = 4000
NUM_DEV = 80
FACTS = 8
FACTS_OF_LONG_PAGES = 14
SHARE_OF_LONG_PAGES = 0.2
SHARES = {"short": 0.65, "long": 0.1, "yes_no": 0.1, "none": 0.15}
NUM_ANNOTATORS = 5

PEOPLE = """Mira Odo Lenka Tarv Isolt Brenn Quill Sanna Edrik Yola Fenn Orla
 Davin Tamsa Rurik Elwy""".split()
# The vocabulary has them without accents, the text with.
SINGLE_TOWNS = """Karsia Belmora Tundria Ostvåle Navoria Qarath Zémland Ilvania
 Dorrim Falken Merova Sulien""".split()
TOWN_WORDS = [["North", "South", "East", "West"], ["Haven", "Bridge", "Ford"]]
TOWNS = SINGLE_TOWNS + [f"{first} {last}" for first in TOWN_WORDS[0]
                        for last in TOWN_WORDS[1]]
# With the weights of the two words of a thing that is asked for.
THING_WORDS = [{"red": 4, "blue": 2, "green": 2, "white": 2},
               {"lantern": 2, "kettle": 1, "saddle": 1, "violin": 1}]
THINGS = [" ".join(words) for words in itertools.product(*THING_WORDS)]
# Words of no name.
WORDS = """. collection from is knows nobody of the thing town where""".split()
# BERT's vocabulary has these in lines 101, 107 and 108, from 0.
SPECIAL = {101: "[CLS]", 107: "[unused102]", 108: "[unused103]"}

NULL_SPAN = (-1, -1)


class Page:
  """Tokens, candidates, and of each fact where its answers are."""

  def __init__(self):
    self.tokens = []
    self.candidates = []  # [start, end, is top level]
    self.open = []
    self.long = {}   # thing -> tokens [start, end)
    self.short = {}  # thing -> tokens [start, end), if it says the town
    self.town = {}   # thing -> town

  def begin(self, tag, is_candidate=True):
    if is_candidate:
      self.open.append(len(self.candidates))
      self.candidates.append([len(self.tokens), None, len(self.open) == 1])
    self.tokens.append(f"<{tag}>")

  def end(self, tag, is_candidate=True):
    """Returns the element if it is a candidate."""
    self.tokens.append(f"</{tag}>")
    if is_candidate:
      candidate = self.candidates[self.open.pop()]
      candidate[1] = len(self.tokens)
      return candidate[0], candidate[1]

  def words(self, text):
    self.tokens += text.split()

  def say_town(self, thing, town):
    start = len(self.tokens)
    self.words(town)
    self.town[thing] = town
    self.short[thing] = (start, len(self.tokens))


def add_paragraph(page, thing, town):
  page.begin("P")
  if town is None:
    page.words(f"Nobody knows where the {thing} is from")
  else:
    page.words(f"The {thing} is from")
    page.say_town(thing, town)
  page.words(".")
  page.long[thing] = page.end("P")


def add_table(page, thing, town):
  page.begin("Table")
  for left, right in (("thing", None), (thing, town)):
    page.begin("Tr")
    page.begin("Td", is_candidate=False)
    page.words(left)
    page.end("Td", is_candidate=False)
    page.begin("Td", is_candidate=False)
    if right is None:
      page.words("town")
    else:
      page.say_town(thing, right)
    page.end("Td", is_candidate=False)
    page.end("Tr")
  page.long[thing] = page.end("Table")


def add_list(page, facts):
  page.begin("Ul")
  for thing, town in facts:
    page.begin("Li")
    page.words(f"{thing} from")
    page.say_town(thing, town)
    page.long[thing] = page.end("Li")
  page.end("Ul")


def add_heading(page, tag, text):
  page.begin(tag, is_candidate=False)
  page.words(text)
  page.end(tag, is_candidate=False)


def make_page(rng, person, things, unknown):
  """A page that says of each thing in which town, of one that nobody knows."""
  page = Page()
  facts = list(zip(things, rng.sample(TOWNS, len(things))))
  rng.shuffle(facts)
  in_table, in_list = facts[0], facts[1:3]
  parts = [lambda: add_table(page, *in_table),
           lambda: add_list(page, in_list),
           lambda: add_paragraph(page, unknown, None)]
  parts += [lambda fact=fact: add_paragraph(page, *fact) for fact in facts[3:]]
  rng.shuffle(parts)
  add_heading(page, "H1", person)
  for number, part in enumerate(parts):
    if number == len(parts) // 2:
      add_heading(page, "H2", "Collection")
    part()
  return page


def make_question(rng, person, page, kind, thing):
  """The question, long and short answer, and yes or no."""
  name = person.lower()
  if kind == "none":
    return f"where is the {thing} from", NULL_SPAN, None, "NONE"
  if kind == "long":
    return f"where is the {thing} from", page.long[thing], None, "NONE"
  if kind == "short":
    return (f"where is the {thing} from", page.long[thing], page.short[thing],
            "NONE")
  is_so = rng.random() < 0.5
  others = sorted(t for d, t in page.town.items() if d != thing)
  town = page.town[thing] if is_so else rng.choice(others)
  return (f"is the {thing} from {town.lower()}", page.long[thing], None,
          "YES" if is_so else "NO")


def span_of(start, end, offsets):
  """A span as the original format has it: bytes and tokens."""
  if start < 0:
    return {"start_token": -1, "end_token": -1, "start_byte": -1,
            "end_byte": -1}
  return {"start_token": start, "end_token": end,
          "start_byte": offsets[start][0], "end_byte": offsets[end - 1][1]}


def annotation(page, offsets, long_answer, short_answer, yes_no):
  spans = [(c[0], c[1]) for c in page.candidates]
  index = spans.index(long_answer) if long_answer in spans else -1
  return {
      "long_answer": {**span_of(*long_answer, offsets),
                      "candidate_index": index},
      "short_answers": [span_of(*short_answer, offsets)] if short_answer else [],
      "yes_no_answer": yes_no,
  }


def list_around(page, span):
  """The list that an item is in, or the span itself."""
  for start, end, is_top in page.candidates:
    if is_top and start < span[0] and span[1] < end:
      return start, end
  return span


def annotators(rng, page, answers):
  """What each of five says."""
  long_answer, short_answer, yes_no = answers
  said = [answers] * NUM_ANNOTATORS
  if long_answer == NULL_SPAN:
    if rng.random() < 0.5:
      thing = rng.choice(sorted(page.short))
      said[rng.randrange(1, NUM_ANNOTATORS)] = (page.long[thing],
                                                page.short[thing], "NONE")
    return said
  for index in rng.sample(range(NUM_ANNOTATORS), rng.randrange(3)):
    wider = short_answer and (short_answer[0], short_answer[1] + 1)
    said[index] = rng.choice([
        (NULL_SPAN, None, "NONE"),
        (list_around(page, long_answer), wider, yes_no)])
  return said


def html_of(tokens):
  """The text of a page, and of each token its bytes in it."""
  text = b"<HTML><BODY>"
  offsets = []
  for index, token in enumerate(tokens):
    if index > 0 and not token.startswith("<") and not (
        tokens[index - 1].startswith("<")):
      text += b" "
    raw = token if token.startswith("<") else html.escape(token)
    begin = len(text)
    text += raw.encode("utf-8")
    offsets.append((begin, len(text)))
  return (text + b"</BODY></HTML>").decode("utf-8"), offsets


def original_record(example_id, person, question, page, said):
  text, offsets = html_of(page.tokens)
  words = question.split()
  return {
      "example_id": example_id,
      "question_text": question,
      "question_tokens": words,
      "document_url": f"http://sample.example/{person}",
      "document_title": person,
      "document_html": text,
      "document_tokens": [
          {"token": token, "start_byte": begin, "end_byte": end,
           "html_token": token.startswith("<")}
          for token, (begin, end) in zip(page.tokens, offsets)],
      "long_answer_candidates": [
          {**span_of(start, end, offsets), "top_level": is_top}
          for start, end, is_top in page.candidates],
      "annotations": [annotation(page, offsets, *answers) for answers in said],
  }


def simplified(record):
  """What the official converter makes of a record."""
  def without_bytes(span):
    return {k: v for k, v in span.items() if not k.endswith("_byte")}
  return {
      "example_id": record["example_id"],
      "question_text": record["question_text"],
      "document_url": record["document_url"],
      "document_text": " ".join(t["token"].replace(" ", "_")
                                for t in record["document_tokens"]),
      "long_answer_candidates": [without_bytes(c)
                                 for c in record["long_answer_candidates"]],
      "annotations": [
          {"long_answer": without_bytes(a["long_answer"]),
           "short_answers": [without_bytes(s) for s in a["short_answers"]],
           "yes_no_answer": a["yes_no_answer"]}
          for a in record["annotations"]],
  }


def make_record(rng, kind, is_long_page, asked, num_annotators):
  person = rng.choice(PEOPLE)
  others = rng.sample([thing for thing in THINGS if thing != asked],
                      FACTS_OF_LONG_PAGES if is_long_page else FACTS)
  if kind == "long":
    page = make_page(rng, person, others[1:], asked)
  elif kind == "none":
    page = make_page(rng, person, others[1:], others[0])
  else:
    page = make_page(rng, person, others[2:] + [asked], others[0])
  question, *answers = make_question(rng, person, page, kind, asked)
  said = [tuple(answers)]
  if num_annotators > 1:
    said = annotators(rng, page, tuple(answers))
  # Ids of the data are signed 64-bit numbers, half of them negative.
  example_id = rng.randrange(-2**63, 2**63)
  return original_record(example_id, person, question, page, said)


def make_split(rng, asked, num_annotators):
  count = len(asked)
  kinds = []
  for kind, share in SHARES.items():
    kinds += [kind] * round(share * count)
  is_long = [i < round(SHARE_OF_LONG_PAGES * count) for i in range(count)]
  rng.shuffle(kinds)
  rng.shuffle(is_long)
  return [make_record(rng, *choices, num_annotators)
          for choices in zip(kinds, is_long, asked, strict=True)]


def write_vocabulary(path):
  names = PEOPLE + SINGLE_TOWNS + TOWN_WORDS[0] + TOWN_WORDS[1]
  plain = [n.lower().replace("å", "a").replace("é", "e") for n in names]
  words = WORDS + [w for words in THING_WORDS for w in words] + plain
  assert len(words) == len(set(words))
  # Unused lines keep the special tokens where BERT has them.
  lines = ["[PAD]"] + [f"[unused{i}]" for i in range(99)]
  lines += ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  lines += [f"[unused{i}]" for i in range(99, 104)]
  assert all(lines[i] == piece for i, piece in SPECIAL.items())
  path.write_text("\n".join(lines + words) + "\n", encoding="utf-8")


def draw_things(rng, count):
  return [" ".join(rng.choices(list(words), list(words.values()))[0]
                   for words in THING_WORDS) for _ in range(count)]


def main():
  folder = pathlib.Path(__file__).resolve().parent
  rng = random.Random(SEED)
  train = [simplified(record) for record
           in make_split(rng, draw_things(rng, NUM_TRAIN), 1)]
  dev = make_split(rng, draw_things(rng, NUM_DEV), NUM_ANNOTATORS)
  for name, records in (("train.jsonl.gz", train), ("dev.jsonl", dev)):
    lines = [json.dumps(record, separators=(",", ":"), ensure_ascii=False)
             for record in records]
    contents = ("\n".join(lines) + "\n").encode("utf-8")
    if name.endswith(".gz"):
      contents = gzip.compress(contents, mtime=0)
    (folder / name).write_bytes(contents)
  write_vocabulary(folder / "vocab.txt")


if __name__ == "__main__":
  main()
