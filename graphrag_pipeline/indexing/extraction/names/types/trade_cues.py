"""Cues of trade and tools: a firm charges, quotes and has engineers; a program has dashboards and is upgraded.

Minutes and notes name firms and programs once or twice, without a word for what they are. What is done with them shows
it: "an invoice from X", "an account with X", "X have quoted"; "the X dashboard", "a ticket in X", "we upgraded X".

A cue is one of `TRADER` (it charges, sells, has prices), `FIRM` ("an account with X"), `PRODUCT` and `STAFF_MEMBER`.

Keep out: verbs that persons and firms share (`agent_cues.py`), well-known names (`brands.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

from graphrag_pipeline.indexing.extraction.names.occurrences import Name, text_before
from graphrag_pipeline.indexing.extraction.names.types.agent_cues import AGENT
from graphrag_pipeline.text.late_patterns import late_regex
from graphrag_pipeline.text.twin_patterns import TwinPattern

FIRM = "organization role"
TRADER = "trader"
ACTOR = "actor"  # of any deed, by which minutes show bodies and persons
PRODUCT = "product"
STAFF_MEMBER = "person role"
MEMBERSHIP = "membership"  # of a place or a body: "Mrs Ida Holroyd of X"

_MONEY = r"[£$€]\s?\d[\d,.]*\s?(?:m|k|bn|million|thousand)?|\d[\d,.]*\s(?:pounds|euros|dollars|per\s?cent)"
_PAPERS = (
    r"(?:invoices?|bills?|quot(?:es?|ations?)|estimates?|tenders?|bids?|offers?|refunds?|grants?|loans?|donations?"
    r"|mortgages?|deliver(?:y|ies)|suppl(?:y|ies)|statements?|prices?|credit\snotes?|figures?|cheques?|leases?|orders?)"
)
_ACCOUNTS = (
    r"(?:accounts?|contracts?|deals?|polic(?:y|ies)|agreements?|mortgages?|overdrafts?|subscriptions?|orders?|claims?"
    r"|savings|deposits?|insurance|insured|cover|tenanc(?:y|ies)|leases?|partnership)"
)
_GOODS = (
    r"(?:machines?|boilers?|mattress(?:es)?|scanners?|pumps?|lifts?|cameras?|panels?|windows|doors|tiles|bricks"
    r"|monitors?|printers?|radiators?|systems?|equipment|vans?|scaffolding|furniture|engines?|units|tools|instruments?"
    r"|beds|meters?|kits?|trees|meals|catering|uniforms|laptops?|parts|timber|seeds|pianos?)"
)
_TRADES = (
    r"(?:insurers?|bank(?:ers)?|suppliers?|brokers?|auditors|accountants|solicitors|contractors?|builders|caterers"
    r"|provider|host|vendor|surveyors|architects|managing\sagents?|lenders?|publishers?|printers|cleaners|consultants"
    r"|manufacturers?|sponsors?|wholesalers?|couriers?)"
)
_PLURAL_VERBS = r"(?:have|are|were|want|use|offer|charge|make|supply|sell|host|own|run|insist|do\s?n[o'’]t|do\snot)"
_SERVICES = (
    r"(?:host|supply|run|own|operate|make|insure|audit|manage|clean|service|maintain|provide|sell|deliver|publish"
    r"|print)s?"
)

_BEFORE_FIRM = tuple(
    TwinPattern(rf"(?:{pattern})\s+(?:the\s+)?$")
    for pattern in (
        rf"\b{_PAPERS}\s+(?:(?:of|for)\s+[^.,;]{{1,30}}\s+)?from",
        rf"\b{_ACCOUNTS}\s+(?:(?:is|was|are|were)\s+)?(?:with|against)",
        rf"\b{_ACCOUNTS}\s+at",
        r"\b(?:[Ss]hares|[Ss]tock|[Ss]take|[Hh]olding)\s+in",
        r"\b(?:fees?|royalties|licen[cs]ed|funding|sponsorship|supplied|purchased)\s+(?:[^.,;]{1,20}\s)?from",
        rf"(?<!\bfined\s)(?:{_MONEY})\s+(?:was\s+|had\s+gone\s+|went\s+|paid\s+|owed\s+)?(?:with|to|at|from)",
        rf"\b{_GOODS}\s+from",
        r"\b(?:[Aa]nalyst|[Ee]conomist|[Ss]trategist|[Ll]awyer|[Rr]esearcher|[Ss]cientist|[Pp]rofessor|[Ee]xpert|[Ee]ngineer"
        r"|[Cc]onsultant|[Cc]onvener|[Ss]pokes\p{Ll}+)\s+(?:\p{Lu}[\p{L}'’-]+\s+){2,3}(?:at|of|for|with)",
        r"\b(?:head|director|chief|president)\sof\s(?:\p{Ll}+\s){1,3}at",
        r"\b(?:executive|co-founder|spokes\p{Ll}+|(?:finance|managing|sales)\s+director)\s+(?:of|at|for)",
        rf"\b{_GOODS}\s+(?:(?:is|are|was|were)\s+)?(?:now\s+)?by",
        rf"\b(?:scaffolding|{_GOODS})\s+(?:would\s+be|will\s+be|is|are|was|were)\s+from",
        r"\b(?:ordered|bought|hired|rented|leased|purchased|sourced|borrowed)\s+(?:[^.,;]{1,40}\s)?from",
        r"\b(?:customers?|clients?|employees?|staff|tenants?|shareholders?|directors?|board)\s+(?:of|at)",
        r"(?<![Ii]ts )(?<![Tt]he )(?<!their )(?<!our )\bworks?\s+at",
        r"\b(?:worked|working|job|engineer|manager|adviser|consultant|someone|a\sman|a\swoman)\s+at",
        r"\b(?:job|engineer|manager|adviser|consultant|someone|a\sman|a\swoman)\s+with",
        r"\b(?:purchase|acquisition|takeover|merger|rival|rivals|shareholders?|subsidiary|owners?)\s+of",
        r"\b(?:orders?|payments?|bookings?|deliveries|invoices)\s+(?:go|goes|went|comes?|came|are)\s+(?:\p{Ll}+\s)?(?:through|via|to|from)",
        r"\b[Nn]ursery\srun\sby|\b(?:cleaned|insured|audited|hosted|serviced|managed|supplied|operated)\s+by",
    )
)
_TRADE_BEFORE = TwinPattern(
    rf"\b(?:[Oo]ur|[Tt]heir|[Tt]he|[Ii]ts|[Aa])\s+(?:\p{{Ll}}+\s+){{0,2}}?{_TRADES}(?:,|\s+(?:is|are|was|were))\s+$"
    r"|\b(?:[Ii]ts|[Tt]heir)\s+(?:\p{Ll}+\s+)?(?:rivals?|parent|competitors?|subsidiary|lenders?|suppliers?),?\s+$"
)
_ADVISED = TwinPattern(r"\b(?:he|she|who)\s+(?:advised|worked\sfor)\s+$")
_AFTER_FIRM = TwinPattern(
    rf"""
    ,?\s+(?:(?:has|had|have|also|only|already|not|then|now|since)\s+){{0,3}}
        (?:quoted|charged|charges|invoiced|billed|tendered|undercut)\b
    |\s+(?:(?:has|had|have)\s+)?(?:wanted|asked\s+for|offered|bid|lent|given|gave|found)\s+(?:us\s+)?(?:{_MONEY})
    |\s+(?:(?:has|had|have)\s+)?raised\s+(?:its|their)\s+(?:price|fee|rate|charge)s?
    |['’]s?\s+(?:support\s+desk|help\s?desk|engineers?|drivers?|technicians?|crew|quot(?:e|ation)|tender|bid|depot
        |prices?|price\slist|head\soffice|sales\steam|customers|branch|fitters?|installers?|call\scentre)\b
    |,?\s+(?:who|which)\s+(?:now\s+)?{_SERVICES}\s
    |\s+\((?:[\p{{L}}-]+\s){{0,2}}{_TRADES}\)
    |\s(?:analyst|economist|strategist|spokes\p{{Ll}}+|chief\sexecutive|co-founder|researcher)s?\s\p{{Lu}}\p{{Ll}}
    |,\s(?:an?|the|its|another)\s(?:\p{{Ll}}[\p{{L}}-]*\s){{0,3}}(?:unit|arm|subsidiary|division|affiliate|offshoot)\sof\b
    |,\s(?:the|its)\s(?:\p{{Ll}}+\s)?(?:arm|unit|subsidiary|division)\b
    |,\s+(?:our|the|their|its|a)\s+(?:\p{{Ll}}+\s+){{0,2}}?{_TRADES}\s*[,.;:)]
    |\s+(?:(?:has|had|have)\s+)?(?:had|have|has|received|won|lost)\s+(?:an?|the|its|their)\s+(?:grant|contract|tender|vacancy|turnover)\b
    """,
    regex.VERBOSE,
)
_PLURAL_AFTER = TwinPattern(rf"\s+(?:also\s+|now\s+|still\s+)?{_PLURAL_VERBS}\b(?!\s+(?:been\s+)?(?:both|all)\b)")
_SUBJECT = TwinPattern(r"(?:^|\n|[.!?:;]\s)\s*(?:[-*•]\s+)?(?:The\s+)?$")
_SENTENCE_START = TwinPattern(r"(?:^|\n|[.!?]\s)\s*(?:[-*•]\s+)?$")
_CLAUSE = TwinPattern(r"\b(?:because|but|where|while|although|said|whether)\s+(?:that\s+)?(?:the\s+)?$")

_PARTS = (
    r"(?:dashboards?|tickets?|pipelines?|licen[cs]es?|plug-?ins?|modules?|clusters?|alerts?|scripts?|channels?|webhooks?"
    r"|integrations?|migrations?|upgrades?|documentation|docs|instances?|queues?|topics?|brokers?|index(?:es)?"
    r"|databases?|servers?|clients?|apps?|consoles?|repos?|repositor(?:y|ies)|wikis?|workspaces?|templates?|buckets?"
    r"|jobs?|runners?|configs?|configuration|extensions?|containers?|images?|pods?|nodes?|logs?|links?|boards?"
    r"|spreadsheets?|forms?|sheets?|group\schat|importer|exporter|provider|registry|backups?|logins?|passwords?|pages?"
    r"|threads?|bots?|dumps?|tables?|quer(?:y|ies)|tokens?|lag|calls?|invites?|subscriptions?)"
)
_RECORDS = (
    r"(?:data|records?|images?|logs?|metrics|files?|tickets?|documents?|docs|glossary|wiki|code|repo(?:sitory)?|website"
    r"|bookings?|payroll|accounts|mailing\slist|pages?|calendar|backups?|traffic|alerts?|issues?|runbooks?|notes"
    r"|timesheets?|rotas?|minutes|marks|forms?|spreadsheets?|queries|events|messages|membership\slist|slides|papers)"
)
_AFTER_PRODUCT = TwinPattern(
    rf"\s+{_PARTS}\b(?![\p{{L}}'’])|\s+(?:v|version\s)?\d+(?:\.\d+)+|\s+v\d|\s+(?:is|was|went)\s+(?:down|offline|out\sof\sdate)\b"
    r"|\s+(?:does\snot\s|doesn['’]t\s)?supports?\s"
)
_BEFORE_PRODUCT = tuple(
    TwinPattern(rf"(?:{pattern})\s+$")
    for pattern in (
        rf"\b{_RECORDS}\b[^.;:\n]{{0,30}}?\b(?:go|goes|went|moves?|moved|migrated?|imported|copied|exported)\s+(?:\p{{Ll}}+\s)?(?:from|to|into)",
        r"\b(?:mov(?:e|es|ed|ing)|migrat(?:e|es|ed|ing|ion)|switch(?:ed|ing)?|port(?:ed|ing)?)\s+(?:[^.;:\n]{0,30}\s)?from",
        r"\b(?:migrat(?:e|es|ed|ing|ion)|upgrad(?:e|es|ed|ing))\s+(?:[^.;:\n]{0,30}\s)?to",
        r"\b(?:upgrad(?:e|es|ed|ing)|install(?:s|ed|ing)?|configur(?:e|es|ed|ing)|deploy(?:s|ed|ing)?|uninstall(?:ed)?|(?:was|were|is|are)\s(?:testing|trialling|piloting))",
        r"\b(?:deploy(?:s|ed)?|released?|logged)\b[^.;:\n]{0,30}\s(?:with|on|into)",
        r"\b(?:ran|runs?|running|hosted|built|tested|stored)\s(?:(?:only|still|now)\s)?on|\bwritten\sin",
        r"\b(?:put|entered|typed|loaded|uploaded|scanned)\b[^.;:\n]{0,20}\s(?:into|to|onto)",
        r"\b(?:mov(?:e|ed|ing)|migrat(?:e|ed|ing)|switch(?:ed|ing)?|copied)\b[^.;:\n]{0,40}\sfrom\s\p{Lu}\S*\sto",
        r"\b(?:rated|graded|scored|assessed|appraised|measured|calculated|estimated|classified|staged|screened|quantified"
        r"|evaluated|analy[sz]ed|simulated|modelled)\b[^.;:\n]{0,40}\s(?:with|using|in|on)(?:\sthe)?",
        r"\b(?:pilot|trial|roll-?out|upgrade|installation|version|release)\sof",
        r"\bstill\s+(?:made|kept|done|run)\s+(?:with|on|in)",
        r"\b(?:tickets?|alerts?|thread|channel|error\srate|threshold|query|spreadsheet)\s+(?:(?:is|are|was|were)\s)?(?:in|on|to)",
        rf"\b(?:{_RECORDS}|posters?)\s+(?:(?:is|are|was|were)\s)?(?:now\s)?(?:kept|shared|stored|made|done|held|booked|sent)\s(?:in|on|to|with)",
        r"\b(?:access|login|log-?ins?|password|licen[cs]es?|subscription|plug-?in|module|client|wrapper|adapter|support)\s(?:to|for)",
        r"\b(?:link(?:ed)?|import(?:ed)?|export(?:ed)?|posts?|posted|logged|edited|tracked)\b[^.;:\n]{0,30}\s(?:it\s)?(?:from|in|on)",
        r"\b(?:[Ii]n),?(?=\s[^\s,]+,\s(?:open|click|choose|select|go))",
    )
)
_IN_MENU = TwinPattern(r",\s+(?:open|click|choose|select|go\sto)\b")
_DEPARTMENTS = (
    r"(?:Legal|Finance|HR|Sales|Support|Marketing|Operations|Ops|Customer\s\p{Lu}\p{Ll}+|IT|Procurement|Engineering"
    r"|Product|Design|Platform|Security|Payroll|Estates|Facilities|Purchasing|Accounts|Communications)"
)
_AFTER_PERSON = TwinPattern(
    rf"\s+(?:in|from|of)\s+(?:the\s)?{_DEPARTMENTS}\b|\s+is\s+(?:on\s(?:call|leave|holiday)|off\ssick|away|ill|back)\b"
)
_PRONOUN_AFTER = TwinPattern(r"\s+\p{Ll}[^.!?:;\n]{2,160}[.!?]\s+(?:He|She)\s+(?:\p{Ll}+)\b")
_COLONS = (":", "\u2013")
_ACTION = TwinPattern(r"\b(?:ACTIONS?|Actions?|Owner|Assignee|Assigned\sto|Owned\sby)\s*[:–]\s+$")
_DEPARTMENT = late_regex(_DEPARTMENTS)
_IN_DEPARTMENT = TwinPattern(r"\p{Lu}\p{Ll}+\s+(?:in|from|of)\s+(?:the\s)?$")
_WROTE = TwinPattern(
    r"\b(?:writ(?:e|es|ten)|wrote|complain(?:ed)?|apply|applied|appeal(?:ed)?|refer(?:red)?|report(?:ed)?)\s+to\s+$"
)
_PAID = TwinPattern(rf",?\s+(?:{_MONEY})")
_ACTS = late_regex(
    r",?\s+(?:(?:has|had|have)\s+(?:not\s+|also\s+|already\s+|just\s+|once\s+|again\s+)?(?!been\b|become\b|an?\b|the\b|no\b|to\b)\p{Ll}{3,}"
    r"|(?:has|had)\s+no\s|(?:would|will|could|can|might|should)\s+(?:not\s+)?(?!be\b|have\b|close\b|open\b|fall\b|rise\b|remain\b|stay\b)\p{Ll}{2,}"
    r"|(?:was|were|is|are|has\sbeen|have\sbeen|had\sbeen)\s(?:to\sbe\s)?"
    r"(?:informed|notified|consulted|asked|contacted|invited|thanked|approached|reminded|instructed|appointed)\b"
    r"|(?:came|sent|took|won|lost|gave|left|wrote|thought|held|kept|let|set|(?<!,\s+)\p{Ll}{2,}(?<!ne|fe|spe)ed)\b)"
)
_THINGS_BY = TwinPattern(
    r"\b(?!(?:talk|reports?|paper|book|letter|motion|speech|proposal|amendment|performance|presentation|visit|survey|remarks?"
    r"|proposed|seconded|moved|chaired|signed|taken|followed)\b)\p{Ll}{3,}\s+by\s+(?:the\s+)?$"
)
_MEMBER = TwinPattern(
    r"\b(?:Mr|Mrs|Ms|Miss|Dr|Cllr|Sir|Lady|Prof|Professor|Revd?)\.?\s+(?:[\p{Lu}][\p{L}.'’-]*\s+){1,3}of\s+$"
)
_ABOUT = TwinPattern(r"\s+(?:about|concerning|regarding|asking|thanking|offering)\b")
_LOOK_BACK = 72
_TRADE_ENDS = (
    ", ",
    "is ",
    "are ",
    "was ",
    "were ",
    "rival ",
    "rivals ",
    "parent ",
    "subsidiary ",
    "lender ",
    "supplier ",
)
_PREPOSITIONS = frozenset(
    {"at", "in", "near", "of", "from", "to", "with", "by", "for", "on", "outside", "about", "into"}
)
_FIRM_ENDS = frozenset({"in", "from", "with", "against", "at", "to", "by", "of", "for", "through", "via"})
_PRODUCT_ENDS = frozenset({"from", "to", "into", "onto", "in", "on", "with", "for", "of", "using"})
_VERBS_OF_PROGRAMS = ("upgrad", "install", "configur", "deploy", "uninstall", "testing", "trialling", "piloting")


def read_trade_cues(text: str, name: Name) -> Iterator[str]:
    """Yield what the words beside a name show: `FIRM`, `PRODUCT` and `STAFF_MEMBER`."""
    before = text_before(text, name, _LOOK_BACK)
    if _AFTER_FIRM.match(text, name.end):
        yield TRADER
        yield FIRM
    elif _is_firm_before(before) or _is_plural(text, name, before) or _is_payee(text, name):
        yield FIRM
    elif _AFTER_PRODUCT.match(text, name.end) or _is_product_before(before, text, name):
        yield PRODUCT
    if " " not in name.form:
        is_first = not name.start or _SENTENCE_START.search(before) is not None
        is_person = is_first and _PRONOUN_AFTER.match(text, name.end)
        is_asked = before.rstrip().endswith(_COLONS) and _ACTION.search(before)
        if is_person or is_asked or _AFTER_PERSON.match(text, name.end):
            yield STAFF_MEMBER
    if before.endswith("to ") and _WROTE.search(before):
        yield AGENT
    if before.endswith("of ") and _MEMBER.search(before):
        yield MEMBERSHIP
    if before.endswith("from ") and _ABOUT.match(text, name.end):
        yield AGENT
    is_subject = _last_word(before) not in _PREPOSITIONS
    if (is_subject and _ACTS.match(text, name.end)) or (
        before.endswith(("by ", "by the ")) and _THINGS_BY.search(before)
    ):
        yield ACTOR
    if _DEPARTMENT.fullmatch(name.form) and _IN_DEPARTMENT.search(before):
        yield FIRM


def _is_firm_before(before: str) -> bool:
    if before.endswith(_TRADE_ENDS) and _TRADE_BEFORE.search(before):
        return True
    last = _last_word(before)
    if last in ("advised", "for") and _ADVISED.search(before):
        return True
    return last in _FIRM_ENDS and any(pattern.search(before) for pattern in _BEFORE_FIRM)


def _is_payee(text: str, name: Name) -> bool:
    return name.form[-1].isalpha() and _PAID.match(text, name.end) is not None


def _is_plural(text: str, name: Name, before: str) -> bool:
    """Whether a plural verb follows one name, as it does where a firm is meant: "Aiven have doubled the disk"."""
    if _PLURAL_AFTER.match(text, name.end) is None:
        return False
    return not name.start or (_SUBJECT.search(before) or _CLAUSE.search(before)) is not None


def _is_product_before(before: str, text: str, name: Name) -> bool:
    if before.endswith(("In ", "in ")) and _IN_MENU.match(text, name.end):
        return True
    last = _last_word(before)
    is_near = last in _PRODUCT_ENDS or last.startswith(_VERBS_OF_PROGRAMS)
    return is_near and any(pattern.search(before) for pattern in _BEFORE_PRODUCT)


def _last_word(before: str) -> str:
    """Return the word before a name and its article, in lower case."""
    return (before.removesuffix("the ").rsplit(None, 1)[-1:] or [""])[0].lower() if before[-1:].isspace() else ""
