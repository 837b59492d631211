import { policyRule } from '@wheelhouse/kinds';
import {
  andThen,
  background,
  type Clock,
  type Counter,
  type MaybePromise,
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
import { createRbacAuthorizer, type RulesForUser } from '../../gates/authz/rbac/rbac-authorizer.ts';
import { RbacChanges } from '../../gates/authz/rbac/rbac-changes.ts';
import type { RbacKind } from '../../gates/authz/rbac/rbac-index.ts';
import type { MatchRequest } from '../../gates/authz/webhook-authorizer.ts';
import { follow } from '../../registry/caches.ts';
import type { AuthorizationResult, Decision } from '../../registry/permit.ts';
import type { Entry } from '../../watchcache/entry.ts';
import { type ClientMeter, clientMeter } from '../../webhooks/client-metrics.ts';
import type { WebhookAttempt } from '../../webhooks/webhook-client.ts';
import type { ReadingBase } from '../context.ts';

/** An authorizer, and the rules it can list for a user. */
export interface AuthorizerPart {
  readonly authorizer: Authorizer;
  rulesFor(user: UserInfo, namespace: string): MaybePromise<RulesForUser>;
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
    const { authorizer, changes } = await rbac.open();
    const rulesFor: AuthorizerPart['rulesFor'] = async (user, namespace) => {
      await changes.settled();
      return authorizer.rulesFor(user, namespace);
    };
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
function createRbac(base: ReadingBase) {
  let opened: ReturnType<typeof openRbac> | undefined;
  const openOnce = () => {
    opened ??= openRbac(base).catch((error: unknown) => {
      // The next call tries again.
      opened = undefined;
      throw error;
    });
    return opened;
  };
  return {
    open: openOnce,
    async rules() {
      const { fresh, authorizer } = await openOnce();
      await fresh();
      return authorizer;
    },
    close: () => {
      background(
        { where: 'authz' },
        opened?.then(({ close }) => close()),
      );
    },
  };
}

const rbacResources: readonly (readonly [kind: RbacKind, resource: string])[] = [
  ['ClusterRole', 'clusterroles'],
  ['Role', 'roles'],
  ['ClusterRoleBinding', 'clusterrolebindings'],
  ['RoleBinding', 'rolebindings'],
];

/**
 * Creates the RBAC authorizer and feeds it from the watch caches of the four kinds, which are in its
 * index when this resolves. `fresh` resolves once the index is as current as the store.
 */
async function openRbac({ catalogue, caches, dialect, config }: ReadingBase) {
  const { clock, logger } = config;
  const snapshot = catalogue.snapshot();
  const group = dialect.group('rbac.authorization');
  const changes = new RbacChanges({ clock, logger });
  const kinds = rbacResources.map(([kind, resource]) => ({
    kind,
    cache: caches.of(requiredKind(snapshot, group, resource)),
  }));
  const followed = await changes.load(() =>
    Promise.all(
      kinds.map(({ kind, cache }) => {
        const onEntry = (key: string, entry: Entry | undefined) => changes.report(kind, key, entry);
        return follow(cache, onEntry, { unreadable: 'omitted' });
      }),
    ),
  );
  return {
    changes,
    authorizer: createRbacAuthorizer({ changes, dialect, clock }),
    async fresh() {
      await Promise.all(kinds.map(({ cache }) => cache.get('', undefined)));
      await changes.settled();
    },
    close() {
      for (const subscription of followed) subscription.close();
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
