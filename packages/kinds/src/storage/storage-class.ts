import {
  appendAll,
  type Dialect,
  dnsSubdomain,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  notSupported,
  pairErrorsMax,
  qualifiedName,
  required,
  ruleErrors,
  sortSteps,
  tooLong,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type {
  TopologySelectorLabelRequirement,
  TopologySelectorTerm,
} from '../gen/types/core/v1.ts';
import type { StorageClass } from '../gen/types/storage/v1.ts';
import { nodeLabelMessage } from '../pod/warnings.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import {
  duplicateErrors,
  flatMapSteps,
  immutable,
  mapBytes,
  sameOrAbsent,
  sameOrEmpty,
} from '../rules/checks.ts';
import { fillAbsent } from '../rules/fill.ts';

/** StorageClass: a class of storage that claims can request. */
export function storageClass(dialect: Dialect): ResourceDef {
  const annotations = ['storageclass', 'storageclass.beta'].map((prefix) =>
    dialect.label('is-default-class', prefix),
  );
  const isDefault = (object: Stored<StorageClass>) =>
    annotations.some((name) => textAt(object, 'metadata', 'annotations', name) === 'true');
  const text = (name: string, member: string, description: string) =>
    column(name, (object) => textAt(object, member), { description });
  return defineKind<StorageClass>({
    dialect,
    facts: 'storage',
    kind: 'StorageClass',
    scope: 'Cluster',
    shortNames: ['sc'],
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns: [
          {
            ...nameColumn,
            cell: (object) =>
              `${textAt(object, 'metadata', 'name')}${isDefault(object) ? ' (default)' : ''}`,
          },
          text('Provisioner', 'provisioner', 'Provisioner of the volumes.'),
          text('ReclaimPolicy', 'reclaimPolicy', 'Reclaim policy of the volumes.'),
          text('VolumeBindingMode', 'volumeBindingMode', 'When volumes are provisioned and bound.'),
          column('AllowVolumeExpansion', (object) => object.allowVolumeExpansion === true, {
            description: 'Whether volumes can be expanded.',
          }),
          ageColumn,
        ],
      },
    ],
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      *validateUpdate(_, object, old) {
        return [...(yield* validate(object)), ...validateImmutable(object, old)];
      },
      warnings: (object) => topologyWarnings(object, dialect),
      deleteAnswers: 'object',
    },
    example: () => ({ provisioner: 'driver.example.com' }),
  });
}

