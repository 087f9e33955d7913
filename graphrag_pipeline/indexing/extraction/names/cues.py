"""Word lists for the rules of embedded extraction: sentence openers, and cues for persons, places and events.

All lists are in upper case (see `words`).

Add here: a word that real text shows to be missing. Keep out: rules (`finder.py`, `types/`), names of places
(`gazetteer.py`), words of one corpus only.
"""

from __future__ import annotations

from graphrag_pipeline.indexing.extraction.names.given_names import load_given_names


def words(text: str) -> frozenset[str]:
    return frozenset(text.upper().split())


# Function words, pronouns and exclamations: removed from both ends of a phrase; inside, they split it.
STOPWORDS = words("""
a an the this that these those i me my mine myself we us our ours you your yours he him his she her hers it its they
them their theirs who whom whose which what where when why how there here then than thus so such as at by for from in
into of off on onto out over to under up upon with within without about above across after again against ago all almost
alone along already also although always among amongst and another any anybody anyone anything anyway anywhere are
around away back be became because become been before behind being below beneath beside besides between beyond both but
can cannot could despite did do does done down during each either else enough even ever every everybody everyone
everything everywhere except few finally firstly for formerly further furthermore had has have hence therein thereto
thereof hereunder hereto hereof herein hereby however if indeed instead is just lastly let like likely many maybe
meanwhile merely might more moreover most mostly much must namely near nearly neither never nevertheless no nobody none
nonetheless nor not nothing notwithstanding etc now nowhere often once one only or other others otherwise ought own per
perhaps please possibly probably quite rather really said same secondly see seldom several shall should similarly since
some somebody somehow someone something sometimes somewhere soon still surely thank thanks therefore thereafter thereby
though through throughout till together too toward towards truly twice unless until unlike usually various very via was
well were whatever whenever whereat whereupon whereof wherein wherever whether while whilst will would yes yet yesterday
today tomorrow tonight tis twas twill ah aha alas amen aye bah begone bye eh gee goodbye ha halloa hallo hello hey hi
hilli hm hmm ho
hollo humbug hurrah hurray hush lo nay o o'clock oh ok okay ooh ouch pooh ugh wow sir madam ma'am sirs chapter stave
page http https www
""")

