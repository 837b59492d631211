import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalid,
  invalidGo,
  notSupported,
  parseInt64,
  problemText,
  required,
  shownTextMax,
} from '@wheelhouse/machinery';
import { goDurationError, parseGoDuration } from '@wheelhouse/schema';
import { selectorText, wideColumns } from '../apps/workload.ts';
import { age, ageColumn, at, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind, statusSubresource, steppedDefaults } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { CronJob, CronJobSpec, JobSpec } from '../gen/types/batch/v1.ts';
import { fillPodSpecSteps, removingOldInitContainers } from '../pod/defaults.ts';
import { validateChoiceIn, validateNonNegative } from '../pod/fields.ts';
import { goSelector } from '../pod/go-text.ts';
import { newPodRules, type PodRules } from '../pod/rules.ts';
import { templateRules } from '../pod/template.ts';
import { nameWarnings, templateWarnings } from '../pod/warnings.ts';
import type { ColumnDef, ResourceDef, Stored } from '../resource-def.ts';
import { flatMapSteps, partsOf, someSteps } from '../rules/checks.ts';
import { ensure, fill, objectAt } from '../rules/fill.ts';
import { sizeWarnings, validateJobSpec } from './job-validation.ts';

const jobSpecPath = ['spec', 'jobTemplate', 'spec'];
const templatePath = [...jobSpecPath, 'template'];

const [containers, images] = wideColumns([...templatePath, 'spec']);

const columns: readonly ColumnDef[] = [
  nameColumn,
  column('Schedule', (object) => textAt(object, 'spec', 'schedule'), {
    description: 'Schedule in cron format.',
  }),
  column('Timezone', (object) => textAt(object, 'spec', 'timeZone') || '<none>', {
    description: 'Time zone of the schedule.',
  }),
  column('Suspend', (object) => (at(object, 'spec', 'suspend') === true ? 'True' : 'False'), {
    type: 'boolean',
    description: 'Whether the schedule is suspended.',
  }),
  column('Active', (object) => listAt(object, 'status', 'active').length, {
    type: 'integer',
    description: 'Number of running jobs.',
  }),
  column(
    'Last Schedule',
    (object, nowMs) => {
      const last = textAt(object, 'status', 'lastScheduleTime');
      return last === '' ? '<none>' : age(last, nowMs);
    },
    { description: 'Time since the last job was scheduled.' },
  ),
  ageColumn,
  ...(containers === undefined || images === undefined ? [] : [containers, images]),
  column('Selector', (object) => selectorText(objectAt(object, ...jobSpecPath, 'selector')), {
    priority: 1,
    description: 'Selector of the pods.',
  }),
];

/** CronJob: creates Jobs on a schedule. */
export function cronJob(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  return defineKind<CronJob>({
    dialect,
    features,
    facts: 'batch',
    kind: 'CronJob',
    scope: 'Namespaced',
    shortNames: ['cj'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        ...steppedDefaults(removingOldInitContainers(dialect, templatePath, fillDefaults)),
        columns,
      },
    ],
    generation: true,
    strategy: {
      extraMetadataChecks: { status: [] },
      validateName: dnsSubdomain,
      hasStatus: true,
      *validateCreate(_, object) {
        const rules = newPodRules({ dialect, features });
        return [...(yield* validate(object, undefined, rules)), ...validateName(object)];
      },
      *validateUpdate(context, object, old) {
        if (context.subresource === 'status') return [];
        const oldTemplate = objectAt(old, ...templatePath);
        const rules = yield* templateRules({ dialect, features }, oldTemplate);
        return yield* validate(object, old, rules);
      },
      warnings: (object, old) => warnings(object, old, dialect),
    },
    subresources: [statusSubresource],
    example: () => ({
      spec: {
        schedule: '*/5 * * * *',
        jobTemplate: {
          spec: {
            template: {
              spec: {
                restartPolicy: 'OnFailure',
                containers: [{ name: 'main', image: 'example.com/main:1.0' }],
              },
            },
          },
        },
      },
    }),
  });
}

function* fillDefaults(object: Stored<CronJob>): Generator<void, void> {
  const spec = ensure(object, 'spec');
  fill(spec, {
    concurrencyPolicy: 'Allow',
    suspend: false,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 1,
  });
  yield* fillPodSpecSteps(spec.jobTemplate?.spec?.template?.spec);
}

/** Maximum length of a name, to which the names of Jobs append a suffix. */
const nameLengthMax = 52;

