import { createHash } from 'node:crypto';
import type { UserInfo } from '@wheelhouse/machinery';
import type { FlowClass, FlowInfo } from './contract.ts';
import type { FlowSeries } from './flow-metrics.ts';
import type { PriorityLevel } from './priority-levels.ts';
import type { Flow } from './seat.ts';
import type {
  ResourceRule,
  RuleSettings,
  SchemaSettings,
  SubjectSettings,
  UrlRule,
} from './settings.ts';

/** The hash of a flow: the first eight bytes of the digest of its schema and distinguisher. */
export function flowHash(schema: string, distinguisher: string): bigint {
  const digest = createHash('sha256').update(`${schema}\0${distinguisher}`).digest();
  return digest.readBigUInt64LE(0);
}

/**
 * The queues that a flow may use: `handSize` of `queues`, dealt by its hash like cards from a deck
 * (shuffle sharding). Two flows rarely share all their queues, so a flow that fills its own does
 * not block the other.
 *
 * Dealing 3 of 5 with hash 97: 97 = 19*5 + 2, 19 = 4*4 + 3, and 4 = 1*3 + 1 give the positions 2,
 * 3, and 1 among the remaining cards: card 2, then card 4 of 0 1 3 4, then card 1 of 0 1 3.
 */
export function dealHand(
  hash: bigint,
  { queues, handSize }: { readonly queues: number; readonly handSize: number },
): readonly number[] {
  const places: number[] = [];
  let rest = hash;
  for (let dealt = 0; dealt < handSize; dealt += 1) {
    const left = BigInt(queues - dealt);
    places.push(Number(rest % left));
    rest /= left;
  }
  return places.map((place, index) => {
    let card = place;
    for (let before = index - 1; before >= 0; before -= 1) {
      if (card >= (places[before] ?? 0)) card += 1;
    }
    return card;
  });
}

/** The priority level and flow of a request. */
interface Classified {
  readonly level: PriorityLevel;
  readonly flow: Flow;
}

/** Maximum number of cached flows of a schema; clients choose namespaces and impersonated users. */
const flowsMax = 4096;

/** A flow schema with its cached flows. */
class SchemaFlows {
  readonly settings: SchemaSettings;
  readonly level: PriorityLevel;
  readonly #flowClass: FlowClass;
  readonly #series: () => FlowSeries;
  readonly #flows = new Map<string, Classified>();

  constructor(settings: SchemaSettings, level: PriorityLevel, series: () => FlowSeries) {
    this.settings = settings;
    this.level = level;
    this.#series = series;
    this.#flowClass = {
      flowSchema: settings.name,
      flowSchemaUid: settings.uid,
      priorityLevel: level.name,
      priorityLevelUid: level.settings.uid,
    };
  }

  /** How the schema's flows are distinguished; undefined if its level has only one queue. */
  get method(): SchemaSettings['method'] {
    const { response } = this.level.settings;
    return response.type === 'Queue' && response.queues > 1 ? this.settings.method : undefined;
  }

  flowOf(distinguisher: string): Classified {
    const cached = this.#flows.get(distinguisher);
    if (cached !== undefined) return cached;
    const { level, settings } = this;
    const { response } = level.settings;
    const flow: Flow = {
      distinguisher,
      hand:
        response.type === 'Queue' ? dealHand(flowHash(settings.name, distinguisher), response) : [],
      series: this.#series(),
      flowClass: this.#flowClass,
    };
    if (this.#flows.size >= flowsMax) this.#flows.clear();
    const assignment = { level, flow };
    this.#flows.set(distinguisher, assignment);
    return assignment;
  }
}

/** A flow schema whose rules name a user. */
interface Candidate {
  readonly schema: SchemaFlows;
  readonly matcher: RequestMatcher;
  /** The user's only flow; undefined before first use, and if it depends on the request. */
  flow: Classified | undefined;
}

/**
 * Finds the first flow schema that a request matches. Rules are evaluated once per user value,
 * because authentication returns the same value for every request with a credential; most users
 * then have one or two candidates, the last of which matches everything. Each configuration has its
 * own classifier, whose caches end with it.
 */
export class Classifier {
  readonly #schemas: readonly SchemaFlows[];
  readonly #catchAll: SchemaFlows;
  readonly #users = new WeakMap<UserInfo, readonly Candidate[]>();