# Verbs that open a sentence in front of a name ("Ask Luise"); never a name alone.
COMMANDS = words("""
hail stop mind pray give go come take make look listen tell ask get keep leave think know say speak hear show try wait
remember consider imagine suppose note notice follow find bring call put turn run stand sit hold install click choose
select enter connect disconnect remove insert replace restart reboot enable disable configure download
upload calibrate renew
""")
# Peoples and languages.
NATIONALITIES = words("""
english french german italian spanish
american british dutch welsh scottish irish russian chinese japanese korean greek roman turkish polish swedish danish
norwegian finnish hungarian czech austrian swiss portuguese brazilian mexican canadian australian indian pakistani
iranian iraqi israeli palestinian egyptian syrian saudi arab arabic african asian european ukrainian belgian latin
hebrew gothic latvian lithuanian estonian bulgarian romanian albanian serbian croatian bosnian slovenian slovak
macedonian maltese cypriot icelandic georgian armenian azerbaijani kazakh uzbek mongolian afghan bangladeshi nepali
nepalese burmese thai vietnamese cambodian malaysian indonesian filipino singaporean taiwanese tibetan lebanese
jordanian kuwaiti qatari emirati omani yemeni libyan tunisian algerian moroccan sudanese ethiopian eritrean somali
kenyan ugandan tanzanian rwandan zambian zimbabwean malawian mozambican angolan congolese cameroonian nigerian ghanaian
ivorian senegalese malian gambian liberian namibian chilean argentine argentinian peruvian bolivian colombian venezuelan
ecuadorian paraguayan uruguayan cuban haitian jamaican guatemalan honduran salvadoran nicaraguan panamanian scandinavian
flemish catalan basque hindi urdu tamil telugu kannada malayalam bengali marathi gujarati punjabi sinhalese mandarin
cantonese farsi pashto swahili yiddish tagalog
kurdish chechen aboriginal berber tatar tajik turkmen kyrgyz uighur uyghur hazara pashtun baloch sindhi kashmiri bosniak
kosovar montenegrin moldovan belarusian sicilian sardinian bavarian prussian breton cornish manx gaelic celtic slavic
slavonic germanic nordic iberian anglo-saxon hispanic latino mayan aztec incan maori polynesian melanesian micronesian
fijian samoan tongan papuan hawaiian inuit eskimo cherokee navajo zulu xhosa swazi batswana bahraini mauritian
mauritanian chadian togolese gabonese guinean djiboutian comorian malagasy burundian barbadian bahamian trinidadian
grenadian belizean guyanese surinamese bhutanese laotian bruneian timorese maldivian sikh shia shiite sunni zionist
byzantine ottoman venetian florentine neapolitan parisian viennese siberian crimean caucasian circassian ossetian
abkhazian flemish walloon frisian tyrolean galician andalusian castilian californian texan floridian alaskan tasmanian
""")
# Never a name alone, but may be part of one ("New York", "Good Friday", "First World War").
# Of quantities ("8 MiB").
UNITS = words("kib mib gib tib kb mb gb tb hz khz mhz ghz kw kwh mw mwh gw gwh twh mva kva")
LONERS = (
    COMMANDS
    | UNITS
    | NATIONALITIES
    | words("""
new old young great poor big small large early late later recent former little long last first second third next dear
damn god gods goodness gracious mercy merry happy good bless welcome heaven heavens lord lords devil nonsense bravo
quick sorry hooray gentleman gentlemen lady ladies two three four five six seven eight nine ten eleven twelve twenty
thirty forty fifty hundred thousand million billion part section volume book canto act scene appendix figure table notes
preface introduction contents conclusion abstract references bibliography index parts sections figures tables appendices
title titles subtitle cover covers heading headings caption captions footnote footnotes endnotes acknowledgement
acknowledgements acknowledgment acknowledgments dedication dedications foreword prologue epilogue overview summary
glossary errata addendum annex annexes id ids schedule schedules exhibit exhibits
attachment attachments enclosure preamble recital recitals article articles paragraph paragraphs subparagraph
subparagraphs clause clauses subsection subsections true false north south east west northern southern eastern western
majesty highness excellency papa mamma mama mum dad daddy mummy test tests lordship ladyship christian christians
muslim islamic jewish catholic protestant buddhist hindu victorian soviet persian am pm a.m p.m bc ad bce ce ii iii iv
vi vii viii ix xi xii
""")
)
DAYS = words("""
monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays
fridays saturdays sundays montag dienstag mittwoch donnerstag freitag
samstag sonntag
""")
DAY_NAMES_BEFORE = words("black good easter palm bloody ash super holy cyber whit shrove maundy")
SEASONS = words("spring summer autumn winter fall")

# Stop words only at the start of a sentence; elsewhere a capital makes them part of a name.
OPENERS = words("""
according accordingly additionally afterwards admittedly apart asked based born certainly clearly come compared
consequently currently cried critics despite due earlier eventually example experts given having initially inside
later located made nearby news nowadays observers officials opened originally outside people police present previously
reports researchers scientists scholars seen sources supporters taken today took used using wherein written what's
that's it's there's here's let's actually again aside below best better common different every good hard half high
higher historically important interestingly less long lots low lower modern nice open plenty right same short simply
small sometimes senior strange strong der die das den dem ein eine einer eines und oder aber mit für auf im am bei
nach vor zu zum zur aus ist war nicht auch sie es er ich wir wenn wie les une dans avec pour sur mais ce cette ces il
elle nous vous un una por para con pero suddenly sure then through true unable unfortunately whole wrong yours men
women children man woman work years prior
""")

MONTHS = words("january february march april may june july august september october november december")

