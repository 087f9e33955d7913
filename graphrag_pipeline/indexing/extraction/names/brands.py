"""Well-known programs and organizations by name: what readers know of "Grafana" and "Barclays" without an explanation.

The lists are our own, made for this purpose from common knowledge; no other list was copied. They decide only where the
text does not: a name with evidence of its own keeps the type of that evidence. A name that is also a word ("Slack",
"Notion") counts only in a document with other well-known names.

Add here: names of programs, services and organizations that minutes and notes of several houses mention. Keep out:
names that are mostly those of persons or places ("Dustin", "Lincoln"), and rules (`types/`).
"""

from __future__ import annotations

from functools import cache

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES, words

_PROGRAMS = """
Active Directory, Adobe Acrobat, Airflow, Airtable, Alfresco, Alertmanager, Android, Ansible, Apache, Argo CD, Asana,
Ashby, Auth0, AutoCAD, Azure, Azure DevOps, Backstage, BambooHR, Bamboo, Basecamp, BigQuery, Bitbucket, Blackboard,
Blender, BlueJeans, Bugzilla, Cassandra, Celery, Ceph, Chrome, CircleCI, ClickHouse, ClickUp, Cloudflare R2,
Cloudflare Workers, Codeberg, CockroachDB, Confluence, Consul, Copilot, CouchDB, Cucumber, Cypress, Dagster,
Databricks, Datadog, dbt, Debian, Discord, Discourse, Django, DocuSign, Docker, Docker Compose, Dropbox, Drupal,
DuckDB, DynamoDB, Elastic, Elasticsearch, Elixir, Envoy, Eventbrite, Excel, Exchange, FastAPI, Fastly, Figma,
Firebase, Firefox, Flask, Fluentd, FreshBooks, Freshdesk, Gatling, GitHub, GitHub Actions, GitLab, Git, Gmail,
GnuCash, Google Analytics, Google Calendar, Google Docs, Google Drive, Google Forms, Google Meet, Google Sheets,
Google Workspace, Gradle, Grafana, GraphQL, Greenhouse, Gunicorn, Hadoop, HAProxy, Heroku, HubSpot, InfluxDB,
Insomnia, Instagram, iCloud, iOS, iPad, iPhone, Jaeger, Java, JavaScript, Jenkins, Jira, Jira Cloud, Jitsi, Jupyter,
JUnit, Kafka, Keycloak, Kibana, Klaviyo, Kotlin, Kubernetes, Lambda, Laravel, LastPass, LaunchDarkly, Let's Encrypt,
LibreOffice, Linear, Linux, LinkedIn, Locust, Loki, Looker, MacBook, macOS, Magento, Mailchimp, Mailgun, MariaDB,
Mattermost, Maven, Memcached, Metabase, Microsoft 365, Microsoft Excel, Microsoft Teams, MinIO, Miro, Mixpanel,
MongoDB, Moodle, Mural, MySQL, Mastodon, Nagios, Neo4j, Netlify, New Relic, Next.js, Nextcloud, Nginx, Node.js,
Notion, npm, NumPy, Okta, OneDrive, OpenAPI, OpenSearch, OpenShift, OpenStack, OpenTelemetry, Opsgenie, Outlook,
PagerDuty, Pandas, Phabricator, PHP, Pingdom, Playwright, Postfix, Postgres, PostgreSQL, Postman, Power BI,
PowerPoint, Prometheus, Puppet, PyPI, PyTorch, Pytest, Python, QuickBooks, RabbitMQ, Raspberry Pi, React, React
Native, Redash, Redis, Redmine, Redshift, Retool, Ruby on Rails, Rust, S3, SAP Concur, Salesforce, Samba, Selenium,
Sendgrid, Sentry, ServiceNow, SharePoint, Shopify, Signal, Skype, Slack, Snowflake, SonarQube, Spark, Splunk, Spring
Boot, SQLAlchemy, SQLite, Squarespace, Storybook, Subversion, Supabase, Superset, Svelte, Swift, SystmOne, Tableau,
Tailwind, Telegram, TensorFlow, Terraform, ThinkPad, Thunderbird, TikTok, Todoist, Traefik, Trello, Tumblr,
TypeScript, Ubuntu, Unity, Varnish, Vault, Vercel, Vimeo, Visual Studio, Vue, Wagtail, Webflow, WebSphere, WhatsApp,
Windows, Wix, WordPress, Workday, Xcode, Xero, YouTube, Zabbix, Zapier, Zendesk, Zookeeper, Zoom, Zotero, 1Password,
Bitwarden, BigCommerce, Calendly, Canva, Canvas, Chromebook, ClassDojo, Clubhouse, Doodle, Evernote, FileMaker,
Kindle, Photoshop, InDesign, Illustrator, Lightroom, Matlab, Minitab, SPSS, Stata, Panopto, Turnitin, EndNote,
Mendeley, Overleaf, Qualtrics, SurveyMonkey, Mentimeter, Kahoot, Padlet, Gather, GoToMeeting, Webex, TeamViewer,
AnyDesk, VirtualBox, VMware, Vagrant, Nomad, Helm, Istio, Flux, Pulumi, Renovate, Dependabot, Codecov, Snyk, Rollbar,
Bugsnag, Honeycomb, Statuspage, UptimeRobot, Travis CI, TeamCity, Buildkite, Gitea, Gerrit, Mercurial
"""
_ORGANIZATIONS = """
Accenture, Adobe, Adyen, Airbnb, Airbus, Aldi, Alibaba, Allianz, Alstom, Amazon, Amazon Web Services, Amnesty
International, Apple, Arup, Asda, AstraZeneca, Atlassian, Atos, Audi, Aviva, AWS, AXA, Babcock, Balfour Beatty,
Barclaycard, Barclays, Barnardo's, Bayer, BBC, Bechtel, Bidfood, BlackRock, Bloomberg, Boeing, Boots, Booking.com,
Bosch, BP, British Airways, British Gas, British Council, British Red Cross, BT, Bupa, Cancer Research UK, Canon,
Capgemini, Capita, Carillion, Carrefour, Cadent, Caterpillar, Christian Aid, Cisco, Citibank, Citigroup, Citizens
Advice, Cloudflare, Coca-Cola, Cognizant, Commerzbank, Costco, Costain, Crown Prosecution Service, Currys, Daikin,
Daimler, Danone, Dell, Deloitte, Deutsche Bahn, Deutsche Bank, Deutsche Telekom, DHL, Direct Line, DPD, Dropbox,
Duolingo, Dyson, E.ON, eBay, Ecclesiastical, EDF, Electrolux, Equifax, Ericsson, Ernst & Young, Evri, Expedia, Experian,
Facebook, Farrow & Ball, FedEx, Fiat, Fidelity, Fitbit, Fujitsu, G4S, Gartner, GlaxoSmithKline, Glencore, GoCardless,
Goldman Sachs, Google, Grant Thornton, Greenpeace, Greggs, Grundfos, GSK, Halfords, Halifax Bank, Hermes Parcelnet,
Hewlett Packard, Hitachi, Honda, Honeywell, HSBC, Huawei, Hyundai, IBM, IKEA, Infosys, ING, Intel, Interserve, Intuit,
ISS, Jaguar, JD Wetherspoon, JetBrains, John Deere, John Lewis, Johnson & Johnson, JPMorgan, Kellogg's, Kier,
Kingfisher, Klarna, KLM, KPMG, Laing O'Rourke, Leonardo, Lego, Lenovo, Lidl, Lloyds, Lloyds Bank, Lockheed Martin,
L'Oréal, Lufthansa, Macmillan, Maersk, Marks & Spencer, Mastercard, McDonald's, McKinsey, Medtronic, Mencap, Merck,
Meta, Metro Bank, Michelin, Microsoft, Miele, Mitie, Mitsubishi, Monzo, Moody's, Morgan Stanley, Morrisons, Motability,
Mozilla, Nationwide, National Express, National Grid, National Trust, NatWest, Nestlé, Netflix, Network Rail, Nike,
Nintendo, Nissan, Nokia, Novartis, Nvidia, Ocado, Octopus Energy, OpenAI, Openreach, Oracle, Ordnance Survey, Otis,
Oxfam, Panasonic, Parkinson's UK, PayPal, PepsiCo, Pfizer, Philips, Pilkington, Plusnet, Porsche, Premier Inn, Procter &
Gamble, PwC, Qualcomm, Red Hat, Renault, Rentokil, Revolut, Ricoh, Roche, Rolls-Royce, Royal Mail, RSPB, RSPCA, Ryanair,
Sage, Sainsbury's, Samaritans, Samsung, Santander, SAP, Save the Children, Savills, Schneider Electric, Scope, Screwfix,
Securitas, Securicor, Segro, Serco, Severn Trent, Sharp, Shell, Shelter, Siemens, Skanska, Sky, Sodexo, Sony, Spotify,
Stagecoach, Standard Chartered, Starbucks, Starling Bank, Stonewall, Stripe, Stryker, Subaru, Subway, Suez, Sustrans,
Suzuki, Swiss Re, Tarmac, Taylor Wimpey, Persimmon, Barratt Homes, Bellway, Tata, Tesco, Tesla, Thales, Thames Water,
ThyssenKrupp, Toshiba, TotalEnergies, Toyota, Transport for London, Travelodge, Travis Perkins, Triodos, Triodos Bank,
TSB, Twilio, Uber, Unicef, Unilever, Unison, Unite, Unity Trust Bank, United Utilities, UPS, Vaillant, Vattenfall,
Veolia, Verizon, Viridor, Virgin, Virgin Atlantic, Virgin Media, Virgin Money, Visa, Vodafone, Volkswagen, Volvo,
Waitrose, Walmart, Wates, Wellcome Trust, Wells Fargo, Which?, Wickes, Willmott Dixon, Wilko, Wise, Worcester Bosch,
WPP, Xerox, Yale, Yorkshire Water, YMCA, Zalando, Zurich Insurance, Red Cross, Red Crescent, NHS Blood and Transplant,
Trinity House, Salvation Army, Age UK, Anglian Water, Biffa, Co-op Bank, Cooperative Bank, Credit Suisse, Crest
Nicholson, Cushman & Wakefield, Engie, Gallagher, Good Energy, Jewson, Knight Frank, Lovell, Marsh, Octopus, OVO Energy,
OVO, Screwfix, ScottishPower, Scottish Power, Southern Water, SSE, Talktalk, Unity Trust, Zipcar, Aon, Anthropic,
Ofgem, Ofsted, Ofwat, Ofcom, HMRC, Companies House, Land Registry, Historic England, Historic Scotland, Natural England,
Sport England, Arts Council England, Environment Agency, Forestry Commission, Aer Lingus, Aeroflot, Air Canada, Air
France, Air India, Air New Zealand, Alitalia, American Airlines, Ansett, Cathay Pacific, Delta Air Lines, easyJet,
Emirates, Etihad, Finnair, Garuda, Iberia, Qantas, Qatar Airways, Singapore Airlines, United Airlines, Wizz Air, Arriva,
FirstGroup, Go-Ahead, Agence France-Presse, Agence France Presse, Associated Press, Reuters, Al Jazeera, Xinhua,
United Nations, World Bank, World Trade Organization, World Health Organization, International Monetary Fund, European
Union, European Commission, African Union, Arab League, Amnesty International, Human Rights Watch, Doctors Without
Borders, Transparency International, World Vision, Scotland Yard, Federal Reserve, Islamic Jihad, Muslim Brotherhood,
Hezbollah, New York Times, Washington Post, Wall Street Journal, Financial Times, Los Angeles Times, Le Monde, Der
Spiegel, El País, Daily Telegraph, Daily Mail, Boston Globe, Chicago Tribune, Sydney Morning Herald,
Hetzner, OVH, OVHcloud, DigitalOcean, Akamai, Aiven, Linode, Scaleway, Slaughter and May, Clifford Chance, Allen &
Overy, Pinsent Masons, Bevan Brittan, Womble Bond Dickinson, Mazars, BDO, Crowe, Moore Kingston Smith, Haysmacintyre,
RSM, Sotheby's, Christie's, Domino's, Macy's, Lloyd's, Nasdaq, Euronext, LSEG
"""

