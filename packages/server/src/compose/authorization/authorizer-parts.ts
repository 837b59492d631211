import { type CatalogueSnapshot, policyRule, type ResourceDef } from '@wheelhouse/kinds';
import {
  andThen,
  background,
  type Clock,
  type Counter,
  type Dialect,
  type MetricRegistry,
  type UserInfo,
  type WebhookOutcome,
} from '@wheelhouse/machinery';
import { requiredKind } from '../../catalogue/catalogue.ts';
import { readConfigurationFile } from '../../files/followed-files.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import {
  type Authorizer,
  type AuthorizerType,
  alwaysAllow,
  alwaysDeny,
} from '../../gates/authz/authorization.ts';
import type { EscalationPort } from '../../gates/authz/rbac/escalation-check.ts';
import {
  createRbacAuthorizer,
  type RbacSource,
  type RulesForUser,
} from '../../gates/authz/rbac/rbac-authorizer.ts';
import type { RbacChange, RbacKind } from '../../gates/authz/rbac/rbac-index.ts';
import type { MatchRequest } from '../../gates/authz/webhook-authorizer.ts';
import { type CachePool, follow } from '../../registry/caches.ts';
import { decodeEntry } from '../../registry/object-codec.ts';
import type { AuthorizationResult, Decision } from '../../registry/permit.ts';
import type { EntryChange } from '../../watchcache/contract.ts';
import type { Entry } from '../../watchcache/entry.ts';
import { type ClientMeter, clientMeter } from '../../webhooks/client-metrics.ts';
import type { WebhookAttempt } from '../../webhooks/webhook-client.ts';
import type { ReadingBase } from '../context.ts';

/** An authorizer, and the rules it can list for a user. */
export interface AuthorizerPart {
  readonly authorizer: Authorizer;
  rulesFor(user: UserInfo, namespace: string): RulesForUser;
}

/** The authorizers that persist while the configuration changes. */
export interface AuthorizerParts {
  /** Undefined for a type that was not configured at the start. */
  of(type: AuthorizerType): AuthorizerPart | undefined;
  /** RBAC's rules as new as the store, for escalation checks, whichever authorizers decide. */
  readonly rules: EscalationPort['rules'];
  close(): void;
}

/** Opens the authorizers of some types. Rejects if the policy file is missing or malformed. */
export async function openAuthorizerParts(
  options: ReadingBase,
  types: ReadonlySet<AuthorizerType>,
): Promise<AuthorizerParts> {
  const parts = new Map<AuthorizerType, AuthorizerPart>(fixedParts);
  if (types.has('ABAC')) parts.set('ABAC', await openAbac(options));
  const rbac = createRbac(options);
  if (types.has('RBAC')) {
    const { authorizer } = await rbac.open();
    const rulesFor: AuthorizerPart['rulesFor'] = (user, namespace) =>
      authorizer.rulesFor(user, namespace);
    parts.set('RBAC', { authorizer, rulesFor });
  }
  const node = types.has('Node') ? await openNodeAuthorizer(options) : undefined;
  if (node !== undefined) {
    const { authorizer } = node;
    const rulesFor = (user: UserInfo): RulesForUser => {
      const problem = authorizer.rulesProblem(user);
      return problem === undefined
        ? { rules: [], errors: [], extent: 'whole' }
        : { rules: [], errors: [problem], extent: 'partial' };
    };
    parts.set('Node', { authorizer, rulesFor });
  }
  return {
    of: (type) => parts.get(type),
    rules: rbac.rules,
    close() {
      node?.close();
      rbac.close();
    },
  };
}

const wholeRules = (rules: RulesForUser['rules']): RulesForUser => ({
  rules,
  errors: [],
  extent: 'whole',
});

const allRules = [
  policyRule({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }),
  policyRule({ verbs: ['*'], nonResourceURLs: ['*'] }),
];

const fixedParts: readonly (readonly [AuthorizerType, AuthorizerPart])[] = [
  ['AlwaysAllow', { authorizer: alwaysAllow, rulesFor: () => wholeRules(allRules) }],
  ['AlwaysDeny', { authorizer: alwaysDeny, rulesFor: () => wholeRules([]) }],
];

/** Reads the policy file once; kube-apiserver does not follow it either. */
async function openAbac({ config, dialect }: ReadingBase): Promise<AuthorizerPart> {
  const { createAbacAuthorizer, parseAbacPolicies } = await import(
    '../../gates/authz/abac/abac-authorizer.ts'
  );
  const file = config.authorization?.policyFile ?? '';
  const text = readConfigurationFile(file);
  const warn = (message: string): void => config.logger.warn(message);
  const policies = parseAbacPolicies({ file, text, dialect, warn });
  const authorizer = createAbacAuthorizer(policies);
  return {
    authorizer,
    rulesFor: (user, namespace) => wholeRules(authorizer.rulesFor(user, namespace)),
  };
}

