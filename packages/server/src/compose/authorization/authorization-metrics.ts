import type { Clock, Counter, MetricRegistry, WebhookOutcome } from '@wheelhouse/machinery';
import type { AuthorizationResult, Authorizer, Decision } from '../../gates/authz/contract.ts';
import type { MatchRequest } from '../../gates/authz/webhook-authorizer.ts';
import { type ClientMeter, clientMeter } from '../webhooks/client-metrics.ts';
import type { WebhookAttempt } from '../webhooks/webhook-client.ts';

/** What authorization is measured by, under upstream's names. */
export interface AuthorizationMetrics {
  /** What webhooks are asked through. */
  readonly client: ClientMeter;
  /** Counts what an authorizer decides; what it leaves to others is not counted. */
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

/** Registers the metrics; once for a registry. */
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
  tell: (decision: 'allow' | 'deny') => void,
): Authorizer {
  const count = (result: AuthorizationResult): AuthorizationResult => {
    if (result.decision !== 'no-opinion') tell(result.decision);
    return result;
  };
  return {
    name: authorizer.name,
    authorize(attributes) {
      const result = authorizer.authorize(attributes);
      return result instanceof Promise ? result.then(count) : count(result);
    },
  };
}

function webhookMetrics(
  registry: MetricRegistry,
): Pick<AuthorizationMetrics, 'attempt' | 'failOpen'> {
  const labels = ['name', 'result'];
  const stability = 'ALPHA';
  const evaluations = registry.counter({
    name: 'apiserver_authorization_webhook_evaluations_total',
    help: 'Round-trips to authorization webhooks.',
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
    measuredConditions: (name, matches) => (spec) => {
      const startMs = clock.monotonic();
      try {
        const isMatch = matches(spec);
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
