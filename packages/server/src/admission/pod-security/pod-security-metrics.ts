import type { MetricRegistry } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import { latestMinor } from './pod-security-checks.ts';
import type { Standard } from './pod-security-policy.ts';

/** Counts the verdicts of pod security (OPS-1). */
export interface PodSecurityMetrics {
  /** A pod or template has been compared with a standard. */
  evaluated(call: AdmissionCall, evaluation: Evaluation): void;
  /** The configuration exempts the request. */
  exempted(call: AdmissionCall): void;
  /** A namespace's labels cannot be read, or (`fatal`) nothing could be evaluated. */
  failed(call: AdmissionCall, severity: 'fatal' | 'recovered'): void;
}

interface Evaluation {
  readonly decision: 'allow' | 'deny';
  readonly mode: 'enforce' | 'audit' | 'warn';
  readonly standard: Standard;
}

const requestLabels = ['request_operation', 'resource', 'subresource'];

/** Registers the metrics; the series of the commonest requests are there from the start. */
export function podSecurityMetrics(registry: MetricRegistry): PodSecurityMetrics {
  const counter = (name: string, help: string, labels: readonly string[]) =>
    registry.counter({ name: `pod_security_${name}`, help, stability: 'ALPHA', labels });
  const evaluations = counter(
    'evaluations_total',
    'Number of policy evaluations that occurred, not counting ignored or exempt requests.',
    ['decision', 'policy_level', 'policy_version', 'mode', ...requestLabels],
  );
  const exemptions = counter(
    'exemptions_total',
    'Number of exempt requests, not counting ignored or out of scope requests.',
    requestLabels,
  );
  const errors = counter(
    'errors_total',
    'Number of errors preventing normal evaluation. After an error that is not fatal, the latest restricted standard may apply.',
    ['fatal', ...requestLabels],
  );
  for (const operation of ['create', 'update']) {
    evaluations.of('allow', 'privileged', 'latest', 'enforce', operation, 'pod', '');
    for (const resource of ['pod', 'controller']) exemptions.of(operation, resource, '');
  }
  return {
    evaluated(call, { decision, mode, standard }) {
      const version = versionLabel(standard);
      evaluations.of(decision, standard.level, version, mode, ...labelsOf(call)).add(1);
    },
    exempted: (call) => exemptions.of(...labelsOf(call)).add(1),
    failed: (call, severity) => errors.of(String(severity === 'fatal'), ...labelsOf(call)).add(1),
  };
}

function versionLabel({ level, minor }: Standard): string {
  // The privileged standard is the same in every release.
  if (minor === undefined || level === 'privileged') return 'latest';
  return minor > latestMinor ? 'future' : `v1.${minor}`;
}

function labelsOf({ operation, target }: AdmissionCall): readonly string[] {
  const { def, subresource } = target;
  return [operation.toLowerCase(), resourceLabel(def.resource), subresource];
}

function resourceLabel(resource: string): string {
  if (resource === 'namespaces') return 'namespace';
  return resource === 'pods' ? 'pod' : 'controller';
}
