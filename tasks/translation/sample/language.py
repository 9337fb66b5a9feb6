#!/usr/bin/env python3
"""A small language with its translation, both invented: the demo's data.

  language.py make DIRECTORY       train, dev and test of parallel text, dict.txt
  language.py chance REFERENCE     BLEU-ready lines: those of REFERENCE, shifted

A source sentence is "subject verb object", with words that never change:

  da two tusot nanal no rezat a pugon gonur

In the translation the verb stands last and negation around it, an adjective
stands behind its noun, nouns have one of three classes, and adjectives,
articles and verbs take endings by class and number of their noun; the object
has a case. So one source word has many translations, which the others decide.
"""
import random
import sys

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
NOUNS, ADJECTIVES, VERBS, ADVERBS = 24, 12, 12, 6
NUMBERS = ["one", "two", "many"]
CLASSES = ["a", "o", "u"]


def words(draw, count, syllables, taken):
    """`count` new words."""
    made = []
    while len(made) < count:
        word = "".join(draw.choice(CONSONANTS) + draw.choice(VOWELS)
                       for _ in range(syllables)) + draw.choice("nrlst")
        if word not in taken:
            taken.add(word)
            made.append(word)
    return made


class Language:
    def __init__(self):
        draw = random.Random(1)
        taken = set(NUMBERS)
        self.source = {kind: words(draw, count, 1 + (kind != "adverb"), taken)
                       for kind, count in (("noun", NOUNS),
                                           ("adjective", ADJECTIVES),
                                           ("verb", VERBS),
                                           ("adverb", ADVERBS))}
        self.target = {kind: words(draw, len(known), 2, taken)
                       for kind, known in self.source.items()}
        self.gender = [draw.choice(CLASSES) for _ in range(NOUNS)]

    def phrase(self, draw, is_object):
        """A noun phrase: source words, target words, class, is plural."""
        noun = draw.randrange(NOUNS)
        gender, number = self.gender[noun], draw.randrange(3)
        plural = "s" if number else ""
        adjectives = draw.sample(range(ADJECTIVES), draw.choice([0, 1, 1, 2]))
        definite = draw.random() < 0.5
        source = ["da" if definite else "a"] + ([NUMBERS[number]] if number
                                                else [])
        source += [self.source["adjective"][i] for i in adjectives]
        source.append(self.source["noun"][noun])
        case = "m" if is_object else ""
        target = [("l" if definite else "un") + gender + plural]
        if number:
            target.append(["", "du", "mil"][number] + gender)
        target.append(self.target["noun"][noun] + gender + plural + case)
        target += [self.target["adjective"][i] + gender + plural + case
                   for i in adjectives]
        return source, target, gender, plural

    def pair(self, draw):
        subject, subject_target, gender, plural = self.phrase(draw, False)
        thing, thing_target, _, _ = self.phrase(draw, True)
        verb = draw.randrange(VERBS)
        negative = draw.random() < 0.3
        source = (subject + (["no"] if negative else []) +
                  [self.source["verb"][verb]] + thing)
        verb_target = [self.target["verb"][verb] + gender + plural]
        if negative:
            verb_target = ["ne"] + verb_target + ["pa"]
        target = subject_target + thing_target + verb_target
        if draw.random() < 0.4:
            adverb = draw.randrange(ADVERBS)
            source = source + [self.source["adverb"][adverb]]
            target = [self.target["adverb"][adverb]] + target
        return " ".join(source), " ".join(target)


def make(directory):
    language, draw = Language(), random.Random(2)
    seen, counts = set(), {}
    for name, size in (("train", 4000), ("dev", 200), ("test", 300)):
        with open(f"{directory}/{name}.source", "w") as source, \
             open(f"{directory}/{name}.target", "w") as target:
            while size:
                pair = language.pair(draw)
                if pair[0] in seen:
                    continue
                seen.add(pair[0])
                size -= 1
                print(pair[0], file=source)
                print(pair[1], file=target)
                if name == "train":
                    for word in " ".join(pair).split():
                        counts[word] = counts.get(word, 0) + 1
    with open(f"{directory}/dict.txt", "w") as dictionary:
        for word, count in sorted(counts.items(), key=lambda x: (-x[1], x[0])):
            print(word, count, file=dictionary)


def chance(reference):
    lines = open(reference).read().splitlines()
    print("\n".join(lines[1:] + lines[:1]))


if __name__ == "__main__":
    {"make": make, "chance": chance}[sys.argv[1]](sys.argv[2])