_ALSO_WORDS = words("""
android apple audi azure backstage bamboo boots bp bt canon canvas capita chrome clubhouse confluence consul dell
discourse elastic envoy excel exchange facebook fiat fidelity flux gather google greenhouse helm illustrator ing
insomnia intel ios ipad iphone iss java lambda lego linear linux marsh meta mural nationwide nike nomad notion oracle
outlook php playwright puppet python react roche rust sage sap scope sentry sharp shell shelter signal sky slack spark
stripe subway swift tata telegram uber unite ups vault virgin visa windows wise yale youtube zoom
""")


@cache
def load_programs() -> frozenset[str]:
    """Return the normalised names of well-known programs and services."""
    return _titles(_PROGRAMS)


@cache
def load_organizations() -> frozenset[str]:
    """Return the normalised names of well-known firms, charities and public bodies."""
    return _titles(_ORGANIZATIONS) - load_programs()


def is_well_known(title: str) -> bool:
    """Whether a title is well known and not also a word or a given name: "Grafana", not "Slack" and not "Otis Reed"."""
    return (
        (title in load_programs() or title in load_organizations())
        and title not in GIVEN_NAMES
        and title not in _ALSO_WORDS
    )


def _titles(listed: str) -> frozenset[str]:
    return frozenset(normalize_title(" ".join(name.split())) for name in listed.split(","))
