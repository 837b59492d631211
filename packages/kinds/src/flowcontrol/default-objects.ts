import {
  type ApiObject,
  type Dialect,
  type FieldError,
  invalid,
  type JsonObject,
  jsonEqual,
  jsonObject,
} from '@wheelhouse/machinery';
import type { FlowSchema, PriorityLevelConfiguration } from '../gen/types/flowcontrol/v1.ts';
import type { Stored } from '../resource-def.ts';

/**
 * The levels and schemas that every server has, with kube-apiserver's names and numbers (OPS-3).
 * The server always restores the specs of mandatory ones, and those of others if an annotation is
 * true.
 */
interface DefaultFlowObjects {
  readonly levels: readonly ApiObject[];
  readonly schemas: readonly ApiObject[];
}

/** Names of the mandatory objects of both kinds. */
export const mandatoryFlowNames: ReadonlySet<string> = new Set(['exempt', 'catch-all']);

/** The annotation that tells whether the server restores an object's spec. */
export function autoUpdateAnnotation(dialect: Dialect): string {
  return dialect.label('autoupdate-spec', 'apf');
}

const all = ['*'];

/** A limited level. */
interface LevelRow {
  readonly name: string;
  readonly shares: number;
  readonly lendablePercent: number;
  /** Absent: requests without a seat are rejected. */
  readonly queues?: number;
  readonly handSize?: number;
}

const limitedLevels: readonly LevelRow[] = [
  { name: 'system', shares: 30, lendablePercent: 33, queues: 64, handSize: 6 },
  { name: 'node-high', shares: 40, lendablePercent: 25, queues: 64, handSize: 6 },
  { name: 'leader-election', shares: 10, lendablePercent: 0, queues: 16, handSize: 4 },
  { name: 'workload-high', shares: 40, lendablePercent: 50, queues: 128, handSize: 6 },
  { name: 'workload-low', shares: 100, lendablePercent: 90, queues: 128, handSize: 6 },
  { name: 'global-default', shares: 20, lendablePercent: 50, queues: 128, handSize: 6 },
  { name: 'catch-all', shares: 5, lendablePercent: 0 },
];

const queueLengthLimit = 50;

function levelSpec({ shares, lendablePercent, queues, handSize }: LevelRow): JsonObject {
  const limitResponse =
    queues === undefined || handSize === undefined
      ? { type: 'Reject' }
      : { type: 'Queue', queuing: { queues, handSize, queueLengthLimit } };
  const limited = { nominalConcurrencyShares: shares, limitResponse, lendablePercent };
  return { type: 'Limited', limited };
}

const everything: JsonObject = {
  verbs: all,
  apiGroups: all,
  resources: all,
  clusterScope: true,
  namespaces: all,
};
const everyUrl: JsonObject = { verbs: all, nonResourceURLs: all };
const allRules = { resourceRules: [everything], nonResourceRules: [everyUrl] };

const group = (name: string): JsonObject => ({ kind: 'Group', group: { name } });
const user = (name: string): JsonObject => ({ kind: 'User', user: { name } });
const everybody = [group('system:unauthenticated'), group('system:authenticated')];
const nodes = [group('system:nodes')];

interface SchemaRow {
  readonly name: string;
  readonly level: string;
  readonly precedence: number;
  readonly method?: 'ByUser' | 'ByNamespace';
  readonly rules: JsonObject;
}

