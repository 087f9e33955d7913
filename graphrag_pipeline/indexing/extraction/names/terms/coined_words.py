"""Words that science has coined from Greek and Latin: "colchicine", "spirometry", "bronchiectasis".

Their endings show a term of a field where one use is too few for statistics, if English prose does not know the word
("opposes" ends like "arthroses").

Keep out: common words with such an ending, and words of one corpus.
"""

from __future__ import annotations

from functools import lru_cache

from graphrag_pipeline.indexing.extraction.names.terms.background import english_rank
from graphrag_pipeline.text.late_patterns import late_re

_MIN_LETTERS = 8
_ENDINGS = (
    # diseases and their signs
    *("itis", "osis", "aemia", "emia", "uria", "pathy", "algia", "plegia", "paresis", "dynia", "rrhoea", "rrhea"),
    *("rrhage", "penia", "philia", "trophy", "sclerosis", "stenosis", "ectasis", "lysis", "oedema", "thorax"),
    *("noea", "pnea", "cardia", "rrhythmia", "phagia", "phasia", "plasia", "carcinoma", "blastoma", "toxicity"),
    # what is done and measured
    *("ectomy", "otomy", "ostomy", "plasty", "scopy", "graphy", "cardiogram", "angiogram", "metry", "centesis", "pexy"),
    # substances
    *("azole", "cillin", "mycin", "cycline", "oxacin", "idine", "apine", "epine", "ipine", "olone", "asone"),
    *("prazole", "sartan", "statin", "olol", "parin", "xaban", "gatran", "gliptin", "gliflozin", "lukast", "tropium"),
    *("terol", "triptan", "setron", "fibrate", "profen", "tadine", "amide", "oxide", "mab", "tinib", "ciclib"),
    *(
        "azepam",
        "barbital",
        "curium",
        "kinra",
        "thioprine",
        "ticase",
        "vastatin",
        "clovir",
        "dronate",
        "glitazone",
        "thiazide",
        "globulin",
        "ferritin",
        "transferase",
        "kinase",
        "genase",
        "chicine",
    ),
)
_COINED = late_re(rf"[a-z]{{2,}}(?:{'|'.join(_ENDINGS)})s?")


@lru_cache(maxsize=1 << 15)
def is_coined(word: str) -> bool:
    """Whether a word in lower case has an ending of science, and English prose does not know it."""
    if len(word) < _MIN_LETTERS or _COINED.fullmatch(word) is None:
        return False
    return english_rank(word) is None and english_rank(word.removesuffix("s")) is None
