"""Words in the names of columns, and what they mean for the column."""

from __future__ import annotations

import re


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


IDS = words(
    "id ids uuid guid uid pid sid eid hhid ssn nin ein mrn isbn issn doi imei iban vin sku upc barcode "
    "identifier identifiant kennung kennziffer rownames rowname rowid recno seqno serial serialno "
    "personnummer matricule dossier cusip isin sedol gvkey permno permco geoid ccn npi orcid ansi "
    "idno idnum idnr idcode seqn seqnum caseid casenum checksum chksum md5 "
    "email phone telephone telefon fax "
)
NOT_FIRST = words("email phone telephone telefon fax sid eid pid ")
"""Identifiers as the last word of a name only: a phone, but not phone_service."""
HOW_MANY = words("n num number no nr count nummer numero número numéro numer nro ")
REGISTERS = words(
    "orden ordre ordem ordine order serie série series serial registro expediente folio vorgang "
)
"""What such a word numbers in a register: Nº Orden."""
CODES = words("code cod codigo código codice cve clave ")
"""Names that begin so are codes: Codigo comuna."""
COUNTERS = words("key keys pk index idx no nr num number nummer row record line obs case unnamed ")
"""Names of identifiers where the content agrees: as often as not they are something else."""
KEYS = tuple(
    words(
        "key number nummer nr schlüssel schluessel sleutel nyckel numero número numéro numer nro clave "
        "clé chiave chave klucz "
    )
)
"""How such names end in several languages: areakey, laufnummer, Gemeindeschlüssel."""
UNITS = words(
    "subject subj participant respondent patient stratum strata replicate replication proband versuchsperson "
)
"""Who was measured; numbers so called name them, however often each occurs."""
GROUPS = words(
    "person individual animal case family household brood litter clutch nest school hospital clinic "
    "center centre site location plot block batch store shop firm company county district cluster team "
    "player doctor teacher interviewer rater judge item specimen station sample tree plant village psu tract "
    "precinct ward municipality commune country state user customer client employee student dog rat cow "
    "pig child kid pupil pair city town community system prof professor instructor woman man mother "
    "father mom dad bird fish airline department dept departement region province herd mare wafer tray "
    "kiln colony "
)
"""The same where the numbers look like codes."""
PLACES = words(
    "center centre site location plot block batch lot store shop firm company county district station "
    "village psu tract ward municipality commune city town airline tree plant rater judge interviewer "
    "herd mare wafer tray kiln colony pair product source soil "
)
"""Few small whole numbers under such a name are labels; school or family may as well be a count."""
STEPS = words(
    "time t period trend delay dose temp temperature conc concentration distance depth level visit wave "
    "round step iteration cycle generation "
)
"""What is varied from one experiment to the next, in even steps."""
RANKS = words("rank ranking rang position place order seed pick ")
SIZES = words(
    "age ages count counts duration length width height weight months weeks days years hours minutes "
    "seconds gross sales revenue budget profit assets cost costs price income salary wage wages gdp debt "
    "spending expenditure amount value volume population pop views "
)
NOMINAL = words(
    "race ethnicity ethnic precinct religion relig denomination region state country province sex gender "
    "occupation occup occ industry sector treatment treat trt arm type kind species breed color colour "
    "brand group dept department language nationality marital marstat status study site method party vote "
    "mode cause route variety strain material category diagnosis origin experiment expt target label "
    "code zone season quadrant "
)
QUANTITIES = words(
    "n num number no count counts rate pct percent perc share mean avg average score time size index "
    "ratio pop population total sum length width height weight cost price age years duration income "
    "wage "
)
EVENTS = words(
    "birth born built build construction founded foundation established renovated graduation hired entry "
)
A_PROPERTY = EVENTS | words("model made first last peak since max min total n per mean avg ")
STAMPS = words("time timestamp ts date datetime created updated modified epoch unix at ")
NO_ZERO = words(
    "pressure bp diastolic systolic glucose bmi height weight cholesterol chol insulin skin thickness "
    "pulse heartrate hemoglobin haemoglobin hgb "
)
NOUNS = words(
    "patient pat user usr subject subj student stud customer cust client person pers row record rec "
    "case school sch household house hh family fam individual indiv ind employee empl? firm company "
    "comp order transaction trans account acct acc member respondent resp participant part sample samp "
    "site center centre hospital hosp clinic visit event item product prod store shop county state "
    "country district dist mother mom father dad child kid twin pair animal plot tree unique study obs "
    "line nurse doctor doc teacher tch class player team game match movie film book song track session "
    "device sensor station flight seq prov provider invoice ticket policy claim contract project staff "
    "worker iso fips sic naics serial ref reference registration reg license licence passport tax phone "
    "tel loan ward village psu tract precinct kunden artikel bestell konto matrikel personal "
)
EITHER_NOUN = "|".join(sorted(NOUNS))
NOUN_AND_NUMBER = re.compile(
    rf"^(?:{EITHER_NOUN})(?:ids?|no|nr|num|number|nummer|code|cod|cd|key)[a-z]{{0,2}}\d*$"
)
NOUN_AND_ID = re.compile(rf"^(?!individus?$)(?:{EITHER_NOUN})(?:id|key)[a-z]{{0,2}}\d*$")
"""The French individu is no key of an indiv."""
OBJECT = re.compile(rf"(?:{EITHER_NOUN})$")
NO_IDS = tuple(
    words(
        "acid grid olid uid umid apid valid paid kid ipid bid void aid quid chid ovid brid oid mid "
        "euclid inid said rid lucid vivid"
    )
)
"""English words end so: acid, fluid, humid, steroid, flavanoid, liquid, lipid."""
NO_ANSWER = re.compile(
    r"refus\w*|don['\u2019]?t know|no answer|not applicable|missing|\binap\b|not asked|no response",
    re.IGNORECASE,
)
NO_ANSWER_AT_ALL = re.compile(
    rf"(?:{NO_ANSWER.pattern}|declined|prefer not|not (?:stated|specified|reported|available|known|recorded)"
    r"|unknown|unspecified|undisclosed|keine (?:angabe|antwort)|wei(?:ß|ss) nicht|verweigert|unbekannt"
    r"|sans réponse|ne sait pas|inconnu|no sabe|no contesta|sin respuesta|desconocido)\b",
    re.IGNORECASE,
)
"""The same at the beginning of a short text, in more ways of saying it."""