const fillDefaults = (object: Stored<StorageClass>) =>
  fillAbsent(object, { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' });

function* validate(object: Stored<StorageClass>): Generator<void, FieldError[]> {
  const provisioner = object.provisioner ?? '';
  return [
    ...(provisioner === ''
      ? [required('provisioner')]
      : ruleErrors('provisioner', provisioner.toLowerCase(), qualifiedName)),
    ...validateParameters(object.parameters),
    ...validateOptionalEnum(object, 'reclaimPolicy', ['Delete', 'Retain']),
    ...validateEnum(object, 'volumeBindingMode', ['Immediate', 'WaitForFirstConsumer']),
    ...(yield* validateTopologies(object.allowedTopologies ?? [])),
  ];
}

const parametersMax = 512;
const parametersBytesMax = 256 * 1024;

/** Validates the number and size of the parameters of a class, and rejects an empty name. */
export function validateParameters(parameters: JsonObject | undefined): FieldError[] {
  const names = Object.keys(parameters ?? {});
  if (names.length > parametersMax) return [tooLong('parameters', parametersMax)];
  const isTooLong = mapBytes(parameters) > parametersBytesMax;
  return [
    ...(names.includes('') ? [invalid('parameters', '', 'field can not be empty.')] : []),
    ...(isTooLong ? [tooLong('parameters', parametersBytesMax)] : []),
  ];
}

function validateOptionalEnum(
  object: Stored<StorageClass>,
  field: string,
  allowed: readonly string[],
): FieldError[] {
  return textAt(object, field) === '' ? [] : validateEnum(object, field, allowed);
}

function validateEnum(
  object: Stored<StorageClass>,
  field: string,
  allowed: readonly string[],
): FieldError[] {
  const value = textAt(object, field);
  return allowed.includes(value) ? [] : [notSupported(field, value, allowed)];
}

/** Validates terms that select a topology, and rejects equal ones. */
function validateTopologies(
  terms: readonly Stored<TopologySelectorTerm>[],
): Generator<void, FieldError[]> {
  // kube-apiserver starts with as many empty terms and reports each equal term once.
  const seen = new Map([['[]', terms.length]]);
  let pairs = 0;
  return flatMapSteps(terms, function* (term, index) {
    const path = `allowedTopologies[${index}].matchLabelExpressions`;
    const expressions = term.matchLabelExpressions ?? [];
    const errors = yield* validateExpressions(expressions, path);
    yield;
    const identity = yield* identityOf(expressions);
    const equal = seen.get(identity) ?? 0;
    for (let count = 0; count < equal && pairs < pairErrorsMax; count += 1, pairs += 1) {
      errors.push(duplicate(path, ''));
    }
    seen.set(identity, equal + 1);
    return errors;
  });
}

/** The keys and values that a term selects, as a text that does not depend on their order. */
function* identityOf(
  expressions: readonly Stored<TopologySelectorLabelRequirement>[],
): Generator<void, string> {
  const valuesByKey = new Map<string, readonly string[]>();
  for (const { key, values } of expressions) {
    const texts = (values ?? []).map(String);
    valuesByKey.set(key ?? '', yield* sortSteps(texts, compareTexts, () => texts.length > 1));
  }
  yield;
  const sorted = yield* sortSteps([...valuesByKey], ([left], [right]) => compareTexts(left, right));
  return JSON.stringify(sorted);
}

/** Orders texts as `sort` without an argument does. */
const compareTexts = (left: string, right: string) => (left < right ? -1 : left > right ? 1 : 0);

function validateExpressions(
  expressions: readonly Stored<TopologySelectorLabelRequirement>[],
  path: string,
): Generator<void, FieldError[]> {
  const keys = new Set<string>();
  return flatMapSteps(expressions, function* (expression, index) {
    const at = `${path}[${index}]`;
    const key = expression.key ?? '';
    const values = expression.values ?? [];
    const errors = values.length === 0 ? [required(`${at}.values`)] : [];
    appendAll(errors, yield* duplicateErrors(values, `${at}.values`));
    appendAll(errors, ruleErrors(`${at}.key`, key, qualifiedName));
    if (keys.has(key)) errors.push(duplicate(`${at}.key`, key));
    keys.add(key);
    return errors;
  });
}

function validateImmutable(object: Stored<StorageClass>, old: Stored<StorageClass>): FieldError[] {
  const errors: FieldError[] = [];
  const forbid = (field: string) =>
    errors.push(forbiddenField(field, `updates to ${field} are forbidden.`));
  if (!sameOrAbsent(object.parameters, old.parameters)) forbid('parameters');
  for (const field of ['provisioner', 'reclaimPolicy'] as const) {
    if (!sameOrEmpty(object[field], old[field])) forbid(field);
  }
  const mode = 'volumeBindingMode';
  return [...errors, ...immutable(mode, object[mode], old[mode])];
}

function topologyWarnings(
  object: Stored<StorageClass>,
  dialect: Dialect,
): Generator<void, string[]> {
  return flatMapSteps(object.allowedTopologies ?? [], (term, index) =>
    flatMapSteps(term.matchLabelExpressions ?? [], (expression, number) => {
      const message = nodeLabelMessage(expression.key ?? '', dialect);
      const field = `allowedTopologies[${index}].matchLabelExpressions[${number}].key`;
      return message === undefined ? [] : [`${field}: ${message}`];
    }),
  );
}
