# SPDX-License-Identifier: Apache-2.0
"""English and Chinese texts to tokenize: sentences of words drawn by how frequent words are, the same every time."""
import random
import re

WORDS = 30_000
SEED = 7


class Words:
    """Word number r comes with a frequency of 1 / r, as in real texts."""

    def __init__(self, words, source):
        self.words, self.source = words[:WORDS], source

    def one(self):
        return self.words[int((len(self.words) + 1) ** self.source.random()) - 1]


def words_of(pieces, pattern):
    """The words among the pieces of a vocabulary, the most frequent first, as the pieces are."""
    return [piece for piece in pieces if re.fullmatch(pattern, piece)]


def english_sentence(words, source):
    result = []
    for _ in range(source.randint(4, 24)):
        word = words.one()
        kind = source.random()
        if kind < 0.03:
            word += words.one().lower()     # a word that no vocabulary has
        elif kind < 0.05:
            word = str(source.randint(0, 2100))
        elif kind < 0.07:
            word = f'"{word}"'
        elif kind < 0.09:
            word += source.choice(["'s", "n't", "'re", "-" + words.one().lower()])
        result.append(word + ("," if source.random() < 0.08 else ""))
    text = " ".join(result)
    return text[0].upper() + text[1:].rstrip(",") + source.choice(["."] * 8 + ["?", "!", ":"])


def chinese_sentence(words, source):
    clauses = ["".join(words.one() for _ in range(source.randint(2, 9))) for _ in range(source.randint(1, 4))]
    if source.random() < 0.1:
        clauses[-1] += str(source.randint(1, 2100)) + source.choice("\u5e74\u4e2a\u6b21\u4eba")
    return "\uff0c".join(clauses) + source.choice("\u3002" * 8 + "\uff1f\uff01")


def texts(english_pieces, chinese_pieces, size):
    """{"English": [text], "Chinese": [text]}, some `size` bytes each, in texts of one paragraph."""
    result = {}
    english, chinese = words_of(english_pieces, "[a-z]{2,}|a|i"), words_of(chinese_pieces, "[\u4e00-\u9fff]+")
    for name, words, sentence, space in (("English", english, english_sentence, " "),
                                         ("Chinese", chinese, chinese_sentence, "")):
        source = random.Random(SEED)
        drawn, made, paragraphs = Words(words, source), 0, []
        while made < size:
            text = space.join(sentence(drawn, source) for _ in range(source.randint(1, 9)))
            made += len(text.encode())
            paragraphs.append(text)
        result[name] = paragraphs
    return result
