"""News-like and encyclopedic paragraphs, written for these tests, with the names that a reader finds in them.

Each is one document. Rules may be written from `TUNED`, but not from `HELD_OUT`, which only measures them.
"""

from __future__ import annotations

from typing import NamedTuple


class Paragraph(NamedTuple):
    text: str
    names: dict[str, str]  # written form -> type


TUNED = (
    Paragraph(
        "WARSAW, March 3 - Poland's Prime Minister Donald Tusk said on Monday that the European Commission would "
        "decide before Easter. \"We have waited long enough,\" Tusk told reporters in Brussels. The Commission "
        "declined to comment.",
        {"Poland": "GEO", "Donald Tusk": "PERSON", "European Commission": "ORGANIZATION", "Easter": "EVENT",
         "Tusk": "PERSON", "Brussels": "GEO", "Warsaw": "GEO", "Commission": "ORGANIZATION"},
    ),
    Paragraph(
        "McDonald's shares fell 3 percent after its chief executive, Chris Kempczinski, warned of weaker demand. "
        "Analysts at Goldman Sachs cut their target. McDonald's, based in Chicago, opened its first restaurant in "
        "San Bernardino.",
        {"McDonald": "ORGANIZATION", "Chris Kempczinski": "PERSON", "Goldman Sachs": "ORGANIZATION",
         "Chicago": "GEO", "San Bernardino": "GEO"},
    ),
    Paragraph(
        "Captain Jean-Luc Picard commands the starship Enterprise. Picard, played by Patrick Stewart, was born in La "
        "Barre, France. When Jean-\nLuc Picard gives an order, Commander Riker follows it.",
        {"Jean-Luc Picard": "PERSON", "Picard": "PERSON", "Enterprise": "UNKNOWN", "Patrick Stewart": "PERSON",
         "La Barre": "GEO", "France": "GEO", "Commander Riker": "PERSON"},
    ),
    Paragraph(
        "The World Health Organization (WHO) declared the outbreak over on 14 June 2016. The WHO's director-general, "
        "Margaret Chan, thanked health workers in Guinea and Liberia. WHO staff will stay in Monrovia.",
        {"World Health Organization": "ORGANIZATION", "WHO": "ORGANIZATION", "14 June 2016": "EVENT",
         "Margaret Chan": "PERSON", "Guinea": "GEO", "Liberia": "GEO", "Monrovia": "GEO"},
    ),
    Paragraph(
        "The Treaty of Versailles was signed on June 28, 1919, in the Hall of Mirrors. Georges Clemenceau presided; "
        "Woodrow Wilson and David Lloyd George sat beside him. Germany's delegates had no choice.",
        {"Treaty of Versailles": "EVENT", "June 28, 1919": "EVENT", "Hall of Mirrors": "GEO",
         "Georges Clemenceau": "PERSON", "Woodrow Wilson": "PERSON", "David Lloyd George": "PERSON",
         "Germany": "GEO"},
    ),
    Paragraph(
        "Marie Curie was a physicist and chemist. Born Maria Sklodowska in Warsaw, she moved to Paris in 1891. With "
        "her husband, Pierre Curie, she discovered radium. Curie won the Nobel Prize twice. The radium institute in "
        "Warsaw, now the Maria Sklodowska-Curie National Research Institute, was founded in 1932.",
        {"Marie Curie": "PERSON", "Maria Sklodowska": "PERSON", "Warsaw": "GEO", "Paris": "GEO",
         "Pierre Curie": "PERSON", "Curie": "PERSON", "Nobel Prize": "EVENT",
         "Maria Sklodowska-Curie National Research Institute": "ORGANIZATION"},
    ),
    Paragraph(
        "BREAKING NEWS\n\nFLOODS HIT NORTHERN ITALY\n\nHeavy rain fell over Emilia-Romagna on Tuesday. Firefighters "
        "in Bologna rescued a family from a roof. The river Po rose by two metres, the regional agency said.",
        {"Emilia-Romagna": "GEO", "Bologna": "GEO", "Po": "GEO", "Italy": "GEO"},
    ),
    Paragraph(
        "\"Nobody expected it,\" said Aisha Rahman, who teaches at the University of Cape Town. Rahman's study, "
        "published in Nature, found that penguins near Boulders Beach had lost half their nests since 2001.",
        {"Aisha Rahman": "PERSON", "University of Cape Town": "ORGANIZATION", "Rahman": "PERSON",
         "Nature": "ORGANIZATION", "Boulders Beach": "GEO"},
    ),
    Paragraph(
        "Lake Baikal lies in southern Siberia, between Irkutsk Oblast and the Republic of Buryatia. It is the "
        "deepest lake in the world. Russian scientists from the Limnological Institute study its seals. The Angara "
        "flows out of it.",
        {"Lake Baikal": "GEO", "Siberia": "GEO", "Irkutsk Oblast": "GEO", "Republic of Buryatia": "GEO",
         "Limnological Institute": "ORGANIZATION", "Angara": "GEO"},
    ),
    Paragraph(
        "Apple Inc. sued Samsung Electronics in April 2011. A jury in San Jose awarded Apple more than $1 billion. "
        "Samsung appealed to the U.S. Supreme Court, and Judge Lucy Koh set a new trial. Apple and Samsung settled "
        "in 2018.",
        {"Apple Inc": "ORGANIZATION", "Samsung Electronics": "ORGANIZATION", "San Jose": "GEO",
         "Apple": "ORGANIZATION", "Samsung": "ORGANIZATION", "U.S. Supreme Court": "ORGANIZATION",
         "Judge Lucy Koh": "PERSON"},
    ),
)  # fmt: skip