# Before a name: a person. A feminine honorific marks another person than the surname alone.
FEMALE_HONORIFICS = words(
    "mrs ms miss lady madam madame mme mlle mademoiselle dame queen princess duchess countess aunt sra srta"
)
# Before a surname: a man, different from a woman with the same surname.
MALE_HONORIFICS = words("mr sir monsieur signor señor sr herr herrn lord king prince father brother uncle m d")
HONORIFICS = FEMALE_HONORIFICS | words("""
mr sr messrs dr prof professor doctor sir lord master monsieur signor signora signore senor señor señora don doña herr
frau fräulein king prince emperor empress tsar czar duke archduke archduchess infante infanta landgrave margrave count
baron baroness earl marquis viscount pope bishop
archbishop cardinal rev revd reverend cllr cllrs drs profs professors pc pcso cmdr cdr adm supt insp
father brother sister uncle cousin captain capt colonel col general gen major
lieutenant lt sergeant sgt corporal admiral commander president chancellor premier senator sen governor gov
prefect congressman congresswoman representative rep mayor judge justice justices honorable honourable
ambassador sheikh sheik sultan ayatollah imam
rabbi mullah
hon detective inspector minister chairman chairwoman ceo herrn kanzler kanzlerin bundeskanzler bundeskanzlerin
councillor councillors councilman councilwoman alderman chief director engineer clerk treasurer coach striker goalkeeper
präsident präsidenten präsidentin ministerin ministerpräsident außenminister außenministerin président présidente
presidente
""")

# Behind the name of a person, in capitals.
POSTNOMINALS = words("mp mep msp obe cbe mbe phd frs frcs kc qc sc")
JUDGES = words("j ja cj lj jj jja jsc")  # "Mensah J", in law

# Honorifics that also describe ("General Public License").
DESCRIBING_HONORIFICS = words("""
general major master cardinal justice premier chief director engineer clerk coach striker treasurer pc
""")

# One-letter honorifics by language; an initial in other languages ("M. Dupont", "D. Juan Pérez").
INITIAL_HONORIFICS = {"fr": words("m"), "es": words("d")}

# Honorifics that are part of the name ("Pope Francis", "Prince Albert").
REGAL = words("""
king queen prince princess emperor empress tsar czar duke duchess archduke archduchess infante infanta pope saint st
""")

# Before a name whose "of" belongs to it ("King Henry of England", "Lord Byron of Rochdale").
NOBLE = REGAL | words(
    "lord lady count countess baron baroness earl marquis viscount sultan sheik sheikh father brother sister"
)

SAINTS = words("st saint")

# Before the name of a ship, in capitals.
SHIPS = words("mv ms mt ss hms uss rms hmas hmcs ins fv sv my sy")

# Before an honorific, part of it ("Prime Minister").
RANKS = words("prime vice deputy chief former acting interim town police finance fire city county district borough")

# Dropped before a name that is known without them ("Old Marley"); kept otherwise ("Old Trafford").
EPITHETS = words("old young little poor dear good honest")

# Dropped before anything ("Merry Christmas").
GREETINGS = words("merry happy dear")

# After "X's", lower case: the phrase names a person ("Scrooge's nephew") or a place ("Scrooge's office").
KIN = words("""
nephew niece uncle aunt cousin wife husband widow widower son daughter brother sister mother father grandfather
grandmother grandson granddaughter stepfather stepmother stepson fiancé fiancée clerk partner servant maid butler
secretary assistant lawyer doctor physician boss employer landlord housekeeper bodyguard teacher tutor master
apprentice
""")
HOLDINGS = words("house office offices home chambers shop store farm castle palace residence mansion cottage estate")

PERSON_VERBS = words("""
said says say saying replied replies asked asks cried exclaimed answered returned whispered shouted muttered murmured
inquired observed remarked added continued told tells sighed laughed smiled nodded thought retorted demanded repeated
growled pursued faltered interposed resumed explained argued insisted admitted wrote recalled joked who whom presided
detto déclaré écrit dicho sagte meinte fragte schrieb starb dijo afirmó nació escribió murió disse dichiarò nacque
scrisse dipinse naquit écrivit resigned died married studied taught testified graduated sang wept knelt frowned
shrugged grinned beckoned bowed glided stared gazed glanced shuddered sobbed thinks believes wonders wondered
regretted rang
""")
# After "X's": X is a person.
BODY = words("hand hands eyes voice shoulder shoulders lips cheek cheeks knees hair forehead throat")
PLACE_PREPOSITIONS = words("in near throughout outside inside around across à en vicino")

