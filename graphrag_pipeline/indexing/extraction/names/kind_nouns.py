"""Common nouns by the kind of thing that they name: "analyst" a person, "utility" a body, "estuary" a place.

A noun beside a name says what it is: "the opposition party Ardan Nua", "Verbund, the utility", "a grease called
Kluber". The lists are our own, of general English; `kind_of` also reads endings ("radiologist", "spokeswoman").

Keep out: nouns that name several kinds ("landlord", "church", "station master"), and patterns (`types/kind_cues.py`).
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from graphrag_pipeline.indexing.extraction.names.cues import KIN, words

PERSON_NOUN, BODY_NOUN, PLACE_NOUN, THING_NOUN, EVENT_NOUN = "person", "body", "place", "thing", "event"

_PERSONS = (KIN - words("landlord employer partner master")) | words("""
planner organiser convenor coordinator councilmember commissioner nurse registrar abbot academic accountant activist
adviser advisor alderman amateur ambassador analyst apprentice arborist archbishop architect archivist artist assistant
astronomer athlete attorney auditor author baker banker barber bard baron barrister bassist beekeeper bishop blacksmith
bookkeeper bookseller botanist boxer boy bursar butcher butler campaigner candidate caretaker carpenter cellist ceo cfo
chair chairman chairperson chairwoman chancellor chaplain chef chemist chief child clergyman clerk co-author co-chair
co-founder co-ordinator coach cobbler cofounder colleague columnist comedian commander commissioner composer conservator
constable coo cook coordinator coroner correspondent councillor councilman councilwoman counsel counsellor courier
critic cto curate curator cyclist dancer daughter dean defendant delegate dentist deputy designer detective diplomat
director doctor dramatist driver drummer ecologist economist editor educator electrician emir emperor engineer
entrepreneur envoy essayist ethnographer examiner executive expert explorer facilitator farmer father fellow filmmaker
firefighter fisherman foreman founder friend gardener general geologist girl goalkeeper governor graduate grandfather
grandmother groundsman guard guitarist harbourmaster head headmaster headmistress headteacher heir heiress historian
housekeeper husband illustrator inspector instructor interpreter inventor investigator janitor jeweller journalist judge
keeper king labourer lady landowner lawyer leader lecturer librarian lieutenant lifeguard linguist magistrate maid man
manager marshal mason mathematician matron mayor mechanic member mentor merchant midwife miner minister missionary monk
mother musician naturalist navigator negotiator nephew newcomer niece notary novelist nun nurse officer officiant
ombudsman ophthalmologist organiser organist organizer orphan painter paramedic passenger pastor patriarch pensioner
philanthropist philosopher photographer physician physicist pianist pilgrim pilot playwright plumber poet policeman
policewoman politician porter postdoc postman postmaster potter preacher premier presenter president priest prince
princess principal prisoner professor programmer prosecutor psychiatrist psychologist pupil quartermaster queen rabbi
rapporteur rector registrar reporter researcher resident retiree reviewer ringer sailor scholar schoolteacher scientist
scout scribe sculptor secretary senator sergeant servant settler shepherd sheriff signalman singer skipper smith
sociologist soldier soloist son soprano speaker specialist spokesman spokesperson spokeswoman statistician steward
stonemason storyteller striker student superintendent surgeon swimmer tailor teacher technician tenor theologian
therapist timekeeper toddler tourist trainee trainer translator traveller treasurer trumpeter trustee tutor
under-secretary undergraduate undersecretary vet veteran veterinarian vicar vice-chair vice-chancellor vice-president
violinist virologist vizier volunteer warden weaver webmaster welder widow widower wife witness woman worker writer
youngster zoologist midfielder defender winger fly-half scrum-half full-back fullback flanker prop wing-back centre-back
playmaker batsman bowler cricketer footballer linebacker quarterback outfielder goaltender golfer runner sprinter
wrestler archer rower racer skater surfer diver climber mountaineer jockey referee umpire linesman gymnast fencer
marathoner rapper vocalist songwriter lyricist saxophonist keyboardist percussionist violist animator screenwriter
narrator commentator moderator compere conductor shipmaster crofter smallholder rider rescuer angler hiker prebendary
archdeacon stallholder legislator congressman parliamentarian incumbent lobbyist unionist feminist anarchist humanist
evangelist theorist industrialist jurist surveyor proprietor survivor predecessor successor donor adjutant brigadier
commodore trooper gunner bombardier paratrooper sniper smuggler murderer burglar gangster offender suspect convict
hostage victim teenager islander villager householder homeowner commuter shareholder practitioner dietitian dietician
pharmacist radiographer physiotherapist optometrist optician anaesthetist anesthetist obstetrician consultant clinician
mathematician astrophysicist forecaster technologist agronomist forester ranger gamekeeper greengrocer bartender waiter
waitress receptionist chauffeur locksmith goldsmith glazier plasterer roofer joiner machinist deckhand coxswain helmsman
crewman astronaut cosmonaut aviator sportsman schoolmaster schoolboy schoolgirl alumnus alumna intern cashier auctioneer
assessor adjudicator arbitrator mediator whistleblower hacker blogger podcaster engraver bookbinder seamstress potter
restorer archaeologist numismatist restaurateur businessman businesswoman financier magnate tycoon activist dissident
exile refugee migrant fugitive caddie protester protestor picket neighbour neighbor bystander onlooker eyewitness
motorist pedestrian parishioner congregant caller reader viewer listener leaseholder freeholder lifeboatman harbormaster
stationmaster administrator trader liquidator attorney-general governor-general secretary-general
solicitor-general director-general prosecutor-general mp mep msp skater defector fugitive militant gunman
lawmaker policymaker peacekeeper jihadist extremist terrorist bomber hijacker kidnapper looter rioter insurgent
captive detainee inmate asylum-seeker superstar debutant rookie captain skipper vice-captain
allrounder all-rounder spinner wicketkeeper leg-spinner
investor billionaire millionaire devotee frontbencher backbencher pollster strategist tactician anchorman anchorwoman
newsreader cleric mufti ayatollah seminarian prelate warlord chieftain despot monarch statesman stateswoman backpacker
holidaymaker cabbie trucker railwayman fireman ambulanceman infantryman airman serviceman servicewoman guardsman
commando mercenary guerrilla separatist environmentalist conservationist ornithologist cardiologist oncologist
hotelier publican winemaker vintner grazier pastoralist farmhand jillaroo stockman shearer publicist impresario
choreographer ballerina comedienne cartoonist caricaturist biographer lexicographer ghostwriter scriptwriter
showrunner celebrity supermodel socialite medallist medalist olympian paralympian seamer paceman fieldsman shortstop
halfback wingback tailback cornerback flyhalf five-eighth stockbroker underwriter actuary paymaster taskmaster handyman
tradesman bricklayer
roadworker wharfie stevedore longshoreman watchman doorman bouncer jailer warder parolee probationer felon rapist
qualifier finalist semifinalist quarterfinalist contender challenger opponent runner-up titleholder
dealer stalker assassin vandal arsonist poacher trafficker informant informer
""")
_BODIES = words("""
academy accountants advisers agency airline alliance architects assembly association auctioneers auditors authority
automaker bakery band bank board body brewer brewery broadcaster broker brokerage brokers builder builders bureau
business cabinet carmaker carrier caterers chain charity chipmaker choir cleaners clinic club co-op co-operative
coalition college commission committee company conglomerate congregation consortium consultancy consultants contractor
contractors cooperative corporation council court creamery dealers dealership decorators department developer
developers diocese directorate distillery distributor dredgers dynasty electricians employer engineers enterprise
exchange exporter fabricators faculty federation firm firms forum foundation foundry franchise fund funder garage
grocer grower guild gym haulier hauliers hospice hospital importer incubator inspectorate installer installers
institute institution insurer insurers ironmonger journal lab label laboratory landscapers lawyers league lender lobby
magazine maker makers manufacturer manufacturers marketplace ministry monastery museum newspaper ngo non-profit
nonprofit not-for-profit nursery operator orchestra order organisation organization outfit outlet parliament
partnership party periodical plumbers practice printers processor producer producers publisher publishers quango
regiment regulator restaurant restorers retailer retailers roofers scaffolders school sect seller senate shipbuilder
shipper shipyard shop shopkeeper society solicitors squad start-up startup stockbrokers studio subcontractor
subsidiary supermarket supplier suppliers surveyors syndicate team tenderer think-tank thinktank tribe tribunal troupe
trust undertaking union university utility vendor watchdog wholesaler workshop
""")
_PLACES = words("""
archipelago area avenue bay beach borderland borough boulevard brook campus canal canton cape capital city coast
commune continent country county creek crossroads dale delta desert district enclave estuary fell fjord ford forest
garden glacier glen gorge governorate gulf hamlet harbor harbour headland highlands hill hillside inlet island isle
islet junction kingdom lagoon lake lane locality loch lough marina marsh marshland meadow metropolis moor mountain
municipality neighborhood neighbourhood oasis oblast ocean outpost parish park peak peninsula pit plain plateau port
prefecture promontory province quarry quay reef region reserve reservoir resort ridge river road ruin ruins sea
seaport settlement shire shoal shore spit square state strait stream street suburb summit territory town township
trail tributary valley village volcano waterfall waterway wetland wood woodland
""")
_THINGS = words("""
battery blade board cable cell charger connector gearbox puller screen switch
project technology initiative
acid act adhesive aircraft airliner album algorithm alloy amp analgesic anthem antibiotic antibody antigen antiviral
app appliance application array assay bacterium ballad barge beer bill biomarker boat book brand breed brochure
browser buffer bug bus bylaw camera car carriage catalyst cereal certificate certification cheese chemical chip cipher
classification classifier cleaner coaster cocktail code codec command compiler component compound concept contract
controller convention crane crop cruiser crystal currency daemon dance database dataset debugger decree defect degree
destroyer detergent device diagnosis diesel disease dish disorder display document drama dredger drink drone drug dye
element encoder engine enzyme epic excavator extension ferry fertiliser fibre film filter firmware fish flag flower
font format framework freighter frigate fuel fungicide fungus gadget game gearbox gene generator genus grease grinder
gun handbook hatchback hormone hull hymn hypothesis index infection ingredient inhibitor insecticide instrument
interface invention jet kernel kit language laptop law leaflet lens library licence license lifeboat liner locomotive
loom lorry lubricant lugger machine manifesto manual map material measure medicine memoir metal method metric
microcontroller microscope mineral miniseries missile model module movie molecule motor motorcycle mouse musical nerve
novel novella
nutrient opera ordinance ore organ paint painting paper parasite pasta patch patent pathogen payload pesticide phone
pickup pigment plane plant plasma plug-in plugin podcast poem policy polymer pool portal portrait prayer procedure
product program protein protocol prototype psalm pump query questionnaire radar radio railcar receptor recipe relay
remedy robot rocket rootstock rule sailboat saloon satellite sequel prequel sitcom soundtrack telefilm sauce scale
scanner schema schooner score screen script
sealant sealer seed sensor serial series server shampoo ship shrub simulator sloop smack soap sofa software solvent
sonata song species spreadsheet standard statin statue statute steamer steamship steroid strain structure submarine
sweetener symphony symptom syndrome system tablet talisman tanker technique test textbook theorem theory therapy tool
toolkit toxin tractor trailer train tram trawler treatment tree trial tube tug turbine tyre vaccine valve van variant
variety vehicle vessel video virus vitamin waltz weapon website wherry widget windjammer wine worm yacht yeast
""")
_EVENTS = words("""
battle campaign carnival ceasefire ceremony championship coronation coup crisis cup cyclone derby earthquake eclipse
election epidemic eruption exhibition expo fair famine feast festival fete fire flood gala holiday hurricane jamboree
marathon massacre mutiny olympiad outbreak pageant pandemic parade plague race rally rebellion recession regatta
retreat revolt riot siege storm strike summit symposium tournament typhoon uprising war wedding
""")
_SHOPS = words("""
jewellers jewelers butchers bakers opticians solicitors chemists grocers greengrocers florists fishmongers ironmongers
newsagents outfitters stationers booksellers builders plumbers electricians joiners roofers tailors barbers
hairdressers caterers confectioners brewers bakery brewery dairy garage stores bookshop pharmacy nursery restaurant
cafe café bistro brasserie delicatessen emporium boatyard shipyard coaches removals taxis
""")
_ENDINGS = (
    (
        (
            "ologist",
            "ographer",
            "woman",
            "person",
            "iatrist",
            "wright",
            "ician",
            "icist",
            "mistress",
            "keeper",
            "sman",
            "-in-law",
            "smith",
            "shipmaster",
        ),
        PERSON_NOUN,
    ),
    (("maker", "makers", "builders"), BODY_NOUN),
)
_KINDS = (
    (_PERSONS, PERSON_NOUN),
    (_BODIES, BODY_NOUN),
    (_PLACES, PLACE_NOUN),
    (_THINGS, THING_NOUN),
    (_EVENTS, EVENT_NOUN),
)


_MIN_MEN = 5  # letters: "businessmen" are persons, "omen" is none
_N_KINDS = Counter(noun for nouns, _ in _KINDS for noun in nouns)


@lru_cache(maxsize=1 << 14)
def kind_of(noun: str) -> str | None:
    """Return the kind of thing that a common noun in lower case names; None if it names several or none."""
    key = noun.upper()
    if _N_KINDS[key] > 1:
        return None
    for listed, kind in _KINDS:
        if key in listed:
            return kind
    return next((kind for endings, kind in _ENDINGS if len(noun) > 6 and noun.endswith(endings)), None)


def is_trade(noun: str) -> bool:
    """Whether a noun in lower case behind a possessive names a shop or firm: "jewellers", "bakery"."""
    return noun.upper() in _SHOPS


@lru_cache(maxsize=1 << 14)
def kind_of_plural(noun: str) -> str | None:
    """Return the kind of the singular of a noun in lower case: "cities" are places, "utilities" bodies."""
    if noun.endswith("men") and len(noun) > _MIN_MEN:
        return kind_of(f"{noun[:-2]}an")
    singulars = (
        noun.removesuffix("ives") + "ife",
        noun.removesuffix("ies") + "y",
        noun.removesuffix("es"),
        noun.removesuffix("s"),
    )
    known = (kind_of(singular) for singular in singulars if singular != noun)
    return next((kind for kind in known if kind), None) if noun.endswith("s") else None
