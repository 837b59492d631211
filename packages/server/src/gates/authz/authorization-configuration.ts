import {
  ConfigurationError,
  type ConfigurationFormat,
  decodeConfiguration,
  listType,
  optional,
  structType,
  textType,
} from '@wheelhouse/codec';
import {
  aggregateText,
  appendAll,
  type Clock,
  type Dialect,
  dnsSubdomain,
  duplicate,
  type FieldError,
  invalid,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  notSupported,
  objectsOf,
  required,
  runInSlices,
  textOf,
  tooMany,
} from '@wheelhouse/machinery';
import { parseGoDuration, type Schema } from '@wheelhouse/schema';
import {
  type AccessReviewVersion,
  type AuthorizerType,
  accessReviewVersions,
  authorizerTypes,
} from './authorization.ts';
import { compileMatchCondition, type MatchCondition, matchesAll } from './match-conditions.ts';
import type { MatchRequest, WebhookAuthorizerSettings } from './webhook-authorizer.ts';

/** How to reach a webhook, and for which requests. */
export interface ConfiguredWebhook extends Omit<WebhookAuthorizerSettings, 'selectors'> {
  readonly timeoutMs: number;
  /** Undefined: from the pod's environment. */
  readonly kubeConfigFile: string | undefined;
  readonly matches: MatchRequest | undefined;
  /** The expressions of `matches`, to compare configurations. */
  readonly expressions: readonly string[];
}

/** One authorizer of the chain. */
export type ConfiguredAuthorizer =
  | { readonly type: Exclude<AuthorizerType, 'Webhook'>; readonly name: string }
  | { readonly type: 'Webhook'; readonly name: string; readonly webhook: ConfiguredWebhook };

/** Settings other than the file that validation depends on. */
interface ConfigurationRules {
  readonly dialect: Dialect;
  /** Whether conditions may use selectors. */
  readonly selectors: 'included' | 'omitted';
  /** Returns the error of a kubeconfig's path; undefined if the file is readable. */
  readonly fileProblem: (path: string) => string | undefined;
  /** Types that a reload must keep, because the server started with them. */
  readonly requiredTypes: ReadonlySet<AuthorizerType>;
  readonly clock: Clock;
}

const durationType: Schema = { type: 'string', format: 'duration' };
const configurationType = structType('AuthorizationConfiguration', {
  authorizers: listType(
    structType('AuthorizerConfiguration', {
      type: textType,
      name: textType,
      webhook: optional(
        structType('WebhookConfiguration', {
          authorizedTTL: durationType,
          unauthorizedTTL: durationType,
          timeout: durationType,
          subjectAccessReviewVersion: textType,
          matchConditionSubjectAccessReviewVersion: textType,
          failurePolicy: textType,
          connectionInfo: structType('WebhookConnectionInfo', {
            type: textType,
            kubeConfigFile: optional(textType),
          }),
          matchConditions: listType(structType('WebhookMatchCondition', { expression: textType })),
        }),
      ),
    }),
  ),
});

/** The file of `--authorization-config` (AUTHZ-3). */
export const authorizationFormat = {
  kind: 'AuthorizationConfiguration',
  group: 'apiserver.config',
  versions: { v1: configurationType, v1beta1: configurationType, v1alpha1: configurationType },
} as const satisfies ConfigurationFormat;

/**
 * Reads and validates an AuthorizationConfiguration (AUTHZ-3) of any version in YAML or JSON.
 * Rejects with a ConfigurationError that lists all errors in one line, in kube-apiserver's wording.
 */
export async function loadAuthorizationConfiguration(
  text: string,
  rules: ConfigurationRules,
): Promise<readonly ConfiguredAuthorizer[]> {
  const object = await decode(text, rules.dialect);
  const entries = objectsOf(member(object, 'authorizers')).map(withDefaults);
  const validation = validateAuthorizers(entries, rules);
  const { errors, conditions } = await runInSlices(validation, rules.clock);
  if (errors.length > 0) throw new ConfigurationError(aggregateText(errors));
  const authorizers = entries.map((entry, index) =>
    authorizerOf(entry, conditions.get(index) ?? []),
  );
  const problems = authorizers.flatMap(nameProblem);
  const missing = [...rules.requiredTypes].filter(
    (type) => !authorizers.some((authorizer) => authorizer.type === type),
  );
  if (missing.length > 0) problems.push(`missing required types: [${missing.sort().join(' ')}]`);
  if (problems.length > 0) throw new ConfigurationError(aggregateText(problems));
  return authorizers;
}

async function decode(text: string, dialect: Dialect): Promise<JsonObject> {
  // An empty file is an empty configuration, which is invalid for its lack of authorizers.
  if (text === '') return {};
  const group = dialect.group(authorizationFormat.group);
  try {
    const { object } = await decodeConfiguration(text, { ...authorizationFormat, group });
    return object;
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    throw new ConfigurationError(
      `failed to load AuthorizationConfiguration from file: ${error.message}`,
    );
  }
}

