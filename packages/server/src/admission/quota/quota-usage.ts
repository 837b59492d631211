import {
  type Amounts,
  amountsOf,
  amountsOfSteps,
  at,
  listAt,
  type MaybeSteps,
  numberAt,
  objectAt,
  objectsAt,
  podAmountsSteps,
  qualityOfService,
  type Stored,
  statesPodAmounts,
  sumAmounts,
  textAt,
} from '@wheelhouse/kinds';
import type {
  PersistentVolumeClaim,
  Pod,
  PodSpec,
  ResourceQuota,
} from '@wheelhouse/kinds/types/core/v1';
import {
  type ApiObject,
  compareText,
  type Dialect,
  type JsonObject,
  type Quantity,
  sortSteps,
  sumQuantities,
} from '@wheelhouse/machinery';

/** How objects of one resource count against quotas. */
export interface QuotaEvaluator {
  /** Whether an update may increase usage, as a create does. */
  readonly grows: boolean;
  /** The quota's names that such objects count against. */
  matching(names: readonly string[]): readonly string[];
  /** In steps for a Pod (TRUST-2). */
  usage(object: ApiObject, nowMs: number): MaybeSteps<Amounts>;
  /** The usage of so many objects, if it does not depend on their content. */
  readonly usageOfNumber?: (number: number) => Amounts;
  matchesScope(object: ApiObject, requirement: ScopeRequirement): boolean;
  /**
   * Returns what tells which fields the object must set if a quota counts it by these names;
   * undefined if all are set. In steps; absent if there are no such fields.
   */
  readonly missing?: (
    object: ApiObject,
  ) => (names: readonly string[]) => Generator<void, string | undefined>;
}

const billion = 1_000_000_000n;
const count = (amount: number): Quantity => ({
  nano: BigInt(amount) * billion,
  text: String(amount),
});

/** Names of object counts from before quotas could count every resource. */
const aliases: Readonly<Record<string, string>> = {
  configmaps: 'configmaps',
  resourcequotas: 'resourcequotas',
  replicationcontrollers: 'replicationcontrollers',
  secrets: 'secrets',
};

/**
 * How objects of a resource are counted; resources without rules of their own are counted by
 * number.
 */
export function quotaEvaluator(
  at: { readonly group: string; readonly resource: string },
  dialect: Dialect,
): QuotaEvaluator {
  const counted = countName(at);
  if (at.group === '') {
    if (at.resource === 'pods') return podEvaluator(counted, dialect);
    if (at.resource === 'services') return serviceEvaluator(counted);
    if (at.resource === 'persistentvolumeclaims') return claimEvaluator(counted, dialect);
  }
  const alias = at.group === '' ? aliases[at.resource] : undefined;
  const names = alias === undefined ? [counted] : [counted, alias];
  const usageOfNumber = (number: number) => new Map(names.map((name) => [name, count(number)]));
  return {
    ...plain(names),
    grows: false,
    usage: () => usageOfNumber(1),
    usageOfNumber,
  };
}

/** A quota's name for the number of a resource's objects. */
export function countName(at: { readonly group: string; readonly resource: string }): string {
  return `count/${at.resource}${at.group === '' ? '' : `.${at.group}`}`;
}

function plain(names: readonly string[]): Omit<QuotaEvaluator, 'grows' | 'usage'> {
  const ownNames = new Set(names);
  return {
    matching: (candidates) => candidates.filter((name) => ownNames.has(name)),
    matchesScope: () => false,
  };
}

function serviceEvaluator(counted: string): QuotaEvaluator {
  const names = ['services', 'services.loadbalancers', 'services.nodeports'];
  return {
    ...plain([counted, ...names]),
    grows: true,
    usage(service) {
      const type = textAt(service, 'spec', 'type');
      const ports = objectsAt(service, 'spec', 'ports');
      const allocates = at(service, 'spec', 'allocateLoadBalancerNodePorts') !== false;
      const explicitCount = ports.filter((port) => numberAt(port, 'nodePort') !== 0).length;
      const isBalanced = type === 'LoadBalancer';
      const all = type === 'NodePort' || (isBalanced && allocates) ? ports.length : 0;
      return new Map([
        [counted, count(1)],
        ['services', count(1)],
        ['services.loadbalancers', count(isBalanced ? 1 : 0)],
        ['services.nodeports', count(isBalanced && !allocates ? explicitCount : all)],
      ]);
    },
  };
}