HELD_OUT = (
    Paragraph(
        "NAIROBI - Kenya's President William Ruto met Ursula von der Leyen on Thursday. The two signed a trade "
        "agreement at State House. Von der Leyen praised Nairobi's \"courage\"; Ruto thanked the European Union.",
        {"Kenya": "GEO", "William Ruto": "PERSON", "Ursula von der Leyen": "PERSON", "State House": "GEO",
         "Nairobi": "GEO", "Ruto": "PERSON", "European Union": "ORGANIZATION"},
    ),
    Paragraph(
        "Toyota Motor Corporation will build a battery plant in Liberty, North Carolina. The company, led by Koji "
        "Sato, said the plant would open in 2025. Toyota's rival Honda plans a similar site in Ohio with LG Energy "
        "Solution.",
        {"Toyota Motor Corporation": "ORGANIZATION", "Liberty": "GEO", "North Carolina": "GEO",
         "Koji Sato": "PERSON", "Toyota": "ORGANIZATION", "Honda": "ORGANIZATION", "Ohio": "GEO",
         "LG Energy Solution": "ORGANIZATION"},
    ),
    Paragraph(
        "The Battle of Hastings was fought on 14 October 1066 between the Norman army of William the Conqueror and "
        "an English army under Harold Godwinson. Harold's death near Battle Abbey ended the Anglo-Saxon kingdom of "
        "England.",
        {"Battle of Hastings": "EVENT", "14 October 1066": "EVENT", "William the Conqueror": "PERSON",
         "Harold Godwinson": "PERSON", "Harold": "PERSON", "Battle Abbey": "GEO", "England": "GEO"},
    ),
    Paragraph(
        "Old McDonald had a farm, and Ronald McDonald had a clown's red nose. But Angus McDonald, a lawyer from "
        "Glasgow, has neither. \"I get letters for the restaurant every week,\" McDonald said with a laugh.",
        {"Old McDonald": "PERSON", "Ronald McDonald": "PERSON", "Angus McDonald": "PERSON", "Glasgow": "GEO",
         "McDonald": "PERSON"},
    ),
    Paragraph(
        "The International Monetary Fund (IMF) lowered its forecast for Argentina. Kristalina Georgieva, who heads "
        "the IMF, spoke at Davos. Argentina's economy minister, Luis Caputo, disagreed: \"The Fund has been wrong "
        "before.\"",
        {"International Monetary Fund": "ORGANIZATION", "IMF": "ORGANIZATION", "Argentina": "GEO",
         "Kristalina Georgieva": "PERSON", "Davos": "GEO", "Luis Caputo": "PERSON"},
    ),
    Paragraph(
        "Chapter 2: The Voyage\n\nOn the morning of 3 August 1492 Christopher Columbus sailed from Palos de la "
        "Frontera. His three ships were the Santa María, the Pinta and the Niña. In October he reached an island in "
        "the Bahamas, which he called San Salvador.",
        {"3 August 1492": "EVENT", "Christopher Columbus": "PERSON", "Palos de la Frontera": "GEO",
         "Santa María": "UNKNOWN", "Pinta": "UNKNOWN", "Niña": "UNKNOWN", "Bahamas": "GEO", "San Salvador": "GEO"},
    ),
    Paragraph(
        "Serena Williams beat Venus Williams at Wimbledon in 2009. Their father, Richard Williams, had taught both "
        "on public courts in Compton. \"She was simply better,\" Venus said. Serena won the US Open three years "
        "later.",
        {"Serena Williams": "PERSON", "Venus Williams": "PERSON", "Wimbledon": "GEO", "Richard Williams": "PERSON",
         "Compton": "GEO", "Venus": "PERSON", "Serena": "PERSON", "US Open": "EVENT"},
    ),
    Paragraph(
        "Mount Kilimanjaro, a dormant volcano in Tanzania, rises 5,895 metres above the sea. Hans Meyer and Ludwig "
        "Purtscheller reached its summit in 1889. The Kilimanjaro National Park was listed by UNESCO in 1987. Many "
        "climbers start from the town of Moshi.",
        {"Mount Kilimanjaro": "GEO", "Tanzania": "GEO", "Hans Meyer": "PERSON", "Ludwig Purtscheller": "PERSON",
         "Kilimanjaro National Park": "GEO", "UNESCO": "ORGANIZATION", "Moshi": "GEO"},
    ),
    Paragraph(
        "The Federal Reserve held interest rates on Wednesday. Chair Jerome Powell told Congress that inflation "
        "\"remains too high\". Senator Elizabeth Warren asked whether the Fed had done enough. In New York, the Dow "
        "Jones Industrial Average closed lower.",
        {"Federal Reserve": "ORGANIZATION", "Jerome Powell": "PERSON", "Congress": "ORGANIZATION",
         "Senator Elizabeth Warren": "PERSON", "Fed": "ORGANIZATION", "New York": "GEO",
         "Dow Jones Industrial Average": "UNKNOWN"},
    ),
    Paragraph(
        "After the Fukushima disaster of March 11, 2011, Japan shut down its reactors. Tokyo Electric Power Company, "
        "known as TEPCO, was blamed by a parliamentary panel. Yukio Edano announced the evacuation. TEPCO's "
        "president, Masataka Shimizu, resigned in May.",
        {"Fukushima": "GEO", "March 11, 2011": "EVENT", "Japan": "GEO",
         "Tokyo Electric Power Company": "ORGANIZATION", "TEPCO": "ORGANIZATION", "Yukio Edano": "PERSON",
         "Masataka Shimizu": "PERSON"},
    ),
)  # fmt: skip
