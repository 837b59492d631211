import {
  appendAll,
  dnsSubdomain,
  duplicate,
  type FieldError,
  invalid,
  isObject,
  type JsonObject,
  notSupported,
  required,
  textOf,
  tooMany,
} from '@wheelhouse/machinery';
import { parseGoDuration } from '@wheelhouse/schema';
import { type AuthorizerType, accessReviewVersions, authorizerTypes } from './authorizer-types.ts';
import { compileMatchCondition, type MatchCondition } from './match-conditions.ts';

interface Rules {
  readonly selectors: 'told' | 'left out';
  readonly fileProblem: (path: string) => string | undefined;
}

/** What is wrong with the authorizers of a configuration, and the conditions of each by its index. */
interface Judged {
  readonly errors: readonly string[];
  readonly conditions: ReadonlyMap<number, readonly MatchCondition[]>;
}

/** Judges decoded and defaulted authorizers in upstream's words (AUTHZ-3). */
export function validateAuthorizers(authorizers: readonly JsonObject[], rules: Rules): Judged {
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
      const judged = judgeConditions(webhook, { path, rules });
      appendAll(errors, judged.errors);
      conditions.set(index, judged.conditions);
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
  const isKnown = names.has(name);
  names.add(name);
  if (name === '') return [required(`${path}.name`)];
  if (isKnown) return [duplicate(`${path}.name`, name)];
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
    ...durationProblem(webhook, { path, name: 'timeout', wanted: 'must be > 0s and <= 30s' }),
    ...durationProblem(webhook, { path, name: 'authorizedTTL', wanted: 'must be > 0s' }),
    ...durationProblem(webhook, { path, name: 'unauthorizedTTL', wanted: 'must be > 0s' }),
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
  { path, name, wanted }: { path: string; name: string; wanted: string },
): FieldError[] {
  const text = textOf(webhook[name]);
  const duration = parseGoDuration(text) ?? 0n;
  const field = `${path}.${name}`;
  if (duration === 0n) return [required(field)];
  const isTooLong = name === 'timeout' && duration > timeoutMax;
  return duration < 0n || isTooLong ? [invalid(field, text, wanted)] : [];
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

function judgeConditions(
  webhook: JsonObject,
  { path, rules }: Place,
): { readonly errors: readonly FieldError[]; readonly conditions: readonly MatchCondition[] } {
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
      const made = compileMatchCondition(expression, rules);
      if ('problem' in made) errors.push(invalid(at, expression, made.problem));
      else conditions.push(made);
    }
    seen.add(expression);
  }
  return { errors, conditions };
}