function withDefaults(authorizer: JsonObject): JsonObject {
  const { webhook } = authorizer;
  if (!isObject(webhook)) return authorizer;
  const { authorizedTTL, unauthorizedTTL } = webhook;
  return {
    ...authorizer,
    webhook: {
      ...webhook,
      authorizedTTL: authorizedTTL === '0s' ? '5m0s' : (authorizedTTL ?? ''),
      unauthorizedTTL: unauthorizedTTL === '0s' ? '30s' : (unauthorizedTTL ?? ''),
    },
  };
}

/** The error of an authorizer whose name is not its type; webhooks may have any name. */
function nameProblem({ type, name }: ConfiguredAuthorizer): string[] {
  const expected = type.toLowerCase();
  if (type === 'Webhook' || name === expected) return [];
  return [`expected name ${expected} for authorizer ${type} instead of ${name}`];
}

function authorizerOf(
  entry: JsonObject,
  conditions: readonly MatchCondition[],
): ConfiguredAuthorizer {
  const [type, name] = [textOf(entry['type']) as AuthorizerType, textOf(entry['name'])];
  if (type !== 'Webhook') return { type, name };
  const webhook = isObject(entry['webhook']) ? entry['webhook'] : {};
  const connection = isObject(webhook['connectionInfo']) ? webhook['connectionInfo'] : {};
  const file = connection['kubeConfigFile'];
  return {
    type,
    name,
    webhook: {
      name,
      version: textOf(webhook['subjectAccessReviewVersion']) as AccessReviewVersion,
      timeoutMs: millisecondsOf(webhook['timeout']),
      authorizedTtlMs: millisecondsOf(webhook['authorizedTTL']),
      unauthorizedTtlMs: millisecondsOf(webhook['unauthorizedTTL']),
      failurePolicy: webhook['failurePolicy'] === 'Deny' ? 'Deny' : 'NoOpinion',
      kubeConfigFile: typeof file === 'string' ? file : undefined,
      expressions: conditions.map(({ expression }) => expression),
      matches: conditions.length === 0 ? undefined : (spec) => matchesAll(conditions, spec),
    },
  };
}

function millisecondsOf(value: JsonValue | undefined): number {
  return Number(parseGoDuration(textOf(value)) ?? 0n) / 1e6;
}

interface Rules {
  readonly selectors: 'included' | 'omitted';
  readonly fileProblem: (path: string) => string | undefined;
}

/** The errors in a list of authorizers, and the compiled conditions of each authorizer by index. */
interface ValidatedAuthorizers {
  readonly errors: readonly string[];
  readonly conditions: ReadonlyMap<number, readonly MatchCondition[]>;
}

/** Validates decoded and defaulted authorizers in kube-apiserver's wording, in steps (AUTHZ-3). */
function* validateAuthorizers(
  authorizers: readonly JsonObject[],
  rules: Rules,
): Generator<void, ValidatedAuthorizers> {
  const errors: FieldError[] = [];
  const conditions = new Map<number, readonly MatchCondition[]>();
  if (authorizers.length === 0) {
    errors.push(required('authorizers', 'at least one authorization mode must be defined'));
  }
  const seen = { types: new Set<string>(), names: new Set<string>() };
  for (const [index, authorizer] of authorizers.entries()) {
    const path = `authorizers[${index}]`;
    const typeError = typeProblem(authorizer, { path, types: seen.types });
    if (typeError !== undefined) {
      errors.push(typeError);
      continue;
    }
    appendAll(errors, nameProblems(authorizer, { path, names: seen.names }));
    const { webhook } = authorizer;
    if (textOf(authorizer['type']) !== 'Webhook') {
      if (isObject(webhook)) {
        const why = 'may only be specified when type=Webhook';
        errors.push(invalid(`${path}.webhook`, 'non-null', why));
      }
    } else if (!isObject(webhook)) {
      errors.push(required(`${path}.webhook`, 'required when type=Webhook'));
    } else {
      appendAll(errors, webhookProblems(webhook, { path, rules }));
      const compiled = yield* compileConditions(webhook, { path, rules });
      appendAll(errors, compiled.errors);
      conditions.set(index, compiled.conditions);
    }
  }
  return { errors: errors.map(({ field, message }) => `${field}: ${message}`), conditions };
}

function typeProblem(
  authorizer: JsonObject,
  { path, types }: { readonly path: string; readonly types: Set<string> },
): FieldError | undefined {
  const type = textOf(authorizer['type']);
  if (type === '') return required(`${path}.type`);
  if (!authorizerTypes.includes(type as AuthorizerType)) {
    return notSupported(`${path}.type`, type, authorizerTypes);
  }
  if (types.has(type) && type !== 'Webhook') return duplicate(`${path}.type`, type);
  types.add(type);
  return undefined;
}