# In small letters right before a name ("her husband, Pierre", "the river Po", "the company, Acme").
PERSON_ROLES = KIN | words("""
president chairman chairwoman chairperson minister premier executive director leader founder author poet painter singer
actor actress composer physicist chemist mathematician philosopher historian scientist professor king queen emperor
captain commander general senator governor mayor judge spokesman spokeswoman coach striker goalkeeper friend named
""")
# Before "by" and a person.
MAKING = words("""
directed written produced played composed painted sung performed portrayed authored edited translated conducted designed
sculpted choreographed narrated voiced created invented discovered devised proposed improved suggested
""")
PLACE_ROLES = words("""
river lake town city village province region district county island capital port mountain volcano valley municipality
suburb neighbourhood neighborhood prefecture hamlet
""")
ORGANIZATION_ROLES = words("""
company firm group bank magazine newspaper charity startup manufacturer airline publisher band operator insurer maker
lender retailer carrier broadcaster brewer builder contractor supplier developer regulator utility brokerage chain club
automaker carmaker drugmaker chipmaker
""")
# Before "by" and an organization.
INDUSTRY = words("made manufactured owned sold operated distributed supplied sponsored")
# Before the code of a class ("Stage G5").
GRADES = words("stage grade class category type level group phase tier")
# Before "at" or "for" and an organization, at the start of which no place stands.
STAFF = words("""
analysts analyst economists economist strategists strategist employees spokesman spokeswoman spokesperson researchers
engineers lawyers attorneys
""")
# In front of "of" or "in", a company.
STOCK = words("shares stock")
# After "the X Y": what organizations do ("the Federal Reserve meets").
AGENT_VERBS = words("""
announced reported warned ruled voted meets met approved rejected adopted expects plans agreed raised issued
published pays paid won lost beat signed filed proposed recommended fined
""")
# In front of "of" at the start of a sentence, never part of the name ("Residents of Canal Street").
OF_OPENERS = words("""
shares residents members sales employees officials parts copies workers citizens supporters fans profits prices voters
owners users tests lawyers analysts shareholders customers students patients visitors length number count size
introduction implementation installation removal addition creation configuration
""")
# In small letters right after a name, or after its possessive ("Acme shares", "Acme's profit").
ORGANIZATION_NOUNS = words("""
shares stock profit profits revenue revenues sales employees headquarters executives customers shareholders investors
spokesman spokeswoman subsidiary
""")