function claimEvaluator(counted: string, dialect: Dialect): QuotaEvaluator {
  const resources = ['persistentvolumeclaims', 'requests.storage'];
  const exactNames = new Set([counted, ...resources]);
  const suffix = `.storageclass.${dialect.group('storage')}/`;
  const older = dialect.label('storage-class', 'volume.beta');
  return {
    ...plain([]),
    grows: true,
    matching: (names) =>
      names.filter(
        (name) =>
          exactNames.has(name) || resources.some((resource) => name.endsWith(suffix + resource)),
      ),
    usage(claim) {
      const usage = new Map([
        [counted, count(1)],
        ['persistentvolumeclaims', count(1)],
      ]);
      const className =
        claim.metadata.annotations?.[older] ?? textAt(claim, 'spec', 'storageClassName');
      const size = storageOf(claim);
      if (size !== undefined) usage.set('requests.storage', size);
      if (className === '') return usage;
      for (const name of resources) {
        const amount = usage.get(name);
        if (amount !== undefined) usage.set(className + suffix + name, amount);
      }
      return usage;
    },
  };
}

/** The storage that a claim requests or has, whichever is more, rounded up to whole bytes. */
function storageOf(claim: Stored<PersistentVolumeClaim>): Quantity | undefined {
  const requested = amountsOf(claim.spec?.resources?.requests).get('storage');
  if (requested === undefined) return undefined;
  const allocated = amountsOf(claim.status?.allocatedResources).get('storage');
  const larger = allocated !== undefined && allocated.nano > requested.nano ? allocated : requested;
  if (larger.nano % billion === 0n) return larger;
  const bytes = larger.nano / billion + 1n;
  return sumQuantities([{ nano: bytes * billion, text: larger.text }]);
}

const podNames = [
  'cpu',
  'memory',
  'ephemeral-storage',
  'requests.cpu',
  'requests.memory',
  'requests.ephemeral-storage',
  'limits.cpu',
  'limits.memory',
  'limits.ephemeral-storage',
  'pods',
];
/** Amounts that every container must set once a quota counts them. */
const demanded = new Set([
  'cpu',
  'memory',
  'requests.cpu',
  'requests.memory',
  'limits.cpu',
  'limits.memory',
]);
const hugePages = 'hugepages-';
/** The resources of containers that count under their own names. */
const computeNames: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage']);

function podEvaluator(counted: string, dialect: Dialect): QuotaEvaluator {
  const exactNames = new Set([counted, ...podNames]);
  const domain = dialect.label('');
  const isNative = (name: string) => !name.includes('/') || name.includes(domain);
  const isCounted = (name: string) =>
    exactNames.has(name) ||
    name.startsWith(hugePages) ||
    name.startsWith(`requests.${hugePages}`) ||
    (!isNative(name) && name.startsWith('requests.'));
  const usageFor = (requests: Amounts, limits: Amounts) => {
    const usage = new Map<string, Quantity>();
    for (const [name, amount] of requests) {
      const isCompute = computeNames.has(name) || name.startsWith(hugePages);
      if (isCompute) usage.set(name, amount);
      const isDevice = !isNative(name) && !name.startsWith('requests.');
      if (isCompute || isDevice) usage.set(`requests.${name}`, amount);
    }
    for (const [name, amount] of limits) {
      if (computeNames.has(name)) usage.set(`limits.${name}`, amount);
    }
    return usage;
  };
  return {
    grows: false,
    matching: (names) => names.filter(isCounted),
    *usage(pod, nowMs) {
      const own = new Map([[counted, count(1)]]);
      if (hasEnded(pod, nowMs)) return own;
      const spec = objectAt(pod, 'spec');
      const overhead = yield* amountsOfSteps(objectAt(spec, 'overhead'));
      const requests = sumAmounts(yield* podAmountsSteps(spec, 'requests'), overhead);
      yield;
      const limits = withOverhead(yield* podAmountsSteps(spec, 'limits'), overhead);
      yield;
      const usage = usageFor(requests, limits);
      usage.set('pods', count(1));
      usage.set(counted, count(1));
      return usage;
    },
    matchesScope: podMatches,
    missing: (pod) => {
      const spec = objectAt(pod, 'spec');
      let silent: ReadonlyMap<string, readonly string[]> | undefined;
      return function* (names) {
        const demandedNames = names.filter((name) => demanded.has(name)).sort();
        if (demandedNames.length === 0 || statesPodAmounts(spec)) return undefined;
        silent ??= yield* silentContainers(spec, usageFor);
        const parts = demandedNames.flatMap((name) => {
          const containers = silent?.get(name) ?? [];
          return containers.length === 0 ? [] : [`${name} for: ${containers.join(',')}`];
        });
        return parts.length === 0 ? undefined : `must specify ${parts.join('; ')}`;
      };
    },
  };
}

