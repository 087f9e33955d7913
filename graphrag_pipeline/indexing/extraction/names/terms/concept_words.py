"""Word lists of `concepts.py`: words that say little about a text, whatever it is about, and whether a word is one.

Add here: a general word that real text shows among the key phrases. Keep out: words of one field.
"""

from __future__ import annotations

from graphrag_pipeline.indexing.extraction.names.cues import words
from graphrag_pipeline.indexing.extraction.names.terms.word_forms import is_compared, singular_of

_WRITTEN = ("-delimited", "-separated", "-supplied", "-provided", "-specified")  # how a list or a value is written

# Heads of phrases in every kind of text; they do not distinguish one text from another.
VAGUE = words("""
hand hands head heads face faces eye eyes arm arms finger fingers foot feet leg legs knee knees hair ear ears nose
mouth lip lips voice voices breast breath skin shoulder shoulders neck back body heart hearts mind minds soul spirits
tear tears smile laugh cry look looks glance chuckle sob sigh grin frown nod whisper word words name names man men
woman women boy boys girl girls child children baby person persons people fellow fellows gentleman gentlemen lady
ladies friend friends stranger crowd folk folks mr mrs sir dear parent parents family families father mother brother
sister son daughter wife husband uncle aunt nephew niece clerk time times day days night nights morning evening
afternoon hour hours minute minutes moment moments second seconds week weeks month months year years century decade
age ages date end ends beginning start middle place places side sides part parts piece pieces bit way ways thing
things matter matters kind kinds sort sorts form forms case cases point points amount lot lots deal rest half quarter
dozen pair couple member members fact facts reason reasons consideration considerations cause result results doubt
doubts idea ideas thought thoughts sense feeling feelings hope fear fears wish joy pleasure delight grief pain
surprise wonder life lives death world situation manner degree use effort attempt chance turn step steps sight sound
sounds noise silence light darkness shadow shadows air subject question questions answer answers example examples term
terms height width distance top bottom front edge corner inside outside direction work works job business affair
affairs trade home house room street town city village country bed chair table uses role cent roles career film films
movie song songs album book books story stories chapter page paper article edition subsection subclause footnote
appendix annex memo
""")
# General words of every prose that explains: not a term alone, but may be the head of one ("side effect").
GENERAL = words("""
foo bar baz spam eggs free charge prompting violation copying invocation destination
accord behalf reliance pass begin occur refer exist effect level levels type types state condition list set line lines
group groups number numbers object order size length position ability absence abstract access accordance account
achievement act action activity actuality addition adjustment administration advance advantage advice agreement aim
alternative ambiguity amendment analogy analysis announcement appearance application approach appropriateness approval
area argument arrangement aspect assessment assistance assumption attention attribute audience author authority
availability avoidance awareness background balance basis behavior behaviour being belief benefit block body boundary
branch break bunch byproduct call capability capacity care caution center centre challenge change chapter character
characteristic choice circumstance claim clarity class code collection color colour combination command comment
comparison complexity complication component composition concept concern conclusion conduct confidence configuration
conflict confusion conjunction connection consensus consequence consideration consistency constraint construct
construction contact content context contrast contribution control convenience convention conversion copy correction
correspondence cost count course coverage creation criterion criteria current custom damage danger data debate
decision default definition degree delay deletion delivery demand department dependence description design detail
determination development device diagram difference difficulty dimension disadvantage discretion discussion display
distinction distribution document documentation domain drawback duration duty ease element email emphasis encounter
enough entirety entity entry environment equality equivalent error essence establishment estimate evaluation event
evidence exact example exception exchange exclusion execution exercise existence expectation expense
experience explanation exploration exposure expression extension extent extra factor failure familiarity fashion
feature feedback field figure final finding flag flexibility focus format foundation framework frequency function
functionality future gain gap general generation goal guarantee guidance guide guideline handling heading help hint
history idea identification identity image impact implementation implication importance impression improvement
inability inclusion inconsistency increase independence indication individual influence info information initial input
inquiry inside insight inspection instance instruction integer integration integrity intent intention interaction
interest interface internals interpretation interval introduction investigation issue item joint judgement judgment
justification key knowledge label lack language layout leading leaf learning left letter limit limitation link listing
literature load location logic look loss main maintenance majority management manipulation manual mark material maximum
meaning means measure measurement mechanism medium meeting mention message method middle minimum minority mistake mode
model modification more motivation movement name nature necessity need negative normal notation note notice notion
objective obligation observation occasion occurrence offer one operation opinion opportunity opposite option ordering
organisation organization origin original outcome outline output overview owner package paragraph parameter
participant particular path pattern percent percentage perception perfect performance period permission perspective
phase phrase picture placement plan plenty policy portion positive possession possibility potential practice
precaution preceding precedence precision preference preparation presence presentation pressure principle priority
privilege problem procedure process processing product production program progress project promise proof property
proportion proposal protection provision publication publisher purpose quality quantity range rate rather ratio reader
reading reality recognition recommendation record reduction reference referral reflection regard region regulation
relation relationship release relevance reliability remainder removal replacement report representation reproduction
request requirement research resolution resource respect response responsibility restriction resulting return review
revision right rights rise risk root row rule run safety sake sample scale scenario scheme scope search section
selection semantics separation sequence series service session setting setup shape share shortcoming shortcut
significance
similarity simplicity single site situation solution source space specific specification speed stage standard
statement status stop storage strategy strength string structure style subset substance success
suggestion suitability sum summary supply support surprise surrounding symbol syntax system table tail target task
technique technology template tendency test testing text the theme theory threshold title tool topic total track
tradition transfer transition translation transmission treatment trial trick trouble truth understanding unit update
usage user utility validity value variant variation variety vendor version view volume warning warranty weakness
weight whole width willingness word wording workaround writing zero
patient symptom sign diagnosis comorbidity dose dosage severity specialist clinician
microgram milligram kilogram gram litre liter millilitre milliliter metre meter kilometre kilometer centimetre
centimeter millimetre millimeter kelvin micromol micromole nanomole millimole mole byte kilobyte megabyte gigabyte
terabyte volt ampere watt kilowatt hertz pascal newton tonne hectare
""")
# Everyday things of stories: a single word counts only with a high keyness; "trap door" counts as usual.
EVERYDAY = words("""
door doorway doors window windows wall walls floor floors ceiling roof stair stairs staircase step hall chamber kitchen
parlour cellar fire fireplace hearth lamp candle candles light lights clock watch curtain curtains carpet blanket pillow
sheet desk drawer stool bench shelf lock key box bag basket bundle parcel bottle glass cup plate dish spoon knife fork
breakfast lunch dinner supper meal meals bread coat hat cap cloak robe gown dress shirt skirt trousers shoe shoes boot
boots glove gloves scarf pocket button ribbon clothes stick rope wheel rain snow wind fog mist sky cloud clouds
""")
# Adjectives and participles that do not make a phrase of the field.
VAGUE_FIRST = words("""
other such much many more most very own whole single certain several various different similar main major minor
important possible necessary available able full empty wide high low short long hard soft easy simple clear common
general special particular real true false right wrong left same next last new old great little ill well far near
drawn delimited separated aside find locked shaking going coming looking saying seeing being having making taking
getting heartily perfectly used called named given based related required specified supported provided following
resulting corresponding existing remaining including containing using current previous additional alternative
respective entire total actual complete appropriate suitable useful equivalent original final initial usual typical
increasing multiple further extra equal separate individual arbitrary default obvious interesting significant relevant
usable recent first-time new-style old-style so-called non-empty better worse dead alone normal maximum minimum
optional mandatory correct incorrect successful unsuccessful detailed asleep awake alive afraid sorry glad ready best
worst
""")
# Before a noun they count it: "forty-seven teeth", "three-interface sample".
NUMBERS = words("""
two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million
""")


def is_vague_first(word: str) -> bool:
    """Whether a word says little of the noun behind it: "different", "older", "space-delimited"."""
    return word.upper() in VAGUE_FIRST or is_compared(word) or word.endswith(_WRITTEN)


def is_number(word: str) -> bool:
    """Whether a word is a number or starts with one: "forty-seven", "three-interface"."""
    return word.split("-")[0].upper() in NUMBERS


def is_general(word: str) -> bool:
    """Whether a word, or its singular, says little of any text."""
    key = word.upper()
    return key in GENERAL or key in VAGUE_FIRST or (singular_of(word, [word[:-1]], least=4) or "").upper() in GENERAL