ORGANIZATION_TAILS = words("""
inc incorporated ltd limited llc llp plc corp corporation co company companies group holdings holding gmbh ag sa spa srl
sarl se kg kgaa nv bv bank university college school institute institution academy agency association authority bureau
board cabinet centre center commission committee congress corps council court department federation force forces
foundation fund government guild league ministry museum observatory office orchestra organisation organization
parliament party
police press senate service services society syndicate times tribunal tribune trust union club fc airlines airways
motors legion band choir highways records pictures studios entertainment industries partners capital ventures
technologies systems networks software labs laboratories laboratory pharmaceuticals hospital brewery bakery roofing
plumbing chemical chemicals semiconductor semiconductors insurance energy petroleum financial electronics therapeutics
telecom logistics securities mutual library reserve synod nation movement
symphony philharmonic brothers bros sons alliance coalition
consortium forum infirmary hospice inspectorate directorate secretariat ombudsman ambulance shipping refrigeration
haulage shipyard shipyards partnership consultancy cooperative cooperatives co-operative co-operatives co-op coop panel
taskforce navy army conservancy coastguard constabulary gazette observer herald chronicle examiner telegraph mercury
advertiser afc rfc united rovers wanderers athletic albion hotspur
""")
# First words of organizations in other languages ("Instituto Boreal").
HEADS_ABROAD = words("""
grupo gruppo groupe gruppe cooperativa société sociedad società stichting verein fundación fundação fundació fondation
hospital hôpital ospedale ospital clínica lycée liceo colegio escuela ministerio partido federación comisión
fondazione kanzlei banca banco banque asociación associação associazione instituto istituto institut universidad
universidade università université universität sindicato consorzio consorcio azienda ayuntamiento cassa caisse teatro
théâtre orquesta orchestre galerie galleria galería
""")
CLUB_HEADS = words(
    "fc afc ac sc vfb vfl tsv sv ifk fk nk rc deportivo atletico atlético dinamo dynamo spartak lokomotiv olympique"
)
# First words of places in other languages ("Monte Cinta").
PLACE_HEADS_ABROAD = words("""
monte mont porto puerto vila lagoa laguna lago rio río isla ilha isola punta ponta cabo capo cerro sierra serra valle
praia playa plaza piazza aldeia
""")
# Alone with a capital, an organization ("the Board agreed").
BODIES = words(
    "agency authority board bureau cabinet commission committee company council government legislature ministry "
    "parliament senate treasury tribunal"
)
# Behind "X and Y": an organization ("Food and Drug Administration").
JOINED_TAILS = words("administration executive inspectorate")
ORGANIZATION_HEADS = words("""
agency authority university bank ministry department bureau institute institution college academy association
federation house board court church council committee society league union confederation organisation organization
school order knights chamber diocese regulator
archdiocese grupo gruppo groupe cooperativa société sociedad stichting verein fundación fundação fondation fondazione
kanzlei banca asociación friends universität université universidad università banco banque bundesbank zentralbank
""")
ORGANIZATIONS = words("""
parliament bundestag bundesrat landtag nationalrat knesset duma sejm riksdag folketing storting eduskunta althing
oireachtas dáil dail seanad majlis congress senate kremlin pentagon interpol nato asean mercosur caricom unesco unicef
fed commission council committee ministry
agency bureau bundesbank labour labor hamas fatah hezbollah hizbollah hizbullah taliban taleban qaeda qaida al-qaeda
isil daesh
mossad shabak luftwaffe wehrmacht gestapo tory tories likud swapo frelimo
""")
# Well-known organizations by their acronyms; any other acronym needs evidence in the text.
ORGANIZATIONS_IN_CAPITALS = words("""
aaa abc abn acm aclu acs adb afl afp aol ap apa apec asean at&t atf au awb ba bae basf bbc bbva bcg bea bis bmw bnp bp
bsi bt btc cbc cbi cbo cbs cdc cdu cern cftc cia cms cnbc cnn cps csu darpa dc dea dell dfb dfl dhl dhs din dnc doj
dot dreamworks dup dvla ea eads eba ebu ecb ecj ecowas efta eib emi eon epa eric esa esma espn etsi eu europol exxon
faa fao far fbi fca fcc fda fdic fdp fed fema ferc fifa fim fis fkf fsb ftc ftx gao gchq ge gm gop gru gsk hbo hhs hp
hrw hsbc iaaf iaea iana iata ibm icann icao icc icj icrc ieee ietf ifc ikea ilo imf ing interpol ioc iom iphc ipcc ira
irs isis iso itt itu itv jal jaxa kfc kfw kgb khl kia klm kpmg lapd lg lse lvmh mca mgm mi5 mi6 mit mlb mls mpaa msf
msnbc mtv naacp nafta nasa nascar nato nba nbc ncaa nchc ncis ndp nec nfl nhl nhs nhtsa nice nih nist noaa npr nra nrc
nsa nsf ntsb nvidia nwa nyc nypd nyse oas oecd ofcom oiml omb onr opec osce osha pbs peta pga plo ppp psg psv pwc raf
rai rbi rca rfe rim rko rnc rspca rte sap sas sbs sec sga sia snp sony spd ssa stasi suny swift tass tbs tnt tsa tsmc
tvn twa ubs ucla uefa uk ukip un unaids undp unep unesco unfccc unhcr unicef unido universal unodc unsc upi ups us
usaf usaid usc usda usgs usmc usn usps va vw wada wbo wef wfp who wipo wmo wnba wto wwe wwf ymca zdf
""")
# Well-known acronyms of things.
TERMS_IN_CAPITALS = words("""
agm api atm cctv cd ceo cfo cio cpu css csv cto cv dba dbs dns dvd ecg eeg egm ev faq gdp gdpr gp gps gpu hgv html http
hvac iban id ip isa it kpi lan led mfa mot mri nda okr paye pcr pdf pin ppe pr qa qr ram raid rfc rpi sdk seo sla slo
sms smtp sql ssd ssh ssl sso suv svg tb tls tv uat ui url usb ux vat vm voip vpn wan wifi xml yaml
aids dna hiv rna sars
""")
LEGAL_SUFFIXES = words(
    "inc incorporated ltd limited llc llp plc corp corporation co company gmbh ag sa spa srl sarl se kg kgaa nv bv"
)

