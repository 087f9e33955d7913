"""Language detection by the commonest function words or the script, for the languages that rules distinguish.

Add here: a language, with about 25 of its commonest function words. Keep out: anything that needs a download.
"""

from __future__ import annotations

import re
from collections import Counter

from graphrag_pipeline.text.scripts import HAN

_SAMPLE = 6_000  # characters
_MIN_HITS = 3
_MIN_SHARE = 0.08  # of the words
_MIN_SCRIPT_SHARE = 0.3  # of the characters

_WORD = re.compile(r"[^\W\d_]{2,}")  # letters are words of several languages, and initials
_HAN = re.compile(f"[{HAN}]")
_KANA = re.compile(r"[\u3041-\u30fa]")

SMALL_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": """the of and to a in is was that it for with as his her he she on at by from were are not be this which
            had""",
        "de": """der die das und ist nicht ein eine einer eines einem den dem des mit von zu auf für im am auch sich war
            sie er es wurde als bei nach hat aus dass aber wie noch nur vom zum zur""",
        "fr": """le la les de des du et est un une en que qui dans pour pas sur au aux par avec ce cette il elle était
            ont mais son sa ses leur plus nous vous""",
        "es": """el la los las de del y es un una en que por con para su sus se al lo como más pero fue era este esta no
            cuando también había desde sin""",
        "it": """il lo la gli le di del della dei e è un una in che per con non si al alla sono era come più ma nel
            nella dal anche suo sua questo""",
        "pt": """o a os as de do da dos das e é um uma em que por com para não se no na mais mas foi seu sua ao como
            era""",
        "nl": """de het een en van is in dat op te niet met voor zijn aan er ook als bij door naar maar werd om hij
            zij""",
    }.items()
}
LANGUAGE_NAMES = {"en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "pt": "Portuguese",
                  "nl": "Dutch", "zh": "Chinese", "ja": "Japanese"}  # fmt: skip
"""English names of the languages that can be detected."""
_LANGUAGES = {
    word: [language for language, words in SMALL_WORDS.items() if word in words]
    for word in frozenset().union(*SMALL_WORDS.values())
}


def detect_language(text: str) -> str:
    """Return "en", "de", "fr", "es", "it", "pt", "nl", "zh" or "ja"; "" if the text does not decide."""
    sample = text[:_SAMPLE]
    if not sample.isascii():
        n_han, n_kana = len(_HAN.findall(sample)), len(_KANA.findall(sample))
        if n_han + n_kana > _MIN_SCRIPT_SHARE * len("".join(sample.split())):
            return "ja" if n_kana > 0.1 * n_han else "zh"
    words = _WORD.findall(sample.lower())
    hits = Counter(language for word in words if word in _LANGUAGES for language in _LANGUAGES[word])
    best = max(SMALL_WORDS, key=hits.__getitem__)
    return best if hits[best] >= max(_MIN_HITS, _MIN_SHARE * len(words)) else ""
