#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes clearhead/text/regex_tables.cc: which code points a regular expression of the tokenizers library matches by
the properties of Unicode, asked for by name from that library (make_unicode_tables.py says why; its engine is Oniguruma).

  python3 scripts/make_regex_tables.py            (needs the package tokenizers; made with 0.23.3; a minute)
"""

from tokenizers import Regex, pre_tokenizers

from make_unicode_tables import CODE_POINTS, array, braces, ranges, write_tables

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn".split()
SCRIPTS = ("Arabic Armenian Bengali Bopomofo Common Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han Hangul "
           "Hebrew Hiragana Inherited Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Oriya Sinhala Tamil "
           "Telugu Thaana Thai Tibetan").split()
OTHERS = "Alphabetic Uppercase Lowercase White_Space Emoji Emoji_Presentation Extended_Pictographic Ideographic Any".split()
POSIX = "alnum alpha blank cntrl digit graph lower print punct space upper xdigit word".split()

# Names that mean the same as others.
GROUPS = {"l": "lu ll lt lm lo", "lc": "lu ll lt", "m": "mn mc me", "n": "nd nl no", "p": "pc pd ps pe pi pf po",
          "s": "sm sc sk so", "z": "zs zl zp", "c": "cc cf co cn cs"}
LONG = {"letter": "l", "casedletter": "lc", "mark": "m", "number": "n", "punctuation": "p", "symbol": "s", "separator": "z", "other": "c",
        "uppercaseletter": "lu", "lowercaseletter": "ll", "titlecaseletter": "lt", "modifierletter": "lm", "otherletter": "lo",
        "nonspacingmark": "mn", "spacingmark": "mc", "enclosingmark": "me", "decimalnumber": "nd", "letternumber": "nl",
        "othernumber": "no", "connectorpunctuation": "pc", "dashpunctuation": "pd", "openpunctuation": "ps",
        "closepunctuation": "pe", "initialpunctuation": "pi", "finalpunctuation": "pf", "otherpunctuation": "po",
        "mathsymbol": "sm", "currencysymbol": "sc", "modifiersymbol": "sk", "othersymbol": "so", "spaceseparator": "zs",
        "lineseparator": "zl", "paragraphseparator": "zp", "control": "cc", "format": "cf", "privateuse": "co", "unassigned": "cn"}

CACHE = {}
EVERYTHING = "".join(map(chr, CODE_POINTS))


def plain(name):
    return name.lower().replace("_", "")


def matched(expression):
    """The code points, sorted; each expression is asked for once."""
    if expression not in CACHE:
        split = pre_tokenizers.Split(Regex(f"(?:{expression})+"), "removed", invert=True)
        spans = [span for _, span in split.pre_tokenize_str(EVERYTHING)]
        CACHE[expression] = [c for begin, end in spans for c in CODE_POINTS[begin:end]]
    return CACHE[expression]


def of_first(expression):
    """The same of the first code points, which tells two properties apart."""
    return pre_tokenizers.Split(Regex(expression), "removed").pre_tokenize_str(EVERYTHING[:0x3000])


def main():
    found = {plain(name): matched(f"\\p{{{name}}}") for name in CATEGORIES + SCRIPTS + OTHERS}
    for name in POSIX:
        found[f":{name}"] = matched(f"[[:{name}:]]")
        if name not in found and found[f":{name}"] == matched(f"\\p{{{name}}}"):
            found[name] = found[f":{name}"]
    for name, parts in GROUPS.items():
        expected = sorted(c for part in parts.split() for c in found.get(part, []))
        assert matched(f"\\p{{{name}}}") == expected, name
        found[name] = expected
    for name, short in LONG.items():
        assert of_first(f"\\p{{{name}}}") == of_first(f"\\p{{{short}}}"), name
        found[name] = found[short]
    # By itself \w also finds six numbers of Latin-1 that it does not find in a class.
    found["word"] = matched(r"\w")
    assert sorted(set(found["word"]) - set(found[":word"])) == [0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE]
    assert matched(r"\p{Word}") == found["word"] and matched(r"[\w]") == matched(r"[\p{Word}]") == found[":word"]
    assert matched(r"\d") == found["nd"] == found[":digit"] and matched(r"\h") == found[":xdigit"]
    assert matched(r"\s") == found[":space"] == found["whitespace"]
    pool, at, entries = [], {}, []
    for name, code_points in sorted(found.items()):
        table = tuple(map(tuple, ranges(code_points)))
        if table not in at:
            at[table] = len(pool)
            pool += table
        entries.append(f'{{"{name}",{at[table]},{len(table)}}}')
    parts = [array(f"const CodeRange kRegexRanges[{len(pool)}]", "what the entries below point into", [braces(*r) for r in pool]),
             array(f"const RegexProperty kRegexProperties[{len(entries)}]",
                   "name, first range, number of ranges; [:name:] has a colon in front", entries)]
    write_tables("regex", parts)
    print(f"{len(pool)} ranges, {len(entries)} entries")


if __name__ == "__main__":
    main()