  /**
   * @param options.schemas in order of precedence, each with its level
   * @param options.catchAll the name of the schema for requests that match no other
   * @param options.series creates the series of a schema with its first request
   */
  constructor(options: {
    readonly schemas: readonly { settings: SchemaSettings; level: PriorityLevel }[];
    readonly catchAll: string;
    readonly series: (level: PriorityLevel, schema: string) => FlowSeries;
  }) {
    this.#schemas = options.schemas.map(
      ({ settings, level }) =>
        new SchemaFlows(settings, level, () => options.series(level, settings.name)),
    );
    const last = this.#schemas.find(({ settings }) => settings.name === options.catchAll);
    if (last === undefined) throw new Error('no schema catches all requests');
    this.#catchAll = last;
  }

  classify(user: UserInfo, info: FlowInfo): Classified {
    let candidates = this.#users.get(user);
    if (candidates === undefined) {
      candidates = this.#candidatesOf(user);
      this.#users.set(user, candidates);
    }
    for (const candidate of candidates) {
      if (candidate.matcher.scope === 'some' && !candidate.matcher.matches(info)) continue;
      return candidate.flow ?? this.#flowOf(candidate, user, info);
    }
    // A user who is in neither `system:authenticated` nor `system:unauthenticated`.
    return this.#catchAll.flowOf(this.#catchAll.method === 'ByUser' ? user.name : '');
  }

  #flowOf(candidate: Candidate, user: UserInfo, info: FlowInfo): Classified {
    const { schema } = candidate;
    if (schema.method === 'ByNamespace') return schema.flowOf(info.namespace);
    candidate.flow = schema.flowOf(schema.method === 'ByUser' ? user.name : '');
    return candidate.flow;
  }

  #candidatesOf(user: UserInfo): readonly Candidate[] {
    const candidates: Candidate[] = [];
    for (const schema of this.#schemas) {
      const matcher = matcherFor(schema.settings.rules, user);
      if (matcher === undefined) continue;
      candidates.push({ schema, matcher, flow: undefined });
      if (matcher.scope === 'all') break;
    }
    return candidates;
  }
}

/** Matches requests of a user whom the rules name. */
interface RequestMatcher {
  matches(info: FlowInfo): boolean;
  /** `all`: matches every request. */
  readonly scope: 'all' | 'some';
}

/** A matcher for the rules that name a user; undefined if none does. */
export function matcherFor(
  rules: readonly RuleSettings[],
  user: UserInfo,
): RequestMatcher | undefined {
  const own = rules.filter(({ subjects }) => subjects.some((subject) => isSubject(subject, user)));
  if (own.length === 0) return undefined;
  const resources = own.flatMap(({ resourceRules }) => resourceRules);
  const urls = own.flatMap(({ urlRules }) => urlRules);
  const allResources = resources.some(isEveryResource);
  const allUrls = urls.some((rule) => isStar(rule.verbs) && rule.urls.includes('*'));
  return {
    scope: allResources && allUrls ? 'all' : 'some',
    matches(info) {
      if (info.isResourceRequest) {
        return allResources || resources.some((rule) => matchesResource(rule, info));
      }
      return allUrls || urls.some((rule) => matchesUrl(rule, info));
    },
  };
}

function isStar(list: readonly string[]): boolean {
  return list.length === 1 && list[0] === '*';
}

function includes(list: readonly string[], value: string): boolean {
  return isStar(list) || list.includes(value);
}

function isEveryResource(rule: ResourceRule): boolean {
  const { verbs, apiGroups, resources, namespaces, clusterScope } = rule;
  return clusterScope && [verbs, apiGroups, resources, namespaces].every(isStar);
}

const accountPrefix = 'system:serviceaccount:';

function isSubject({ kind, name, namespace }: SubjectSettings, user: UserInfo): boolean {
  switch (kind) {
    case 'User':
      return name === '*' || name === user.name;
    case 'Group':
      return name === '*' || user.groups.includes(name);
    case 'ServiceAccount': {
      const ofNamespace = `${accountPrefix}${namespace}:`;
      return name === '*'
        ? user.name.startsWith(ofNamespace)
        : user.name === `${ofNamespace}${name}`;
    }
    default:
      return false;
  }
}

function matchesResource(rule: ResourceRule, info: FlowInfo): boolean {
  if (!includes(rule.verbs, info.verb) || !includes(rule.apiGroups, info.group)) return false;
  const { resource, subresource, namespace } = info;
  const target = subresource === '' ? resource : `${resource}/${subresource}`;
  if (!includes(rule.resources, target)) return false;
  return namespace === '' ? rule.clusterScope : includes(rule.namespaces, namespace);
}

/** Matches paths by rule; a URL includes the paths below it, with or without a trailing star. */
function matchesUrl({ verbs, urls }: UrlRule, { verb, path }: FlowInfo): boolean {
  if (!includes(verbs, verb)) return false;
  return urls.some((url) => {
    if (url === '*' || url === path) return true;
    const stem = url.endsWith('*') ? url.slice(0, -1) : url;
    return path.startsWith(stem.endsWith('/') ? stem : `${stem}/`);
  });
}