/** Validates the length of a new object's name; older objects may exceed it. */
function validateName(object: Stored<CronJob>): FieldError[] {
  const name = object.metadata.name ?? '';
  if (name.length <= nameLengthMax) return [];
  return [invalid('metadata.name', name, `must be no more than ${nameLengthMax} characters`)];
}

function* validate(
  object: Stored<CronJob>,
  old: Stored<CronJob> | undefined,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  const before = old?.spec;
  const zone = spec.timeZone;
  const isNewZone = zone !== undefined && zone !== before?.timeZone;
  return [
    ...(yield* validateSchedule(spec, before)),
    ...validateNonNegative(spec, 'spec', 'startingDeadlineSeconds'),
    ...(isNewZone ? validateTimeZone(zone) : []),
    ...validateChoiceIn(spec, 'spec', 'concurrencyPolicy', ['Allow', 'Forbid', 'Replace']),
    ...(yield* validateJobTemplate(ensure(ensure(spec, 'jobTemplate'), 'spec'), rules)),
    ...validateNonNegative(spec, 'spec', 'successfulJobsHistoryLimit'),
    ...validateNonNegative(spec, 'spec', 'failedJobsHistoryLimit'),
  ];
}

/** Validates the schedule, which may include a time zone only if the old one did. */
function* validateSchedule(
  spec: Stored<CronJobSpec>,
  old: Stored<CronJobSpec> | undefined,
): Generator<void, FieldError[]> {
  const schedule = spec.schedule ?? '';
  const field = 'spec.schedule';
  if (schedule === '') return [required(field)];
  const problem = yield* scheduleProblem(schedule);
  const errors = problem === undefined ? [] : [invalid(field, schedule, problem)];
  if (!schedule.includes('TZ')) return errors;
  if (!(old?.schedule ?? '').includes('TZ')) {
    const detail = 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead';
    errors.push(invalid(field, schedule, detail));
  } else if (spec.timeZone != null) {
    const detail = 'cannot use both timeZone field and TZ or CRON_TZ in schedule';
    errors.push(invalid(field, schedule, detail));
  }
  return errors;
}

const zonePart = /^[A-Za-z._0-9+-]{1,14}$/;

function validateTimeZone(zone: string): FieldError[] {
  const refuse = (detail: string) => [invalid('spec.timeZone', zone, detail)];
  if (zone === '') return refuse('timeZone must be nil or non-empty string');
  const isName = (part: string) =>
    part !== '.' && part !== '..' && !part.startsWith('-') && zonePart.test(part);
  if (!zone.split('/').every(isName)) return refuse(`unknown time zone ${zone}`);
  const errors =
    zone.toLowerCase() === 'local'
      ? refuse(
          'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
        )
      : [];
  if (zone === 'Local' || isTimeZone(zone)) return errors;
  return [...errors, ...refuse(zoneProblem(zone))];
}

function* validateJobTemplate(
  spec: Stored<JobSpec>,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const path = 'spec.jobTemplate.spec';
  const errors = yield* validateJobSpec(spec, path, rules);
  const selector = spec.selector;
  if (selector !== undefined) {
    const detail = '`selector` will be auto-generated';
    errors.push(invalidGo(`${path}.selector`, () => goSelector(selector), detail));
  }
  if (spec.manualSelector === true) {
    errors.push(notSupported(`${path}.manualSelector`, true, ['nil', 'false']));
  }
  return errors;
}

function* warnings(
  object: Stored<CronJob>,
  old: Stored<CronJob> | undefined,
  dialect: Dialect,
): Generator<void, readonly string[]> {
  const isChange = old !== undefined;
  const isSame = isChange && old.metadata.generation === object.metadata.generation;
  const { schedule = '', jobTemplate } = object.spec ?? {};
  return [
    ...nameWarnings(object, old),
    ...(isSame ? [] : sizeWarnings(jobTemplate?.spec, 'spec.jobTemplate.spec')),
    ...(yield* templateWarnings(object, old, { path: templatePath, dialect })),
    ...(isChange && schedule.includes('TZ') ? [zoneInScheduleWarning(dialect)] : []),
  ];
}

/** kube-apiserver's warning, including its wrong path. */
const zoneInScheduleWarning = ({ labelDomain }: Dialect) =>
  'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see ' +
  `https://${labelDomain}/docs/concepts/workloads/controllers/cron-jobs/ for more details`;

let zoneNames: ReadonlySet<string> | undefined;

