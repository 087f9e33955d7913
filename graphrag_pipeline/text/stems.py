"""Stems of words, by English endings and irregular forms. Keep out: lists of words that a search leaves out."""

from __future__ import annotations

import functools

_IRREGULAR_TEXT = """
became/become began/begin begun/begin bent/bend bitten/bite blew/blow blown/blow bought/buy broke/break broken/break
brought/bring built/build burnt/burn came/come caught/catch children/child chose/choose chosen/choose crept/creep
dealt/deal died/die drank/drink drew/draw drawn/draw driven/drive drove/drive dug/dig dying/die eaten/eat ate/eat
beaten/beat fallen/fall fed/feed feet/foot fell/fall fled/flee flew/fly flown/fly forbade/forbid forbidden/forbid
forgot/forget forgotten/forget fought/fight found/find froze/freeze frozen/freeze gave/give given/give goes/go gone/go
got/get grew/grow grown/grow heard/hear held/hold hid/hide hidden/hide hung/hang kept/keep knew/know known/know
learnt/learn led/lead left/leave lent/lend lit/light lost/lose made/make meant/mean men/man met/meet paid/pay ran/run
rang/ring rebuilt/rebuild rewritten/rewrite rewrote/rewrite ridden/ride rode/ride said/say sang/sing sank/sink
sunk/sink sat/sit saw/see seen/see sent/send shaken/shake shone/shine shook/shake shot/shoot shown/show slept/sleep
slid/slide sold/sell sought/seek spent/spend spoke/speak spoken/speak stole/steal stolen/steal stood/stand
struck/strike stuck/stick stung/sting sung/sing swam/swim swept/sweep swum/swim swore/swear sworn/swear taken/take
taught/teach teeth/tooth thought/think threw/throw thrown/throw took/take torn/tear understood/understand went/go
wept/weep withdrawn/withdraw withdrew/withdraw wives/wife woke/wake women/woman won/win wore/wear worn/wear
woven/weave written/write wrote/write
"""
_BASES = dict(pair.split("/") for pair in _IRREGULAR_TEXT.split())
"""English irregular form -> base. Forms that are as often another word ("felt", "rose", "lay") are left out."""
_DOUBLED = frozenset("bdgmnprt")
"""Consonants that English doubles before "-ed" and "-ing", but seldom at the end of a base: "stop", "stopped"."""


@functools.lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return a folded word without possessive, plural and common verb endings; at least three letters stay.

    What follows an apostrophe is an ending, as in "nordwerk's" and in Turkish "istanbul'da".

    Frequent irregular forms get the stem of their base: "wrote" that of "write".
    """
    before, _, _ = word.partition("'")
    word = before if len(before) >= 3 else word.removesuffix("'s").removesuffix("'")
    word = _BASES.get(word, word)
    for ending, replacement in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + replacement
            word = word[:-1] if ending in ("ed", "ing") and _is_doubled(word) else word
            break
    return word.removesuffix("e") if len(word) > 3 and word[-2] != word[-3] else word  # belle is not bell


def _is_doubled(cut: str) -> bool:
    """Return whether what an ending was cut from has a consonant that the ending doubled: "stopp", "travell"."""
    if len(cut) < 4 or cut[-1] != cut[-2]:
        return False
    return cut[-1] in _DOUBLED or (cut[-1] == "l" and len(cut) >= 6)