/** Loads the Node authorizer only if it is configured: its graph follows every pod. */
async function openNodeAuthorizer({ config, dialect, catalogue, caches }: ReadingBase) {
  const [{ openNodeGraph }, { createNodeAuthorizer }] = await Promise.all([
    import('../../gates/authz/node/node-source.ts'),
    import('../../gates/authz/node/node-authorizer.ts'),
  ]);
  const snapshot = catalogue.snapshot();
  const { graph, close } = await openNodeGraph({ caches, snapshot, dialect, clock: config.clock });
  const gates = config.featureGates ?? defaultGates;
  const nodesAndPods = gates.enabled('AuthorizeNodeWithSelectors') ? 'own' : 'any';
  const authorizer = createNodeAuthorizer({ graph, dialect, features: gates, nodesAndPods });
  return { authorizer, close };
}

/** Creates RBAC's rules, which escalation checks use even if RBAC does not authorize requests. */
function createRbac({ catalogue, caches, dialect }: ReadingBase) {
  const open = async () => {
    const source = await openRbacSource({ caches, snapshot: catalogue.snapshot(), dialect });
    return { source, authorizer: createRbacAuthorizer({ source, dialect }) };
  };
  let opened: ReturnType<typeof open> | undefined;
  const openOnce = () => {
    opened ??= open().catch((error: unknown) => {
      // The next call tries again.
      opened = undefined;
      throw error;
    });
    return opened;
  };
  return {
    open: openOnce,
    async rules() {
      const { source, authorizer } = await openOnce();
      await source.fresh();
      return authorizer;
    },
    close: () => {
      background(
        { where: 'authz' },
        opened?.then(({ authorizer }) => authorizer.stop()),
      );
    },
  };
}

const resources: Readonly<Record<RbacKind, string>> = {
  Role: 'roles',
  ClusterRole: 'clusterroles',
  RoleBinding: 'rolebindings',
  ClusterRoleBinding: 'clusterrolebindings',
};

/**
 * Feeds the RBAC authorizer from the watch caches of the four kinds, which are loaded when this
 * resolves. `fresh` resolves once the authorizer is as current as the store.
 */
async function openRbacSource(options: {
  readonly caches: CachePool;
  readonly snapshot: CatalogueSnapshot;
  readonly dialect: Dialect;
}): Promise<RbacSource & { fresh(): Promise<void> }> {
  const { caches, snapshot, dialect } = options;
  const group = dialect.group('rbac.authorization');
  const kinds = Object.keys(resources) as RbacKind[];
  const listeners = new Set<(change: RbacChange) => void>();
  const followed = await Promise.all(
    kinds.map(async (kind) => {
      const def = requiredKind(snapshot, group, resources[kind]);
      const onChange = (change: Pick<EntryChange, 'previous' | 'current'>) => {
        for (const listener of listeners) listener(rbacChange(kind, change));
      };
      return [kind, await followEntries({ caches, def, onChange })] as const;
    }),
  );
  const byKind = new Map(followed);
  return {
    async fresh() {
      await Promise.all(followed.map(([, { fresh }]) => fresh()));
    },
    list: (kind) => (byKind.get(kind)?.entries() ?? []).map(decodeEntry),
    onChange(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        for (const [, { close }] of followed) close();
      };
    },
  };
}

function rbacChange(
  kind: RbacKind,
  { previous, current }: Pick<EntryChange, 'previous' | 'current'>,
): RbacChange {
  if (current !== undefined) return { kind, current: decodeEntry(current) };
  return { kind, ...(previous === undefined ? {} : { previous: decodeEntry(previous) }) };
}

/** Keeps the decoded objects of a kind and reports every change. */
async function followEntries(options: {
  readonly caches: CachePool;
  readonly def: ResourceDef;
  readonly onChange: (change: Pick<EntryChange, 'previous' | 'current'>) => void;
}) {
  const cache = options.caches.of(options.def);
  const entryByKey = new Map<string, Entry>();
  const onEntry = (key: string, current: Entry | undefined) => {
    const previous = entryByKey.get(key);
    if (current === undefined) entryByKey.delete(key);
    else entryByKey.set(key, current);
    options.onChange({ previous, current });
  };
  const followed = await follow(cache, onEntry, { unreadable: 'omitted' });
  return {
    close: followed.close,
    entries: () => [...entryByKey.values()],
    fresh: async () => {
      await cache.get('', undefined);
    },
  };
}