/** Names of time zones in the IANA database of 2025, by area; they are case-sensitive. */
const names: Readonly<Record<string, string>> = {
  '':
    'CET CST6CDT Cuba EET EST EST5EDT Egypt Eire Factory GB GB-Eire GMT GMT+0 GMT-0 GMT0 ' +
    'Greenwich HST Hongkong Iceland Iran Israel Jamaica Japan Kwajalein Libya MET MST MST7MDT ' +
    'NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey UCT UTC Universal ' +
    'W-SU WET Zulu',
  Africa:
    'Abidjan Accra Addis_Ababa Algiers Asmara Asmera Bamako Bangui Banjul Bissau Blantyre ' +
    'Brazzaville Bujumbura Cairo Casablanca Ceuta Conakry Dakar Dar_es_Salaam Djibouti Douala ' +
    'El_Aaiun Freetown Gaborone Harare Johannesburg Juba Kampala Khartoum Kigali Kinshasa ' +
    'Lagos Libreville Lome Luanda Lubumbashi Lusaka Malabo Maputo Maseru Mbabane Mogadishu ' +
    'Monrovia Nairobi Ndjamena Niamey Nouakchott Ouagadougou Porto-Novo Sao_Tome Timbuktu ' +
    'Tripoli Tunis Windhoek',
  America:
    'Adak Anchorage Anguilla Antigua Araguaina Argentina/Buenos_Aires Argentina/Catamarca ' +
    'Argentina/ComodRivadavia Argentina/Cordoba Argentina/Jujuy Argentina/La_Rioja ' +
    'Argentina/Mendoza Argentina/Rio_Gallegos Argentina/Salta Argentina/San_Juan ' +
    'Argentina/San_Luis Argentina/Tucuman Argentina/Ushuaia Aruba Asuncion Atikokan Atka ' +
    'Bahia Bahia_Banderas Barbados Belem Belize Blanc-Sablon Boa_Vista Bogota Boise ' +
    'Buenos_Aires Cambridge_Bay Campo_Grande Cancun Caracas Catamarca Cayenne Cayman Chicago ' +
    'Chihuahua Ciudad_Juarez Coral_Harbour Cordoba Costa_Rica Coyhaique Creston Cuiaba ' +
    'Curacao Danmarkshavn Dawson Dawson_Creek Denver Detroit Dominica Edmonton Eirunepe ' +
    'El_Salvador Ensenada Fort_Nelson Fort_Wayne Fortaleza Glace_Bay Godthab Goose_Bay ' +
    'Grand_Turk Grenada Guadeloupe Guatemala Guayaquil Guyana Halifax Havana Hermosillo ' +
    'Indiana/Indianapolis Indiana/Knox Indiana/Marengo Indiana/Petersburg Indiana/Tell_City ' +
    'Indiana/Vevay Indiana/Vincennes Indiana/Winamac Indianapolis Inuvik Iqaluit Jamaica ' +
    'Jujuy Juneau Kentucky/Louisville Kentucky/Monticello Knox_IN Kralendijk La_Paz Lima ' +
    'Los_Angeles Louisville Lower_Princes Maceio Managua Manaus Marigot Martinique Matamoros ' +
    'Mazatlan Mendoza Menominee Merida Metlakatla Mexico_City Miquelon Moncton Monterrey ' +
    'Montevideo Montreal Montserrat Nassau New_York Nipigon Nome Noronha North_Dakota/Beulah ' +
    'North_Dakota/Center North_Dakota/New_Salem Nuuk Ojinaga Panama Pangnirtung Paramaribo ' +
    'Phoenix Port-au-Prince Port_of_Spain Porto_Acre Porto_Velho Puerto_Rico Punta_Arenas ' +
    'Rainy_River Rankin_Inlet Recife Regina Resolute Rio_Branco Rosario Santa_Isabel Santarem ' +
    'Santiago Santo_Domingo Sao_Paulo Scoresbysund Shiprock Sitka St_Barthelemy St_Johns ' +
    'St_Kitts St_Lucia St_Thomas St_Vincent Swift_Current Tegucigalpa Thule Thunder_Bay ' +
    'Tijuana Toronto Tortola Vancouver Virgin Whitehorse Winnipeg Yakutat Yellowknife',
  Antarctica:
    'Casey Davis DumontDUrville Macquarie Mawson McMurdo Palmer Rothera South_Pole Syowa ' +
    'Troll Vostok',
  Arctic: 'Longyearbyen',
  Asia:
    'Aden Almaty Amman Anadyr Aqtau Aqtobe Ashgabat Ashkhabad Atyrau Baghdad Bahrain Baku ' +
    'Bangkok Barnaul Beirut Bishkek Brunei Calcutta Chita Choibalsan Chongqing Chungking ' +
    'Colombo Dacca Damascus Dhaka Dili Dubai Dushanbe Famagusta Gaza Harbin Hebron ' +
    'Ho_Chi_Minh Hong_Kong Hovd Irkutsk Istanbul Jakarta Jayapura Jerusalem Kabul Kamchatka ' +
    'Karachi Kashgar Kathmandu Katmandu Khandyga Kolkata Krasnoyarsk Kuala_Lumpur Kuching ' +
    'Kuwait Macao Macau Magadan Makassar Manila Muscat Nicosia Novokuznetsk Novosibirsk Omsk ' +
    'Oral Phnom_Penh Pontianak Pyongyang Qatar Qostanay Qyzylorda Rangoon Riyadh Saigon ' +
    'Sakhalin Samarkand Seoul Shanghai Singapore Srednekolymsk Taipei Tashkent Tbilisi Tehran ' +
    'Tel_Aviv Thimbu Thimphu Tokyo Tomsk Ujung_Pandang Ulaanbaatar Ulan_Bator Urumqi Ust-Nera ' +
    'Vientiane Vladivostok Yakutsk Yangon Yekaterinburg Yerevan',
  Atlantic:
    'Azores Bermuda Canary Cape_Verde Faeroe Faroe Jan_Mayen Madeira Reykjavik South_Georgia ' +
    'St_Helena Stanley',
  Australia:
    'ACT Adelaide Brisbane Broken_Hill Canberra Currie Darwin Eucla Hobart LHI Lindeman ' +
    'Lord_Howe Melbourne NSW North Perth Queensland South Sydney Tasmania Victoria West ' +
    'Yancowinna',
  Brazil: 'Acre DeNoronha East West',
  Canada: 'Atlantic Central Eastern Mountain Newfoundland Pacific Saskatchewan Yukon',
  Chile: 'Continental EasterIsland',
  Etc:
    'GMT GMT+0 GMT+1 GMT+10 GMT+11 GMT+12 GMT+2 GMT+3 GMT+4 GMT+5 GMT+6 GMT+7 GMT+8 GMT+9 ' +
    'GMT-0 GMT-1 GMT-10 GMT-11 GMT-12 GMT-13 GMT-14 GMT-2 GMT-3 GMT-4 GMT-5 GMT-6 GMT-7 GMT-8 ' +
    'GMT-9 GMT0 Greenwich UCT UTC Universal Zulu',
  Europe:
    'Amsterdam Andorra Astrakhan Athens Belfast Belgrade Berlin Bratislava Brussels Bucharest ' +
    'Budapest Busingen Chisinau Copenhagen Dublin Gibraltar Guernsey Helsinki Isle_of_Man ' +
    'Istanbul Jersey Kaliningrad Kiev Kirov Kyiv Lisbon Ljubljana London Luxembourg Madrid ' +
    'Malta Mariehamn Minsk Monaco Moscow Nicosia Oslo Paris Podgorica Prague Riga Rome Samara ' +
    'San_Marino Sarajevo Saratov Simferopol Skopje Sofia Stockholm Tallinn Tirane Tiraspol ' +
    'Ulyanovsk Uzhgorod Vaduz Vatican Vienna Vilnius Volgograd Warsaw Zagreb Zaporozhye ' +
    'Zurich',
  Indian:
    'Antananarivo Chagos Christmas Cocos Comoro Kerguelen Mahe Maldives Mauritius Mayotte ' +
    'Reunion',
  Mexico: 'BajaNorte BajaSur General',
  Pacific:
    'Apia Auckland Bougainville Chatham Chuuk Easter Efate Enderbury Fakaofo Fiji Funafuti ' +
    'Galapagos Gambier Guadalcanal Guam Honolulu Johnston Kanton Kiritimati Kosrae Kwajalein ' +
    'Majuro Marquesas Midway Nauru Niue Norfolk Noumea Pago_Pago Palau Pitcairn Pohnpei ' +
    'Ponape Port_Moresby Rarotonga Saipan Samoa Tahiti Tarawa Tongatapu Truk Wake Wallis Yap',
  US:
    'Alaska Aleutian Arizona Central East-Indiana Eastern Hawaii Indiana-Starke Michigan ' +
    'Mountain Pacific Samoa',
};