function nameProblems(
  authorizer: JsonObject,
  { path, names }: { readonly path: string; readonly names: Set<string> },
): FieldError[] {
  const name = textOf(authorizer['name']);
  const isDuplicate = names.has(name);
  names.add(name);
  if (name === '') return [required(`${path}.name`)];
  if (isDuplicate) return [duplicate(`${path}.name`, name)];
  const problems = dnsSubdomain(name);
  if (problems.length === 0) return [];
  return [invalid(`${path}.name`, name, `authorizer name is invalid: ${problems.join(', ')}`)];
}

interface Place {
  readonly path: string;
  readonly rules: Rules;
}

function webhookProblems(webhook: JsonObject, place: Place): FieldError[] {
  const { path } = place;
  const conditions = webhook['matchConditions'];
  const hasConditions = Array.isArray(conditions) && conditions.length > 0;
  return [
    ...durationProblem(webhook, { path, name: 'timeout', requirement: 'must be > 0s and <= 30s' }),
    ...durationProblem(webhook, { path, name: 'authorizedTTL', requirement: 'must be > 0s' }),
    ...durationProblem(webhook, { path, name: 'unauthorizedTTL', requirement: 'must be > 0s' }),
    ...choiceProblem(webhook, {
      field: `${path}.subjectAccessReviewVersion`,
      allowed: accessReviewVersions,
    }),
    ...choiceProblem(webhook, {
      field: `${path}.matchConditionSubjectAccessReviewVersion`,
      allowed: ['v1'],
      absent: hasConditions ? 'required if match conditions are specified' : 'allowed',
    }),
    ...choiceProblem(webhook, {
      field: `${path}.failurePolicy`,
      allowed: ['NoOpinion', 'Deny'],
    }),
    ...connectionProblems(webhook, place),
  ];
}

const timeoutMax = 30_000_000_000n;

function durationProblem(
  webhook: JsonObject,
  { path, name, requirement }: { path: string; name: string; requirement: string },
): FieldError[] {
  const text = textOf(webhook[name]);
  const duration = parseGoDuration(text) ?? 0n;
  const field = `${path}.${name}`;
  if (duration === 0n) return [required(field)];
  const isTooLong = name === 'timeout' && duration > timeoutMax;
  return duration < 0n || isTooLong ? [invalid(field, text, requirement)] : [];
}

function choiceProblem(
  webhook: JsonObject,
  choice: { readonly field: string; readonly allowed: readonly string[]; readonly absent?: string },
): FieldError[] {
  const { field, allowed, absent = '' } = choice;
  const value = textOf(webhook[field.slice(field.lastIndexOf('.') + 1)]);
  if (value === '') return absent === 'allowed' ? [] : [required(field, absent)];
  return allowed.includes(value) ? [] : [notSupported(field, value, allowed)];
}

function connectionProblems(webhook: JsonObject, { path, rules }: Place): FieldError[] {
  const { connectionInfo } = webhook;
  const connection = isObject(connectionInfo) ? connectionInfo : {};
  const type = textOf(connection['type']);
  const kubeConfigFile = connection['kubeConfigFile'] ?? null;
  const field = `${path}.connectionInfo.kubeConfigFile`;
  if (type === 'InClusterConfig') {
    if (kubeConfigFile === null) return [];
    return [invalid(field, kubeConfigFile, 'can only be set when type=KubeConfigFile')];
  }
  if (type === 'KubeConfigFile') {
    const file = textOf(kubeConfigFile);
    if (file === '') return [required(field)];
    const problem = file.startsWith('/') ? rules.fileProblem(file) : 'must be an absolute path';
    return problem === undefined ? [] : [invalid(field, file, problem)];
  }
  const typeField = `${path}.connectionInfo.type`;
  if (type === '') return [required(typeField)];
  return [notSupported(typeField, type, ['InClusterConfig', 'KubeConfigFile'])];
}

const conditionsMax = 64;

function* compileConditions(
  webhook: JsonObject,
  { path, rules }: Place,
): Generator<
  void,
  { readonly errors: readonly FieldError[]; readonly conditions: readonly MatchCondition[] }
> {
  const list = Array.isArray(webhook['matchConditions']) ? webhook['matchConditions'] : [];
  const field = `${path}.matchConditions`;
  if (list.length > conditionsMax) {
    return { errors: [tooMany(field, list.length, conditionsMax)], conditions: [] };
  }
  const errors: FieldError[] = [];
  const conditions: MatchCondition[] = [];
  const seen = new Set<string>();
  for (const [index, item] of list.entries()) {
    const at = `${field}[${index}].expression`;
    const expression = isObject(item) ? textOf(item['expression']) : '';
    if (expression.trim() === '') errors.push(required(at));
    else if (seen.has(expression)) errors.push(duplicate(at, expression));
    else {
      yield;
      const condition = yield* compileMatchCondition(expression, rules);
      if ('problem' in condition) errors.push(invalid(at, expression, condition.problem));
      else conditions.push(condition);
    }
    seen.add(expression);
  }
  return { errors, conditions };
}
