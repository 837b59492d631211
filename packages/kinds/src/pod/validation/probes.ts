import {
  appendAll,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  notSupported,
  required,
} from '@wheelhouse/machinery';
import { at, listAt, textAt } from '../../cells.ts';
import type { Container, LifecycleHandler, Probe } from '../../gen/types/core/v1.ts';
import { objectAt, objectsAt, wholeNumber } from '../../rules/fill.ts';
import type { Stored } from '../../stored.ts';
import { intAt, needed, noneNegative, portNumber, portNumberOrName } from '../fields.ts';
import type { PodRules } from '../rules.ts';

type Rule = (action: JsonObject, path: string) => FieldError[];

const schemes = ['HTTP', 'HTTPS'];
const headerDetail =
  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', " +
  "regex used for validation is '[-A-Za-z0-9]+')";

const exec: Rule = (action, path) =>
  listAt(action, 'command').length === 0 ? [required(`${path}.command`)] : [];

const httpGet: Rule = (action, path) => {
  const scheme = textAt(action, 'scheme');
  return [
    ...needed(action, path, 'path'),
    ...portNumberOrName(`${path}.port`, at(action, 'port')),
    ...(schemes.includes(scheme) ? [] : [notSupported(`${path}.scheme`, scheme, schemes)]),
    ...objectsAt(action, 'httpHeaders').flatMap((header) => {
      const name = textAt(header, 'name');
      return /^[-A-Za-z0-9]+$/.test(name)
        ? []
        : [invalid(`${path}.httpHeaders`, name, headerDetail)];
    }),
  ];
};

const tcpSocket: Rule = (action, path) => portNumberOrName(`${path}.port`, at(action, 'port'));

const grpc: Rule = (action, path) => portNumber(`${path}.port`, intAt(action, 'port') ?? 0);

/** A pause at most as long as the pod has to end; unless how long that is cannot be told. */
const sleep =
  (graceSeconds: number | undefined, { allow }: PodRules): Rule =>
  (action, path) => {
    const seconds = intAt(action, 'seconds') ?? 0;
    const least = allow.zeroSleep ? 0 : 1;
    if (graceSeconds === undefined || (seconds >= least && seconds <= graceSeconds)) return [];
    if (allow.zeroSleep) {
      const range = 'must be non-negative and less than terminationGracePeriodSeconds';
      return [invalid(path, seconds, `${range} (${graceSeconds})`)];
    }
    const detail =
      `must be greater than 0 and less than terminationGracePeriodSeconds (${graceSeconds}). ` +
      'Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.';
    return [invalid(path, seconds, detail)];
  };

/** Exactly one of the actions there are. */
function validateHandler(
  handler: Stored<LifecycleHandler | Probe>,
  path: string,
  actions: Readonly<Record<string, Rule>>,
): FieldError[] {
  const actionNames = Object.keys(actions).filter((name) => objectAt(handler, name));
  const [first, ...more] = actionNames;
  if (first === undefined) return [required(path, 'must specify a handler type')];
  const rule = actions[first] as Rule;
  return [
    ...rule(objectAt(handler, first) ?? {}, `${path}.${first}`),
    ...more.map((name) =>
      forbiddenField(`${path}.${name}`, 'may not specify more than 1 handler type'),
    ),
  ];
}

const probeActions = { exec, httpGet, tcpSocket, grpc };

const counts = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
];

function validateProbe(probe: Stored<Probe>, path: string): FieldError[] {
  const errors = [
    ...validateHandler(probe, path, probeActions),
    ...noneNegative(probe, path, ...counts),
  ];
  const field = `${path}.terminationGracePeriodSeconds`;
  const grace = wholeNumber(probe.terminationGracePeriodSeconds);
  if (grace !== undefined && grace <= 0) {
    errors.push(invalid(field, grace, 'must be greater than 0'));
  }
  if (path.endsWith('.readinessProbe')) {
    if (grace === undefined) return errors;
    return [...errors, invalid(field, grace, 'must not be set for readinessProbes')];
  }
  const successes = probe.successThreshold ?? 0;
  if (successes !== 1) errors.push(invalid(`${path}.successThreshold`, successes, 'must be 1'));
  return errors;
}

/** Hooks and probes of a container that runs as long as its pod does. */
export function validateLiveChecks(
  container: Stored<Container>,
  path: string,
  { graceSeconds, rules }: { graceSeconds: number | undefined; rules: PodRules },
): FieldError[] {
  const errors: FieldError[] = [];
  const hookActions = { exec, httpGet, tcpSocket, sleep: sleep(graceSeconds, rules) };
  for (const name of ['postStart', 'preStop'] as const) {
    const hook = container.lifecycle?.[name];
    if (hook === undefined) continue;
    appendAll(errors, validateHandler(hook, `${path}.lifecycle.${name}`, hookActions));
  }
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
    const probe = container[name];
    if (probe !== undefined) appendAll(errors, validateProbe(probe, `${path}.${name}`));
  }
  return errors;
}