/** Metrics of authorization under kube-apiserver's names. */
export interface AuthorizationMetrics {
  /** Metrics of the calls to webhooks. */
  readonly client: ClientMeter;
  /** Counts the decisions of an authorizer, but not its abstentions. */
  measured(
    authorizer: Authorizer,
    labels: { readonly type: string; readonly name: string },
  ): Authorizer;
  attempt(name: string, attempt: WebhookAttempt): void;
  failOpen(name: string, outcome: WebhookOutcome): void;
  measuredConditions(name: string, matches: MatchRequest): MatchRequest;
}

const attemptBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const conditionBuckets = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/** Registers the metrics; call it once per registry. */
export function createAuthorizationMetrics(
  registry: MetricRegistry,
  clock: Clock,
): AuthorizationMetrics {
  const decisions = registry.counter({
    name: 'apiserver_authorization_decisions_total',
    help: 'Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.',
    stability: 'ALPHA',
    labels: ['type', 'name', 'decision'],
  });
  return {
    client: clientMeter(registry, clock),
    measured(authorizer, { type, name }) {
      const counters: Partial<Record<Decision, Counter>> = {};
      return countDecisions(authorizer, (decision) => {
        const label = decision === 'allow' ? 'allowed' : 'denied';
        counters[decision] ??= decisions.of(type, name, label);
        counters[decision].add(1);
      });
    },
    ...webhookMetrics(registry),
    ...conditionMetrics(registry, clock),
  };
}

function countDecisions(
  authorizer: Authorizer,
  onDecision: (decision: 'allow' | 'deny') => void,
): Authorizer {
  const count = (result: AuthorizationResult): AuthorizationResult => {
    if (result.decision !== 'no-opinion') onDecision(result.decision);
    return result;
  };
  return {
    name: authorizer.name,
    authorize: (attributes) => andThen(authorizer.authorize(attributes), count),
  };
}

function webhookMetrics(
  registry: MetricRegistry,
): Pick<AuthorizationMetrics, 'attempt' | 'failOpen'> {
  const labels = ['name', 'result'];
  const stability = 'ALPHA';
  const evaluations = registry.counter({
    name: 'apiserver_authorization_webhook_evaluations_total',
    help: 'Number of calls to authorization webhooks.',
    stability,
    labels,
  });
  const durations = registry.histogram({
    name: 'apiserver_authorization_webhook_duration_seconds',
    help: 'Request latency in seconds.',
    stability,
    labels,
    buckets: attemptBuckets,
  });
  const failOpen = registry.counter({
    name: 'apiserver_authorization_webhook_evaluations_fail_open_total',
    help: 'NoOpinion results due to webhook timeout or error.',
    stability,
    labels,
  });
  return {
    attempt(name, { outcome, durationMs }) {
      evaluations.of(name, outcome).add(1);
      durations.of(name, outcome).observe(durationMs / 1000);
    },
    failOpen: (name, outcome) => failOpen.of(name, outcome).add(1),
  };
}

function conditionMetrics(
  registry: MetricRegistry,
  clock: Clock,
): Pick<AuthorizationMetrics, 'measuredConditions'> {
  const labels = ['type', 'name'];
  const stability = 'ALPHA';
  const errors = registry.counter({
    name: 'apiserver_authorization_match_condition_evaluation_errors_total',
    help: 'Total number of errors when an authorization webhook encounters a match condition error split by authorizer type and name.',
    stability,
    labels,
  });
  const exclusions = registry.counter({
    name: 'apiserver_authorization_match_condition_exclusions_total',
    help: 'Total number of exclusions when an authorization webhook is skipped because match conditions exclude it.',
    stability,
    labels,
  });
  const durations = registry.histogram({
    name: 'apiserver_authorization_match_condition_evaluation_seconds',
    help: 'Authorization match condition evaluation time in seconds, split by authorizer type and name.',
    stability,
    labels,
    buckets: conditionBuckets,
  });
  return {
    measuredConditions: (name, matches) =>
      function* (spec) {
        const startMs = clock.monotonic();
        try {
          const isMatch = yield* matches(spec);
          if (!isMatch) exclusions.of('Webhook', name).add(1);
          return isMatch;
        } catch (error) {
          errors.of('Webhook', name).add(1);
          throw error;
        } finally {
          durations.of('Webhook', name).observe((clock.monotonic() - startMs) / 1000);
        }
      },
  };
}