/** Whether the IANA database has a time zone of this name (`Europe/Paris`). */
function isTimeZone(name: string): boolean {
  zoneNames ??= new Set(
    Object.entries(names).flatMap(([area, places]) =>
      places.split(' ').map((place) => (area === '' ? place : `${area}/${place}`)),
    ),
  );
  return zoneNames.has(name);
}

const months = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const weekdays = 'sun mon tue wed thu fri sat'.split(' ');

interface FieldBounds {
  readonly low: number;
  readonly high: number;
  readonly names?: readonly string[];
}

const fields: readonly FieldBounds[] = [
  { low: 0, high: 59 },
  { low: 0, high: 23 },
  { low: 1, high: 31 },
  { low: 1, high: 12, names: months },
  { low: 0, high: 6, names: weekdays },
];

/** Number of words of a schedule that one step reads. */
const wordsPerStep = 1000;

/**
 * Returns the error of kube-apiserver's parser for a cron schedule; undefined if it is valid. Takes
 * steps, because a schedule may have any length (TRUST-2).
 */
function* scheduleProblem(schedule: string): Generator<void, string | undefined> {
  const [zonePart, zone = ''] = /^(?:CRON_)?TZ=([^ ]*) /.exec(schedule) ?? [];
  if (zonePart !== undefined && zone !== '' && zone !== 'Local' && !isTimeZone(zone)) {
    return `provided bad location ${zone}: ${zoneProblem(zone)}`;
  }
  const text = zonePart === undefined ? schedule : schedule.slice(zonePart.length).trim();
  if (text.startsWith('@')) return descriptorProblem(text);
  const parts = yield* flatMapSteps(text.matchAll(/\S+/g), ([part]) => [part], wordsPerStep);
  if (parts.length !== fields.length) {
    const shown = parts.slice(0, shownTextMax).join(' ');
    return `expected exactly 5 fields, found ${parts.length}: [${shown}]`;
  }
  for (const [index, part] of parts.entries()) {
    const bounds = fields[index];
    const problem = bounds === undefined ? undefined : yield* fieldProblem(part, bounds);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Go's error for an unknown time zone. */
function zoneProblem(zone: string): string {
  const isUnsafePath = zone.startsWith('/') || zone.startsWith('\\') || zone.includes('..');
  return isUnsafePath ? 'time: invalid location name' : `unknown time zone ${zone}`;
}

const descriptors = new Set([
  '@yearly',
  '@annually',
  '@monthly',
  '@weekly',
  '@daily',
  '@midnight',
  '@hourly',
]);

const every = '@every ';

function descriptorProblem(text: string): string | undefined {
  if (descriptors.has(text)) return undefined;
  if (!text.startsWith(every)) return `unrecognized descriptor: ${text}`;
  const duration = text.slice(every.length);
  if (parseGoDuration(duration) !== undefined) return undefined;
  return `failed to parse duration ${text}: ${goDurationError(duration)}`;
}

function* fieldProblem(part: string, bounds: FieldBounds): Generator<void, string | undefined> {
  let problem: string | undefined;
  yield* someSteps(partsOf(part, ','), (range) => {
    problem = range === '' ? undefined : rangeProblem(range, bounds);
    return problem !== undefined;
  });
  return problem;
}

function rangeProblem(range: string, bounds: FieldBounds): string | undefined {
  const [span = '', step, ...moreSteps] = range.split('/');
  const [from = '', to, ...moreEnds] = span.split('-');
  let [start, end] = [bounds.low, bounds.high];
  if (from !== '*' && from !== '?') {
    const first = numberOf(from, bounds);
    if (typeof first === 'string') return first;
    const last = to === undefined || moreEnds.length > 0 ? first : numberOf(to, bounds);
    if (typeof last === 'string') return last;
    if (moreEnds.length > 0) return `too many hyphens: ${range}`;
    [start, end] = [first, step !== undefined && to === undefined ? bounds.high : last];
  }
  if (moreSteps.length > 0) return `too many slashes: ${range}`;
  const stride = step === undefined ? 1 : integerOf(step);
  if (typeof stride === 'string') return stride;
  if (start < bounds.low)
    return `beginning of range (${start}) below minimum (${bounds.low}): ${range}`;
  if (end > bounds.high) return `end of range (${end}) above maximum (${bounds.high}): ${range}`;
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${range}`;
  return stride > 0 ? undefined : `step of range should be a positive number: ${range}`;
}

function numberOf(text: string, bounds: FieldBounds): number | string {
  const named = bounds.names?.indexOf(text.toLowerCase()) ?? -1;
  return named >= 0 ? named + bounds.low : integerOf(text);
}

/** Parses an integer; returns the error for other texts and for negative numbers. */
function integerOf(text: string): number | string {
  const refused = (problem: 'syntax' | 'range') => {
    const why = problemText({ code: 'number', parser: 'Atoi', text, problem });
    return `failed to parse int from ${text}: ${why}`;
  };
  const value = parseInt64(text);
  if (typeof value === 'string') return refused(value);
  return value < 0 ? `negative number (${value}) not allowed: ${text}` : Number(value);
}