PLACE_TAILS = words("""
street road lane avenue square boulevard drive town city village county province state states district borough island
islands isle isles river lake sea ocean bay gulf strait channel mountain mountains hill hills valley desert forest
park gardens garden bridge castle palace stadium arena airport station harbour harbor port peninsula coast
beach canal churchyard terrace point reef reefs lighthouse quay wharf pier
building pavilion annexe arcade area zone region weir narrows tarn sluice aqueduct viaduct tunnel crossing marina
cathedral abbey inn farm arms temple plaza kingdom republic empire prison falls creek cape glacier plateau
plains ridge canyon gorge highway heights allotments close crescent mews monument pass
""")
PLACE_HEADS = words("camp mount lake loch lough cape fort port gulf bay isle isles river strait republic kingdom city")
# Behind a name: a building, or the body that has its seat there ("Trinity House").
BUILDINGS = words("hotel house manor cottage lodge tower hall chapel")
# Alone with a capital, a person who holds the office ("the Chair agreed").
OFFICES = words("""
chair vice-chair chairman chairwoman chairperson treasurer secretary clerk warden headteacher headmaster headmistress
principal bursar convener rector dean vice-chancellor chancellor provost registrar convenor
""")

EVENT_TAILS = words("""
war wars battle revolution uprising rebellion crisis massacre olympics games championship championships cup tournament
festival election elections referendum conference summit earthquake hurricane tsunami flood pandemic treaty accord
accords agreement siege crusade crusades eve day awards prix regatta carnival marathon exhibition symposium biennale
gala fete fête jubilee meeting fair shield trophy lecture
""")
EVENT_HEADS = words("battle siege treaty revolution hurricane typhoon war massacre feast")
STORMS = words("storm hurricane typhoon cyclone")  # before a name
EVENTS = words("christmas easter ramadan thanksgiving halloween hanukkah diwali olympics")

FEMALE_GIVEN_NAMES, GIVEN_NAMES = load_given_names()
"""Given names of women only, in all languages, and all given names."""

# Suffixes of adverbs and participles that open sentences ("Suddenly Scrooge ..."); given names are excepted.
OPENER_SUFFIXES = ("LY", "ING", "ED")

# Bynames after "the" ("Peter the Great").
BYNAMES = (
    "Great|Terrible|Conqueror|Younger|Elder|Magnificent|Lionheart|Wise|Bold|Confessor|Bald|Pious|Good|Bad|First|Grey|Gray|"
    "White|Black|Red|Brown|Green|Fair|Fat|Tall|Short|Lame|Blind|Mad|Brave|Cruel|Just|Simple|Fearless|Impaler|Baptist|"
    "Navigator|Apostate|Hermit|Venerable"
)

# Upper-case words that are names and not emphasized words.
ACRONYMS = words("us uk un eu usa uae nato who aids hm")

# Suffixes of single words that describe and do not name.
ADJECTIVE_SUFFIXES = ("FUL", "OUS", "LESS")
