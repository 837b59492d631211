import { at, listAt, numberAt, objectAt, objectsAt, textAt } from '@wheelhouse/kinds';
import type { ApiObject, JsonObject } from '@wheelhouse/machinery';

/** What happens to a level's requests when all its seats are taken. */
export type LimitResponse =
  | { readonly type: 'Exempt' }
  | { readonly type: 'Reject' }
  | {
      readonly type: 'Queue';
      readonly queues: number;
      readonly handSize: number;
      readonly queueLengthLimit: number;
    };

/** The parts of a PriorityLevelConfiguration that flow control uses. */
export interface LevelSettings {
  readonly name: string;
  readonly uid: string;
  readonly shares: number;
  readonly lendablePercent: number;
  /** Undefined: only the server's limit. */
  readonly borrowingLimitPercent: number | undefined;
  readonly response: LimitResponse;
}

/** A subject of a rule. */
export interface SubjectSettings {
  readonly kind: string;
  readonly name: string;
  /** Set for service accounts only. */
  readonly namespace: string;
}

/** Resource requests that a rule matches; a list with one star matches all. */
export interface ResourceRule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly namespaces: readonly string[];
  readonly clusterScope: boolean;
}

/** Non-resource requests that a rule matches. */
export interface UrlRule {
  readonly verbs: readonly string[];
  readonly urls: readonly string[];
}

/**
 * One rule of a schema: matches requests of any of its subjects that match any of its request
 * rules.
 */
export interface RuleSettings {
  readonly subjects: readonly SubjectSettings[];
  readonly resourceRules: readonly ResourceRule[];
  readonly urlRules: readonly UrlRule[];
}

/** The parts of a FlowSchema that flow control uses. */
export interface SchemaSettings {
  readonly name: string;
  readonly uid: string;
  readonly level: string;
  readonly precedence: number;
  readonly method: 'ByUser' | 'ByNamespace' | undefined;
  readonly rules: readonly RuleSettings[];
}

/** Reads a level; undefined if its fields contradict each other, so that its default applies. */
export function readLevel(object: ApiObject): LevelSettings | undefined {
  const name = textAt(object, 'metadata', 'name');
  const spec = objectAt(object, 'spec') ?? {};
  const [exempt, limited] = [objectAt(spec, 'exempt'), objectAt(spec, 'limited')];
  const isExempt = textAt(spec, 'type') === 'Exempt';
  if (isExempt !== (name === 'exempt')) return undefined;
  const shared = exempt ?? limited;
  const response = isExempt ? ({ type: 'Exempt' } as const) : responseOf(limited);
  if (response === undefined) return undefined;
  return {
    name,
    uid: textAt(object, 'metadata', 'uid'),
    shares: numberAt(shared, 'nominalConcurrencyShares'),
    lendablePercent: numberAt(shared, 'lendablePercent'),
    borrowingLimitPercent:
      at(limited, 'borrowingLimitPercent') === undefined
        ? undefined
        : numberAt(limited, 'borrowingLimitPercent'),
    response,
  };
}

function responseOf(limited: JsonObject | undefined): LimitResponse | undefined {
  const response = objectAt(limited, 'limitResponse');
  const queuing = objectAt(response, 'queuing');
  const type = textAt(response, 'type');
  if (type === 'Reject') return queuing === undefined ? { type } : undefined;
  if (type !== 'Queue' || queuing === undefined) return undefined;
  const [queues, handSize] = [numberAt(queuing, 'queues'), numberAt(queuing, 'handSize')];
  if (queues < 1 || handSize < 1 || handSize > queues) return undefined;
  return { type, queues, handSize, queueLengthLimit: numberAt(queuing, 'queueLengthLimit') };
}

/** Reads a validated schema, whose priority level may not exist. */
export function readSchema(object: ApiObject): SchemaSettings {
  const spec = objectAt(object, 'spec') ?? {};
  const method = textAt(spec, 'distinguisherMethod', 'type');
  return {
    name: textAt(object, 'metadata', 'name'),
    uid: textAt(object, 'metadata', 'uid'),
    level: textAt(spec, 'priorityLevelConfiguration', 'name'),
    precedence: numberAt(spec, 'matchingPrecedence'),
    method: method === 'ByUser' || method === 'ByNamespace' ? method : undefined,
    rules: objectsAt(spec, 'rules').map(readRule),
  };
}

function readRule(rule: JsonObject): RuleSettings {
  return {
    subjects: objectsAt(rule, 'subjects').map(readSubject),
    resourceRules: objectsAt(rule, 'resourceRules').map((resourceRule) => ({
      verbs: texts(resourceRule, 'verbs'),
      apiGroups: texts(resourceRule, 'apiGroups'),
      resources: texts(resourceRule, 'resources'),
      namespaces: texts(resourceRule, 'namespaces'),
      clusterScope: at(resourceRule, 'clusterScope') === true,
    })),
    urlRules: objectsAt(rule, 'nonResourceRules').map((urlRule) => ({
      verbs: texts(urlRule, 'verbs'),
      urls: texts(urlRule, 'nonResourceURLs'),
    })),
  };
}

const subjectMembers: ReadonlyMap<string, string> = new Map([
  ['User', 'user'],
  ['Group', 'group'],
  ['ServiceAccount', 'serviceAccount'],
]);

function readSubject(subject: JsonObject): SubjectSettings {
  const kind = textAt(subject, 'kind');
  const identity = objectAt(subject, subjectMembers.get(kind) ?? '');
  return { kind, name: textAt(identity, 'name'), namespace: textAt(identity, 'namespace') };
}

function texts(object: JsonObject, member: string): string[] {
  return listAt(object, member).map(String);
}