/** The sorted names of the containers that do not set each of the demanded amounts, in steps. */
function* silentContainers(
  spec: Stored<PodSpec> | undefined,
  usageFor: (requests: Amounts, limits: Amounts) => Amounts,
): Generator<void, ReadonlyMap<string, readonly string[]>> {
  const silent = new Map([...demanded].map((name) => [name, new Set<string>()]));
  for (const container of [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])]) {
    yield;
    const list = (member: string) => amountsOfSteps(objectAt(container, 'resources', member));
    const usage = usageFor(yield* list('requests'), yield* list('limits'));
    for (const [name, containers] of silent) {
      if (!usage.has(name)) containers.add(textAt(container, 'name'));
    }
  }
  const sorted = new Map<string, readonly string[]>();
  for (const [name, containers] of silent) {
    sorted.set(name, yield* sortSteps([...containers], compareText));
  }
  return sorted;
}

/** Adds the overhead to existing limits only; a limit of zero is none. */
function withOverhead(limits: Amounts, overhead: Amounts): Amounts {
  const added = new Map([...overhead].filter(([name]) => (limits.get(name)?.nano ?? 0n) !== 0n));
  return sumAmounts(limits, added);
}

/** A pod that has ended, or exceeds its deletion grace period, counts only as an object. */
function hasEnded(pod: Stored<Pod>, nowMs: number): boolean {
  const phase = pod.status?.phase ?? '';
  if (phase === 'Failed' || phase === 'Succeeded') return true;
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return false;
  return nowMs > Date.parse(deletionTimestamp) + deletionGracePeriodSeconds * 1000;
}

function podMatches(pod: Stored<Pod>, requirement: ScopeRequirement): boolean {
  const spec: JsonObject = pod.spec ?? {};
  const deadline = at(spec, 'activeDeadlineSeconds');
  const isTerminating = deadline !== undefined && deadline !== null && Number(deadline) >= 0;
  switch (requirement.scopeName) {
    case 'Terminating':
      return isTerminating;
    case 'NotTerminating':
      return !isTerminating;
    case 'BestEffort':
      return qualityOfService(spec) === 'BestEffort';
    case 'NotBestEffort':
      return qualityOfService(spec) !== 'BestEffort';
    case 'PriorityClass':
      return selectsPriority(requirement, textAt(spec, 'priorityClassName'));
    case 'CrossNamespacePodAffinity':
      return crossesNamespaces(spec);
    default:
      return false;
  }
}

/** The scopes of a quota, from both of its fields. */
export function scopesOf(quota: Stored<ResourceQuota>): readonly ScopeRequirement[] {
  const plainScopes = (quota.spec?.scopes ?? []).map((scope) => ({
    scopeName: String(scope),
    operator: 'Exists',
    values: [],
  }));
  const expressions = quota.spec?.scopeSelector?.matchExpressions ?? [];
  return [
    ...plainScopes,
    ...expressions.map((expression) => ({
      scopeName: expression.scopeName ?? '',
      operator: expression.operator ?? '',
      values: (expression.values ?? []).map(String),
    })),
  ];
}

/** A scope requirement on counted objects. */
export interface ScopeRequirement {
  readonly scopeName: string;
  readonly operator: string;
  readonly values: readonly string[];
}

/** Whether a requirement selects pods of a priority class; an empty name means none. */
export function selectsPriority(
  { operator, values }: ScopeRequirement,
  className: string,
): boolean {
  switch (operator) {
    case 'In':
      return className !== '' && values.includes(className);
    case 'NotIn':
      return className === '' || !values.includes(className);
    case 'Exists':
      return className !== '';
    case 'DoesNotExist':
      return className === '';
    default:
      return false;
  }
}

/** Whether a pod's affinity terms refer to pods of other namespaces. */
export function crossesNamespaces(spec: Stored<PodSpec>): boolean {
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  const terms = ['podAffinity', 'podAntiAffinity'].flatMap((member) => [
    ...objectsAt(spec, 'affinity', member, required),
    ...objectsAt(spec, 'affinity', member, preferred).map(
      (weightedTerm) => objectAt(weightedTerm, 'podAffinityTerm') ?? {},
    ),
  ]);
  return terms.some(
    (term) =>
      listAt(term, 'namespaces').length > 0 || objectAt(term, 'namespaceSelector') !== undefined,
  );
}