function schemaRows(dialect: Dialect): readonly SchemaRow[] {
  const namespace = dialect.systemNamespace('system');
  const named = (name: string): JsonObject => ({
    kind: 'ServiceAccount',
    serviceAccount: { namespace, name },
  });
  const account = named('*');
  const elects = ['get', 'create', 'update'];
  const electing = (apiGroups: string[], resources: string[]): JsonObject => ({
    verbs: elects,
    apiGroups,
    resources,
    namespaces: all,
  });
  const manager = user('system:kube-controller-manager');
  const scheduler = user('system:kube-scheduler');
  const leases = (verbs: readonly string[]): JsonObject => ({
    verbs: [...verbs],
    apiGroups: [dialect.group('coordination')],
    resources: ['leases'],
    namespaces: all,
  });
  const ofNodes = { ...everything, apiGroups: [''], resources: ['nodes', 'nodes/status'] };
  const probes = { verbs: ['get'], nonResourceURLs: ['/healthz', '/readyz', '/livez'] };
  const row = (
    [name, level, precedence]: readonly [string, string, number],
    method: SchemaRow['method'],
    rules: JsonObject,
  ): SchemaRow => ({
    name,
    level,
    precedence,
    ...(method === undefined ? {} : { method }),
    rules,
  });
  const byAll = (subjects: JsonObject[]): JsonObject => ({ subjects, ...allRules });
  return [
    row(['exempt', 'exempt', 1], undefined, byAll([group('system:masters')])),
    row(['probes', 'exempt', 2], undefined, { subjects: everybody, nonResourceRules: [probes] }),
    row(['system-leader-election', 'leader-election', 100], 'ByUser', {
      subjects: [manager, scheduler, account],
      resourceRules: [leases(elects)],
    }),
    row(['endpoint-controller', 'workload-high', 150], 'ByUser', {
      subjects: [manager, named('endpoint-controller'), named('endpointslicemirroring-controller')],
      resourceRules: [electing([''], ['endpoints'])],
    }),
    row(['workload-leader-election', 'leader-election', 200], 'ByUser', {
      subjects: [account],
      resourceRules: [electing([''], ['endpoints', 'configmaps']), leases(elects)],
    }),
    row(['system-node-high', 'node-high', 400], 'ByUser', {
      subjects: nodes,
      resourceRules: [ofNodes, leases(all)],
    }),
    row(['system-nodes', 'system', 500], 'ByUser', byAll(nodes)),
    row(['kube-controller-manager', 'workload-high', 800], 'ByNamespace', byAll([manager])),
    row(['kube-scheduler', 'workload-high', 800], 'ByNamespace', byAll([scheduler])),
    row([`${namespace}-service-accounts`, 'workload-high', 900], 'ByNamespace', byAll([account])),
    row(
      ['service-accounts', 'workload-low', 9000],
      'ByUser',
      byAll([group('system:serviceaccounts')]),
    ),
    row(['global-default', 'global-default', 9900], 'ByUser', byAll(everybody)),
    row(['catch-all', 'catch-all', 10_000], 'ByUser', byAll(everybody)),
  ];
}

const mandatorySpecs = new Map<Dialect['name'], ReadonlyMap<string, JsonObject>>();

/** The specs of the mandatory objects by `<kind>/<name>`. */
function specsOf(dialect: Dialect): ReadonlyMap<string, JsonObject> {
  let specs = mandatorySpecs.get(dialect.name);
  if (specs === undefined) {
    const { levels, schemas } = defaultFlowObjects(dialect);
    const fixed = [...levels, ...schemas].filter(({ metadata }) =>
      mandatoryFlowNames.has(metadata.name ?? ''),
    );
    specs = new Map(
      fixed.map(({ kind, metadata, spec }) => [`${kind}/${metadata.name}`, jsonObject(spec)]),
    );
    mandatorySpecs.set(dialect.name, specs);
  }
  return specs;
}

/**
 * Validates that the spec of a mandatory object is the required one, except the settings of the
 * level `exempt`. Accepts other objects.
 */
export function validateMandatory(
  object: Stored<FlowSchema | PriorityLevelConfiguration>,
  { dialect, kind }: { readonly dialect: Dialect; readonly kind: string },
): FieldError[] {
  const name = object.metadata.name ?? '';
  const fixed = specsOf(dialect).get(`${kind}/${name}`);
  if (fixed === undefined) return [];
  const spec = object.spec ?? {};
  const own = fixed['exempt'];
  const compared = own === undefined ? spec : { ...spec, exempt: own };
  if (jsonEqual(compared, fixed)) return [];
  const part = own === undefined ? '' : " except the 'spec.exempt' field";
  return [invalid('spec', spec, `spec of '${name}'${part} must equal the fixed value`)];
}

/** Returns the default objects, as new copies that callers may change. */
export function defaultFlowObjects(dialect: Dialect): DefaultFlowObjects {
  const apiVersion = `${dialect.group('flowcontrol.apiserver')}/v1`;
  const annotation = autoUpdateAnnotation(dialect);
  const object = (kind: string, name: string, spec: JsonObject): ApiObject =>
    structuredClone({
      apiVersion,
      kind,
      metadata: { name, annotations: { [annotation]: 'true' } },
      spec,
    });
  const level = (name: string, spec: JsonObject) =>
    object('PriorityLevelConfiguration', name, spec);
  const exempt = { nominalConcurrencyShares: 0, lendablePercent: 0 };
  return {
    levels: [
      level('exempt', { type: 'Exempt', exempt }),
      ...limitedLevels.map((limitedLevel) => level(limitedLevel.name, levelSpec(limitedLevel))),
    ],
    schemas: schemaRows(dialect).map((row) =>
      object('FlowSchema', row.name, {
        priorityLevelConfiguration: { name: row.level },
        matchingPrecedence: row.precedence,
        ...(row.method === undefined ? {} : { distinguisherMethod: { type: row.method } }),
        rules: [row.rules],
      }),
    ),
  };
}
