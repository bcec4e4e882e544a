#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes clearhead/text/unicode_tables.cc from what the tokenizers library does to each code point.

Models were trained with that library, and each of its parts has Unicode tables of another year (punctuation of 2016,
lower case newer than Unicode 15), so neither a Unicode version nor a Unicode library gives the same tokens. Each table
is therefore asked for, code point by code point, from the part of the library that uses it:

  python3 scripts/make_unicode_tables.py          (needs the package tokenizers; made with 0.23.3; two minutes)
"""
import pathlib
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
BATCH = 50_000


def bert(**steps):
    """BertNormalizer with the given steps only."""
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**(off | steps))


def changed(normalizer):
    """{code point: its normalized text} of all code points that the normalizer changes."""
    results = ((c, normalizer.normalize_str(chr(c))) for c in CODE_POINTS)
    return {c: text for c, text in results if text != chr(c)}


def found_beside(flags, texts):
    """For each text: is the added token X, with these flags, found in it, and as the only token?"""
    tokenizer = Tokenizer(models.WordLevel({"other": 0}, unk_token="other"))
    tokenizer.add_tokens([AddedToken("X", normalized=False, **flags)])
    encodings = []
    for at in range(0, len(texts), BATCH):
        encodings += tokenizer.encode_batch(texts[at : at + BATCH])
    return [1 in e.ids for e in encodings], [e.ids == [1] for e in encodings]


def probe_classes():
    cleaned = changed(bert(clean_text=True))
    removed = [c for c, text in cleaned.items() if text == ""]
    assert all(text in ("", " ") for text in cleaned.values())
    split = {c: len(pre_tokenizers.BertPreTokenizer().pre_tokenize_str(f"a{chr(c)}a")) for c in CODE_POINTS}
    white_space = [c for c in CODE_POINTS if split[c] == 2]
    spaces = [c for c, text in cleaned.items() if text == " "] + [0x20]
    assert set(spaces) == set(white_space) - set(removed), "the two parts of the library have another white space"
    assert matched(r"\s") == white_space
    han = changed(bert(handle_chinese_chars=True))
    assert all(text == f" {chr(c)} " for c, text in han.items())
    before, _ = found_beside(dict(single_word=True), [chr(c) + "X" for c in CODE_POINTS])
    after, _ = found_beside(dict(single_word=True), ["X" + chr(c) for c in CODE_POINTS])
    assert before == after
    _, swallowed = found_beside(dict(lstrip=True, rstrip=True), [chr(c) + "X" + chr(c) for c in CODE_POINTS])
    assert [c for c, all_of_it in zip(CODE_POINTS, swallowed) if all_of_it] == white_space
    return {
        "WhiteSpace": (white_space, "White_Space: cut by BertPreTokenizer, swallowed by lstrip and rstrip"),
        "Punctuation": ([c for c in CODE_POINTS if split[c] == 3], "a word of its own for BertPreTokenizer"),
        "Removed": (removed, "deleted by BertNormalizer's clean_text"),
        "Han": (list(han), "set between spaces by BertNormalizer's handle_chinese_chars"),
        "Letter": (matched(r"\p{L}"), r"\p{L} of a regular expression"),
        "Number": (matched(r"\p{N}"), r"\p{N} of a regular expression"),
        "Word": ([c for c, free in zip(CODE_POINTS, before) if not free], "beside it a single_word token is none"),
    }


def matched(expression):
    """The code points that a regular expression of the library matches."""
    split = pre_tokenizers.Split(Regex(expression), "removed")
    return [c for c in CODE_POINTS if len(split.pre_tokenize_str(f"\1{chr(c)}\1")) == 2]


def probe_decompositions():
    """({code point: NFD}, nonspacing marks that strip_accents deletes); Hangul syllables are left out (arithmetic)."""
    decomposed = changed(normalizers.NFD())
    stripped = changed(bert(strip_accents=True))
    marks = {c for c, text in stripped.items() if text == "" and c not in decomposed}
    expected = {c: "".join(d for d in decomposed.get(c, chr(c)) if ord(d) not in marks) for c in CODE_POINTS}
    assert stripped == {c: text for c, text in expected.items() if text != chr(c)}
    for c in range(0xAC00, 0xD7A4):
        assert decomposed.pop(c) == unicodedata.normalize("NFD", chr(c))
    return decomposed, sorted(marks)


def probe_combining_classes():
    """{code point: class} of all code points that the library's NFD reorders. A class is read off by setting the code
    point beside one of each known class: the two change places only if the first has the higher class."""
    nfd = normalizers.NFD()

    def swaps(first, second):
        return nfd.normalize_str(chr(first) + chr(second)) == chr(second) + chr(first)

    lowest, highest = 0x334, 0x345  # classes 1 and 240
    known = {1: lowest, 240: highest}
    for c in CODE_POINTS:
        if nfd.normalize_str(chr(c)) == chr(c) and (swaps(c, lowest) or swaps(highest, c)):
            known.setdefault(unicodedata.combining(chr(c)), c)
    classes = {}
    for c in CODE_POINTS:
        if nfd.normalize_str(chr(c)) != chr(c) or not (swaps(c, lowest) or swaps(highest, c)):
            continue
        same = [value for value, other in known.items() if c == other or not (swaps(c, other) or swaps(other, c))]
        assert len(same) == 1, hex(c)
        classes[c] = same[0]
    return classes


def probe_compatibility(decomposed):
    """{code point: NFKD} where it is not NFD."""
    return {c: text for c, text in changed(normalizers.NFKD()).items()
            if not 0xAC00 <= c < 0xD7A4 and text != decomposed.get(c, chr(c))}


def probe_compositions(decomposed):
    """[(first, second, composed)]: pairs that NFC makes one code point of; Hangul syllables are left out."""
    nfc = normalizers.NFC()
    result = []
    for c, parts in decomposed.items():
        if nfc.normalize_str(chr(c)) != chr(c):
            continue
        first = nfc.normalize_str(parts[:-1])
        assert len(first) == 1 and nfc.normalize_str(first + parts[-1]) == chr(c), hex(c)
        result.append((ord(first), ord(parts[-1]), c))
    return sorted(result)


def ranges(code_points):
    """Sorted code points as [(first, last)]."""
    result = []
    for c in sorted(code_points):
        if result and result[-1][1] == c - 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def lower_case_ranges(lower):
    """[(first, last, step, difference)] of code points with one lower-case code point."""
    result = []
    for c in sorted(c for c, text in lower.items() if len(text) == 1):
        difference = ord(lower[c]) - c
        if result and result[-1][3] == difference:
            first, last, step, _ = result[-1]
            if (first == last and c - last in (1, 2)) or c - last == step:
                result[-1] = (first, c, c - last, difference)
                continue
        result.append((c, c, 1, difference))
    return result


def array(declaration, note, entries):
    """A C++ array, as many entries a line as fit."""
    lines, line = [f"// {note}", f"{declaration} = {{"], "   "
    for entry in entries:
        if len(line) + len(entry) + 2 > 120:
            lines.append(line)
            line = "   "
        line += f" {entry},"
    return "\n".join(lines + [line, "};", ""])


def write_tables(name, parts):
    """clearhead/text/NAME_tables.cc of such arrays, generated by the script of that name."""
    text = f"// SPDX-License-Identifier: Apache-2.0\n// Generated by scripts/make_{name}_tables.py.\n"
    text += f'#include "clearhead/text/{name}_tables.h"\n\n// clang-format off\nnamespace clearhead::text::tables {{\n\n'
    text += "\n".join(parts) + "\n}  // namespace clearhead::text::tables\n"
    path = pathlib.Path(__file__).resolve().parent.parent / "clearhead" / "text" / f"{name}_tables.cc"
    path.write_text(text)
    print(f"{path.name}: {len(text)} bytes, {len(text.splitlines())} lines")


def braces(*numbers):
    return "{" + ",".join(hex(n) if n > 9 else str(n) for n in numbers) + "}"


def main():
    parts = []
    for name, (code_points, note) in probe_classes().items():
        table = [braces(*r) for r in ranges(code_points)]
        parts.append(array(f"const CodeRange k{name}Ranges[{len(table)}]", note, table))

    decomposed, marks = probe_decompositions()
    table = [braces(*r) for r in ranges(marks)]
    parts.append(array(f"const CodeRange kNonspacingMarkRanges[{len(table)}]", "deleted by strip_accents", table))
    table = [braces(*r) for r in ranges(c for c, text in changed(normalizers.StripAccents()).items() if text == "")]
    parts.append(array(f"const CodeRange kMarkRanges[{len(table)}]", "deleted by the normalizer StripAccents", table))
    compatible = probe_compatibility(decomposed)
    pool = ""
    for text in [*dict(sorted(decomposed.items())).values(), *sorted(compatible.values(), key=len, reverse=True)]:
        if text not in pool:
            pool += text
    parts.append(array(f"const char32_t kDecompositionPool[{len(pool)}]", "what the entries below point into",
                       [hex(ord(c)) for c in pool]))
    for name, note, table in (("kDecompositions", "NFD", decomposed), ("kCompatibility", "NFKD where not NFD", compatible)):
        entries = [braces(c, pool.index(text), len(text)) for c, text in sorted(table.items())]
        parts.append(array(f"const Decomposition {name}[{len(entries)}]",
                           f"{note}: code point, place in the pool, length", entries))
    entries = [braces(*entry) for entry in probe_compositions(decomposed)]
    parts.append(array(f"const Composition kCompositions[{len(entries)}]",
                       "NFC: first, second, what they become; sorted", entries))
    classes = probe_combining_classes()
    table = [braces(*r, value) for value in sorted(set(classes.values()))
             for r in ranges(c for c, own in classes.items() if own == value)]
    table.sort(key=lambda entry: int(entry[1:].split(",")[0], 0))
    parts.append(array(f"const CombiningRange kCombiningRanges[{len(table)}]", "first, last, canonical combining class",
                       table))

    lower = changed(bert(lowercase=True))
    assert {c: text for c, text in lower.items() if len(text) != 1} == {0x130: "i\u0307"}
    table = ["{" + f"{hex(first)},{hex(last)},{step},{difference}" + "}"
             for first, last, step, difference in lower_case_ranges(lower)]
    parts.append(array(f"const LowerCaseRange kLowerCaseRanges[{len(table)}]",
                       "first, last, step, difference; U+0130 alone has two lower-case code points and is not here", table))

    write_tables("unicode", parts)


if __name__ == "__main__":
    main()
